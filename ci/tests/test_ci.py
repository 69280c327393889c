"""Tests of ci/run_one and ci/summarize. Run: python3 ci/tests/test_ci.py"""
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

CI = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CI))
sys.dont_write_bytecode = True


def load(name: str):
    """A script of ci/, which has no .py, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(CI / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


summarize = load("summarize")


def run_one(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    outer = {key: value for key, value in os.environ.items() if key not in ("LOCKSTEP_RESULTS", "LOCKSTEP_TEST_ID")}
    return subprocess.run([CI / "run_one", "bash", "-c", script, *arguments], env={**outer, **environment},
                          text=True, capture_output=True, timeout=20)


class RunOne(unittest.TestCase):
    def test_a_clean_command_passes_and_its_output_comes_through(self):
        done = run_one('echo out; echo err >&2; echo x > "$TMPDIR/x"; rm "$TMPDIR/x"')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "out\n", "err\n"))

    def test_the_exit_code_of_the_command_is_kept(self):
        self.assertEqual(run_one("exit 3").returncode, 3)
        self.assertEqual(run_one("sleep 30 & exit 3").returncode, 3)
        self.assertEqual(run_one("kill -SEGV $$").returncode, 128 + signal.SIGSEGV)

    def test_a_command_that_cannot_start(self):
        done = subprocess.run([CI / "run_one", "/no/such/program"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 127)
        self.assertIn("/no/such/program", done.stderr)

    def test_a_straggler_is_named_and_ended_even_in_a_session_of_its_own(self):
        done = run_one("setsid bash -c 'trap \"\" TERM; sleep 61' & echo $!")
        self.assertEqual(done.returncode, 1)
        self.assertIn("sleep 61", done.stderr)
        self.assertFalse(os.path.exists(f"/proc/{done.stdout.strip()}"))

    def test_a_process_that_ends_soon_after_is_no_straggler(self):
        self.assertEqual(run_one("(sleep 0.1 &); exit 0").returncode, 0)

    def test_shared_memory_of_the_job_is_named_and_removed(self):
        done = run_one('echo "$LOCKSTEP_JOB"; touch "/dev/shm/board-$LOCKSTEP_JOB"')
        self.assertEqual(done.returncode, 1)
        path = "/dev/shm/board-" + done.stdout.strip()
        self.assertIn(path, done.stderr)
        self.assertFalse(os.path.exists(path))

    def test_a_file_in_tmpdir_is_named_and_removed(self):
        done = run_one('mkdir "$TMPDIR/a"; touch "$TMPDIR/a/b"; echo "$TMPDIR"')
        self.assertEqual(done.returncode, 1)
        self.assertIn("/a/b", done.stderr)
        self.assertFalse(os.path.exists(done.stdout.strip()))

    def test_names_of_job_and_result_file(self):
        done = run_one('echo "$LOCKSTEP_JOB $GTEST_OUTPUT"', "--gtest_filter=A.B/0:C*", LOCKSTEP_RESULTS="/r")
        job, output = done.stdout.split()
        self.assertRegex(job, r"^bash\.A\.B_0_C_\.[0-9]+$")
        self.assertEqual(output, "xml:/r/bash.A.B_0_C_.xml")
        done = run_one('echo "$GTEST_OUTPUT"', LOCKSTEP_RESULTS="/r", LOCKSTEP_TEST_ID="named")
        self.assertEqual(done.stdout, "xml:/r/named.xml\n")

    def test_listing_tests_is_passed_through(self):
        done = run_one('echo "${LOCKSTEP_JOB:-none}"', "--gtest_list_tests")
        self.assertEqual(done.stdout, "none\n")

    def test_signals_are_passed_on(self):
        process = subprocess.Popen([CI / "run_one", "bash", "-c", "trap 'exit 7' TERM; echo up; sleep 60 & wait"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=10), 7)
        process.stdout.close()

    def test_the_command_dies_with_run_one(self):
        process = subprocess.Popen([CI / "run_one", "bash", "-c", "echo $$ $TMPDIR; exec sleep 60"],
                                   stdout=subprocess.PIPE, text=True)
        pid, folder = process.stdout.readline().split()
        process.kill()
        process.wait()
        process.stdout.close()
        os.rmdir(folder)
        for _ in range(100):
            if not os.path.exists(f"/proc/{pid}"):
                return
            time.sleep(0.05)
        self.fail("it still runs")


class Summarize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name)

    def summarize(self, junit: str, results: dict[str, str], listing: list[dict], budget=None):
        (self.results / "ctest.junit").write_text(f"<testsuite>{junit}</testsuite>")
        for name, cases in results.items():
            (self.results / name).write_text(cases)
        lines = []
        with mock.patch("builtins.print", lambda *words, **_: lines.append(" ".join(map(str, words)))):
            code = summarize.summarize(summarize.read_tests({"tests": listing}), self.results, budget or {"data": 1})
        return code, lines

    @staticmethod
    def entry(name="data", command=("ci/run_one", "/b/data_test"), **properties):
        return {"name": name, "command": list(command),
                "properties": [{"name": key, "value": value} for key, value in properties.items()]}

    @staticmethod
    def cases(*results: str) -> str:
        texts = {"passed": '<testcase name="P" classname="S" status="run" result="completed"/>',
                 "failed": '<testcase name="F" classname="S" status="run"><failure message="no"/></testcase>',
                 "skipped": '<testcase name="K" classname="S" status="run" result="skipped"><skipped/></testcase>'}
        return "<testsuites><testsuite>" + "".join(texts[result] for result in results) + "</testsuite></testsuites>"

    def check(self, status: str, cases: str | None, code: int, last: str, inner=""):
        junit = f'<testcase name="data" time="1" status="{status}">{inner}</testcase>'
        got, lines = self.summarize(junit, {"data_test.xml": cases} if cases else {}, [self.entry(LABELS=["data"])])
        self.assertEqual((got, lines[-1]), (code, last))
        return lines

    def test_cases_are_counted(self):
        self.check("run", self.cases("passed", "passed", "skipped"), 0, "2 passed, 0 failed, 1 skipped")
        lines = self.check("fail", self.cases("passed", "failed"), 1, "1 passed, 1 failed")
        self.assertIn("failed: data: S.F", lines)

    def test_an_entry_without_cases_counts_as_one(self):
        self.check("run", None, 0, "1 passed, 0 failed")
        self.check("fail", None, 1, "0 passed, 1 failed")

    def test_an_entry_that_failed_after_its_cases_passed_counts_as_a_failure(self):
        self.check("fail", self.cases("passed", "passed"), 1, "2 passed, 1 failed")

    def test_an_entry_that_passed_although_a_case_failed_counts_as_a_failure(self):
        self.check("run", self.cases("passed", "failed"), 1, "1 passed, 1 failed")

    def test_the_end_of_a_failed_output_is_shown_again(self):
        printed = "<system-out>" + "".join(f"line {i}\n" for i in range(100)) + "</system-out>"
        lines = self.check("fail", self.cases("failed"), 1, "0 passed, 1 failed", printed)
        failure, = (line for line in lines if line.startswith("failed:"))
        self.assertEqual(failure.splitlines(), ["failed: data: S.F"] + [f"    line {i}" for i in range(88, 100)])
        self.assertNotIn("line 99", str(self.check("run", self.cases("passed"), 0, "1 passed, 0 failed", printed)))

    def test_a_result_that_breaks_off(self):
        self.check("fail", "<testsuites><testsuite>", 1, "0 passed, 1 failed")

    def test_a_filter_that_matches_nothing_is_a_failure(self):
        self.check("run", self.cases(), 1, "0 passed, 1 failed")

    def test_a_missing_program_is_a_failure_and_a_skipped_test_is_not(self):
        self.check("notrun", None, 1, "0 passed, 1 failed", '<skipped message="Unable to find executable"/>')
        self.check("notrun", None, 1, "0 passed, 0 failed, 1 skipped", '<skipped message="SKIP_RETURN_CODE=77"/>')

    def test_no_test_is_a_failure(self):
        code, lines = self.summarize("", {}, [])
        self.assertEqual((code, lines[-2:]), (1, ["no test ran", "0 passed, 0 failed"]))

    def test_budget(self):
        junit = '<testcase name="data" time="120" status="run"/>'
        for properties, budget, code in ((dict(LABELS=["data"]), 1.1, 0), (dict(LABELS=["data"]), 0.9, 1),
                                         (dict(RUN_SERIAL=True), 1.1, 1), (dict(PROCESSORS=2), 1.1, 1)):
            with self.subTest(properties=properties, budget=budget):
                got, lines = self.summarize(junit, {}, [self.entry(**properties)], {"data": budget})
                self.assertEqual((got, lines[-1]), (code, "1 passed, 0 failed"))

    def test_a_folder_without_budget_is_named(self):
        junit = '<testcase name="other.x" time="1" status="run"/>'
        code, lines = self.summarize(junit, {}, [self.entry("other.x", LABELS=["other"])])
        self.assertEqual(code, 1)
        self.assertTrue(any("other has no line" in line for line in lines))


if __name__ == "__main__":
    unittest.main()
