"""Runs `lockstep sim` as a user does, on shell scripts. Run: python3 cli/tests/test_sim.py BIN [TEST ...]"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path()


class Sim(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        outer = {key: value for key, value in os.environ.items() if key == "LOCKSTEP_JOB" or not key.startswith("LOCKSTEP_")}
        return subprocess.Popen([BIN / "lockstep", "sim", *arguments], cwd=self.folder, env={**outer, **variables},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end_of(self, process: subprocess.Popen) -> subprocess.CompletedProcess:
        with process:
            try:
                stdout, stderr = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def sim(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return self.end_of(self.start(*arguments, **variables))

    def shell(self, script: str, *options: str, ranks: int = 2, **variables: str) -> subprocess.CompletedProcess:
        """Ranks that make no group: without `--check off` the verdict is `unchecked`."""
        return self.sim("-n", str(ranks), "--check", "off", *options, "--", "sh", "-c", script, **variables)


class Usage(Sim):
    def test_what_cannot_be_run_is_named(self):
        for arguments, part in (([], "expected a program"),
                                (["-n", "2"], "expected a program"),
                                (["-n", "0", "--", "true"], "1 to 256 ranks, got 0"),
                                (["-n", "100000", "--", "true"], "1 to 256 ranks, got 100000"),
                                (["-n", "2", "--stall", "0", "--", "true"], "a thousand million, got 0"),
                                (["-n", "2", "--timeout", "nan", "--", "true"], "--timeout: expected a number of seconds above 0, and at most a thousand million, got nan"),
                                (["-n", "2", "--device-memory", "0", "--", "true"], "--device-memory: expected a size above 0"),
                                (["-n", "2", "--device-memory", "-5", "--", "true"], "got '-5'"),
                                (["-n", "2", "--device-memory", "lots", "--", "true"], "a size above 0, got 'lots'. Write it as 64MiB"),
                                (["-n", "2", "--pdb", "0", "--", "sh", "x.py"], "Python interpreter as the program, got sh"),
                                (["-n", "2", "--pdb", "2", "--", "python3", "x.py"], "2 of 2"),
                                (["--pdb", "0", "--", "python3", "x.py"], "Give their number: -n."),
                                (["-n", "2", "--pdb", "0", "--gdb", "1", "--", "python3", "x.py"], "--gdb excludes --pdb"),
                                (["-n", "2", "./train"], "options, then -- and the program, got ./train"),
                                (["-n", "2", "--stal", "3", "--", "true"], "got --stal"),
                                (["-n", "2", "--", "./train"], "./train (No such file or directory)"),
                                (["-n", "2", "--", "torchrun", "train.py"], "Leave -n out"),
                                (["--gear", "cooperative", "--", "true"], "not built yet"),
                                (["-n", "2", "--check", "some", "--", "true"], "expected off, full or sampled:N"),
                                (["-n", "2", "--on-verdict", "wait", "--", "true"], "{end,stacks,hold}")):
            done = self.sim(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(part, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_help_has_an_example(self):
        self.assertIn("Example: lockstep sim -n 4 -- ./train", self.sim("--help").stdout)

    def test_a_folder_holds_one_run(self):
        for code in (0, 2):
            done = self.shell("true", "--out", "kept")
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("--out: expected a folder that holds no run yet, got kept, where ", done.stderr)


class Run(Sim):
    def test_the_program_gets_its_words_as_they_are(self):
        words = ["[1,2]", "--json", "--", "", "a b", "-n"]
        done = self.sim("-n", "1", "--check", "off", "--", "printf", "%s|", *words)
        self.assertEqual(done.returncode, 0)
        self.assertIn("[rank 0] " + "|".join(words) + "|\n", done.stdout)

    def test_options_reach_the_ranks(self):
        done = self.shell("echo $LOCKSTEP_SIM_SPEC", "--device-memory", "64MiB", "--stall", "1.5", "--strict-places",
                          "--function", "eval", ranks=1)
        spec = json.loads(done.stdout.partition("[rank 0] ")[2].splitlines()[0])
        self.assertEqual(spec, {"launched": True, "strict_places": True, "function": "eval",
                                "stall_s": 1.5, "device_memory_bytes": 64 * 2**20})

    def test_strict_places_compare_lines_and_not_addresses(self):
        # Each process is loaded elsewhere.
        for program, code in (("legal_uneven_times", 0), ("legal_one_call_from_two_lines", 11)):
            done = self.sim("-n", "3", "--strict-places", "--", str(BIN / "lockstep_gallery"), program)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_a_run_that_goes_well_leaves_nothing(self):
        done = self.shell("echo hello")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.endswith("ok: 2 ranks ended well\n"), done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_verdict_is_printed_and_kept(self):
        done = self.shell("echo out; echo err >&2; [ $RANK = 0 ] || exit 3")
        self.assertEqual(done.returncode, 12)
        self.assertIn("rank_failed: rank 1 ended with exit code 3\n", done.stdout)
        kept = self.kept()
        self.assertIn(f"kept in lockstep-runs/{kept.name}\n", done.stderr)
        self.assertEqual(sorted(file.name for file in kept.iterdir()),
                         ["rank0.log", "rank1.log", "report.html", "verdict.json"])
        self.assertEqual(sorted((kept / "rank1.log").read_text().split()), ["err", "out"])
        verdict = json.loads((kept / "verdict.json").read_text())
        self.assertEqual((verdict["v"], verdict["verdict"], verdict["first"]), (1, "rank_failed", 1))
        self.assertEqual(verdict["ranks"][1]["stderr"], ["err"])

    def kept(self) -> pathlib.Path:
        folder, = (self.folder / "lockstep-runs").iterdir()
        return folder

    LATE = "[ $RANK = 0 ] || exit 3; trap 'echo late; exit 1' TERM; while :; do sleep 0.1; done"

    def test_what_ranks_write_after_the_verdict_is_only_kept(self):
        done = self.shell(self.LATE)
        self.assertEqual(done.returncode, 12)
        self.assertNotIn("] late", done.stdout + done.stderr)
        self.assertRegex(done.stderr, f"further lines? of (a rank|ranks) after the verdict (is|are) in lockstep-runs/{self.kept().name}/")
        self.assertIn("late\n", (self.kept() / "rank0.log").read_text())

    def test_what_cannot_be_kept_is_shown(self):
        (self.folder / "lockstep-runs").write_text("no folder")
        done = self.shell(self.LATE)
        self.assertEqual(done.returncode, 12)
        self.assertIn("not kept: ", done.stderr)
        self.assertIn("[rank 0] late\n", done.stderr)

    def test_a_verdict_is_told_once(self):
        done = self.sim("-n", "3", "--", str(BIN / "lockstep_gallery"), "branch_on_the_own_norm")
        self.assertEqual(done.returncode, 11)
        self.assertTrue(done.stdout.startswith("mismatch: rank 1 calls "), done.stdout)
        self.assertNotIn("error: ", done.stderr)
        self.assertIn("after the verdict", done.stderr)

    def test_an_interrupted_run_is_kept(self):
        process = self.start("-n", "1", "--", "sh", "-c", "echo here; exec sleep 100")
        self.assertEqual(process.stdout.readline(), "[rank 0] here\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(process).returncode, 128 + signal.SIGINT)
        verdict = json.loads((self.kept() / "verdict.json").read_text())
        self.assertEqual((verdict["verdict"], verdict["signal"]), ("interrupted", signal.SIGINT))
        self.assertEqual((self.kept() / "rank0.log").read_text(), "here\n")

    def test_the_document_has_the_command_line(self):
        done = self.shell("exit 0", "--json")
        self.assertEqual(json.loads(done.stdout)["command"][1:],
                         ["sim", "-n", "2", "--check", "off", "--json", "--", "sh", "-c", "exit 0"])

    def test_a_hold_without_a_terminal_shows_stacks(self):
        done = self.shell("[ $RANK = 0 ] || exit 3; exec sleep 100", "--on-verdict", "hold")
        self.assertEqual(done.returncode, 12)
        self.assertIn("stdin is no terminal", done.stderr)
        self.assertIn("rank 0, process ", done.stderr)

    def test_nothing_checked_is_a_verdict(self):
        done = self.sim("-n", "2", "--", "true")
        self.assertEqual(done.returncode, 17)
        self.assertIn("unchecked: ", done.stdout)

    def test_json_is_all_that_is_on_stdout(self):
        for options in (["-n", "2"], []):
            done = self.sim(*options, "--check", "off", "--json", "--", "echo", "hello")
            self.assertEqual(json.loads(done.stdout)["verdict"], "ok")
            self.assertIn("hello\n", done.stderr)

    def test_out_keeps_the_output_instead_of_showing_it(self):
        done = self.shell("echo hello $RANK", "--out", "kept/here")
        self.assertEqual((done.returncode, done.stdout), (0, "ok: 2 ranks ended well\n"))
        self.assertEqual((self.folder / "kept/here/rank1.log").read_text(), "hello 1\n")
        self.assertEqual(json.loads((self.folder / "kept/here/verdict.json").read_text())["verdict"], "ok")

    def test_quiet_is_quiet_when_all_is_well(self):
        done = self.shell("true", "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_colours_are_for_terminals_unless_asked_for(self):
        self.assertNotIn("\033", self.shell("echo hello").stdout)
        self.assertIn("\033[36m[rank 0] \033[0mhello", self.shell("echo hello", "--color", "always", NO_COLOR="1").stdout)

    def test_a_watched_command_writes_where_we_write(self):
        done = self.sim("--check", "off", "--", "sh", "-c", "echo hello; exit 4")
        self.assertEqual(done.returncode, 12)
        self.assertTrue(done.stdout.startswith("hello\nrank_failed: the command ended with exit code 4\n"), done.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BIN = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main()
