"""Runs tests by name: run.py MODULE[.CLASS[.TEST]]... With LOCKSTEP_RESULTS=DIR the results go to DIR/<test id>.xml, as
GoogleTest writes them, so that ci/summarize counts the cases."""

import os
import pathlib
import sys
import unittest
from xml.etree import ElementTree


class Recording(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.suite = ElementTree.Element("testsuite")

    def _record(self, test, status="run", failure=None):
        module, name = test.id().rsplit(".", 1)
        case = ElementTree.SubElement(self.suite, "testcase", classname=module, name=name, status=status)
        if failure is not None:
            ElementTree.SubElement(case, "failure", message=str(failure[1]))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._record(test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._record(test, failure=error)

    def addError(self, test, error):
        super().addError(test, error)
        self._record(test, failure=error)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=Recording).run(suite)
    folder, test_id = os.environ.get("LOCKSTEP_RESULTS"), os.environ.get("LOCKSTEP_TEST_ID")
    if folder and test_id:
        ElementTree.ElementTree(result.suite).write(pathlib.Path(folder) / f"{test_id}.xml")
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
