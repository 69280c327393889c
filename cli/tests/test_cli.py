"""Runs the lockstep program as a user does. Run: python3 cli/tests/test_cli.py BIN [TEST ...]"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

BIN = pathlib.Path()


def run(*arguments: str, stdout=subprocess.PIPE, **variables: str) -> subprocess.CompletedProcess:
    outer = {key: value for key, value in os.environ.items() if not key.startswith("LOCKSTEP_")}
    return subprocess.run([BIN / "lockstep", *arguments], env={**outer, **variables}, text=True, stdout=stdout,
                          stderr=subprocess.PIPE, timeout=60)


class Commands(unittest.TestCase):
    def test_an_unknown_one_is_named_with_the_nearest(self):
        for word in ("evn", "foo"):
            done = run(word)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^lockstep: {word} is no command; did you mean \w+\?.*--help")
        self.assertIn("did you mean env?", run("evn", "--json").stderr)

    def test_none_at_all_is_usage(self):
        done = run()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--help", done.stderr)

    def test_help_and_version_are_no_errors(self):
        for arguments in (["--help"], ["env", "--help"], ["--version"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout)

    def test_output_that_cannot_be_written_is_an_error(self):
        for arguments in (["env"], ["env", "--json"], ["--help"]):
            with open("/dev/full", "w") as full:
                done = run(*arguments, stdout=full)
            self.assertEqual(done.returncode, 2)
            self.assertIn("lockstep: cannot write to standard output: No space left on device", done.stderr)


class Env(unittest.TestCase):
    def test_names_the_libtorch_that_is_loaded(self):
        description = json.loads(run("env", "--json").stdout)
        self.assertRegex(description["libtorch"], r"^\d+\.\d+")
        library = pathlib.Path(description["libtorch_path"])
        self.assertRegex(library.name, r"^libtorch_cpu\.so")
        self.assertTrue(library.is_file(), library)
        self.assertIn(f"libtorch_path: {library}\n", run("env").stdout)

    def test_shows_the_variables_in_force(self):
        done = run("env", RANK="1", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", LOCKSTEP_TIMEOUT="30")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in ("RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "LOCKSTEP_TIMEOUT=30"):
            self.assertIn(f"\n  {line}\n", done.stdout)

    def test_warns_of_each_variable_that_would_be_refused_or_is_misspelt(self):
        variables = {"RANK": "one", "LOCKSTEP_TIMEOUT": "soon", "LOCKSTEP_LOG_LEVEL": "loud",
                     "LOCKSTEP_BACKEND": "glooo", "LOCKSTEP_TRACE": "/tmp"}
        done = run("env", **variables)
        self.assertEqual(done.returncode, 0)
        warnings = done.stderr.splitlines()
        self.assertEqual(len(warnings), len(variables), warnings)
        for name in variables:
            self.assertTrue(any(name in warning for warning in warnings), name)
        for warning in warnings:
            self.assertTrue(warning.startswith("warning: "), warning)
        self.assertEqual(len(json.loads(run("env", "--json", **variables).stdout)["warnings"]), len(variables))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BIN = pathlib.Path(sys.argv.pop(1))
    unittest.main()
