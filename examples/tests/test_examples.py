"""Runs the examples and compares what they print. Run: python3 examples/tests/test_examples.py BIN [TEST ...]"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path()


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    # One thread per rank: OpenMP's threads wait for each other in a busy loop, on a busy machine for a very long time.
    return subprocess.run([BIN / program, *arguments], env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
                          text=True, capture_output=True, timeout=120)


class Quickstart(unittest.TestCase):
    def test_finds_the_line(self):
        done = run("00_quickstart")
        self.assertEqual(done.returncode, 0, done.stderr)
        match = re.fullmatch(r"(?:\[rank 0\] )?y = (\S+) x \+ (\S+)\n", done.stdout)
        self.assertTrue(match, f"expected one line 'y = A x + B', got {done.stdout!r}")
        self.assertAlmostEqual(float(match[1]), 3, delta=1e-2)
        self.assertAlmostEqual(float(match[2]), 1, delta=1e-2)


    def test_is_the_program_in_the_readme(self):
        root = pathlib.Path(__file__).parents[2]
        program = (root / "examples/00_quickstart.cpp").read_text()
        self.assertIn(f"```cpp\n{program}```", (root / "README.md").read_text())
        self.assertLessEqual(len(program.splitlines()), 25)


class Pages(unittest.TestCase):
    """The programs in pages of docs/, which the build takes from there."""

    def test_they_print_what_they_say(self):
        for page, printed in (("from_accelerate", "2 values\n"), ("mixed_precision", "scale 1024\n")):
            with self.subTest(page=page):
                done = run(f"docs_{page}")
                self.assertEqual((done.returncode, done.stdout), (0, printed), done.stderr)


class TrainDigits(unittest.TestCase):
    EPOCHS = 3

    def test_two_ranks_print_a_line_per_epoch_and_the_accuracy(self):
        done = run("01_train_digits", "--num_processes", "2", "--epochs", str(self.EPOCHS), "--seed", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        *epochs, last = done.stdout.splitlines()
        self.assertEqual(len(epochs), self.EPOCHS, done.stdout)
        losses = []
        for number, line in enumerate(epochs, 1):
            match = re.fullmatch(r"epoch (\d+) loss (\d\S*) samples (\d+) (\d+) \((\d+) repeated\) (\d\S*) s", line)
            self.assertTrue(match, line)
            self.assertEqual(int(match[1]), number)
            # 1,438 samples in batches of 16: the last step is filled from the head of the epoch.
            self.assertEqual([int(match[i]) for i in (3, 4, 5)], [720, 720, 2])
            losses.append(float(match[2]))
        self.assertEqual(losses, sorted(losses, reverse=True), "the loss falls")
        match = re.fullmatch(r"accuracy (0\.\d{4})", last)
        self.assertTrue(match, last)
        self.assertGreaterEqual(float(match[1]), 0.95)

    def test_is_one_rank_of_the_environment_without_num_processes(self):
        done = run("01_train_digits", "--epochs", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^epoch 1 loss \S+ samples 1438 \(0 repeated\) \S+ s\naccuracy 0\.\d{4}\n$")


class BadUsage(unittest.TestCase):
    def expect_usage_error(self, arguments: list[str], *words: str):
        done = run("01_train_digits", *arguments)
        self.assertEqual(done.returncode, 2, f"{arguments}: {done.stderr}")
        self.assertEqual(done.stdout, "")
        for word in (*words, "--help"):
            self.assertIn(word, done.stderr)

    def test_is_told_and_exits_with_2(self):
        self.expect_usage_error(["--epochs", "x"], "--epochs", "expected a positive number, got 'x'")
        self.expect_usage_error(["--num_processes", "0"], "--num_processes", "expected a positive number, got '0'")
        self.expect_usage_error(["--num_workers", "-1"], "--num_workers")
        self.expect_usage_error(["--data", "/nonexistent/digits.csv"], "--data", "/nonexistent/digits.csv")
        self.expect_usage_error(["--no_such_option"], "--no_such_option")

    def refusal_of(self, data: str) -> str:
        """What the program says of a data file with this text; it must exit as with any bad input."""
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(data)
            file.flush()
            done = run("01_train_digits", "--data", file.name)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr.replace(file.name, "FILE")

    def test_a_bad_data_file_is_named_with_the_place_and_the_text(self):
        good = ",".join(["0"] * 65) + "\n"
        self.assertEqual(self.refusal_of(good + "0,1,x7" + ",0" * 62 + "\n"),
                         "FILE, line 2, column 3: expected a number, got 'x7'\n")
        self.assertEqual(self.refusal_of(good + "0,,0\n"), "FILE, line 2, column 2: expected a number, got ''\n")
        self.assertEqual(self.refusal_of("1,2\n"), "FILE, line 1: expected 65 numbers, got 2\n")
        self.assertEqual(self.refusal_of(""), "FILE: expected 1797 lines, got 0\n")

    def test_variables_that_would_mislead_are_refused_at_once(self):
        for variables, words in (({"RANK": "1"}, "Set WORLD_SIZE"),
                                 ({"RANK": "-1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}, "Set RANK"),
                                 ({"LOCKSTEP_BACKEND": "glooo"}, "one of gloo, threads")):
            done = run("01_train_digits", "--epochs", "1", **variables)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(words, done.stderr)

    def test_help_is_no_error(self):
        done = run("01_train_digits", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        for option in ("--num_processes", "--epochs", "--batch_size", "--seed", "--data"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BIN = pathlib.Path(sys.argv.pop(1))
    unittest.main()
