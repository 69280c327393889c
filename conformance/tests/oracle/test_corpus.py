"""The recorded corpus, and the command line that replays it."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

from conformance.known_differences import KNOWN_DIFFERENCES
from conformance.runner.generate import AREAS
from conformance.runner.main import DIFFERENT, SAME, UNDECIDED, USAGE, main
from conformance.runner.schema import Schema

CORPUS = pathlib.Path(__file__).resolve().parents[3] / "fixtures" / "golden" / "oracle_corpus.jsonl"
CASES = [json.loads(line) for line in CORPUS.read_text().splitlines()]
SMALL = [case for case in CASES if case["world"] == 1][:40]


def replay(*cases, subject="accelerate"):
    """ci/oracle --corpus over these cases: its exit code and what it printed."""
    printed = io.StringIO()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file, contextlib.redirect_stdout(printed):
        file.writelines(json.dumps(case) + "\n" for case in cases)
        file.flush()
        return main(["--corpus", file.name, "--subject", subject]), printed.getvalue()


class CorpusTest(unittest.TestCase):
    def test_it_has_three_hundred_cases_of_all_areas_and_worlds(self):
        self.assertEqual(len(CASES), 300)
        self.assertEqual({case["world"] for case in CASES}, {1, 2, 3, 4})
        self.assertEqual({case["area"] for case in CASES}, set(AREAS))

    def test_each_is_what_the_schema_says(self):
        schema = Schema.of_protocol()
        for case in CASES:
            self.assertEqual(schema.problems(case, "case"), [], case["index"])

    def test_known_differences_are_marked_with_their_clauses(self):
        marked = {clause for case in CASES for clause in case.get("known", [])}
        self.assertLessEqual({"DATA-096", "DATA-106", "OPS-014"}, marked)
        self.assertLessEqual(marked, {entry.clause for entry in KNOWN_DIFFERENCES})

    def test_accelerate_answers_as_it_was_recorded_and_another_answer_is_told(self):
        changed = json.loads(json.dumps(next(case for case in SMALL if case["op"] == "data.shard")))
        changed["expect"] = {"all": {"error": "KeyError"}}
        code, printed = replay(*SMALL)
        self.assertEqual(code, SAME, printed)
        code, printed = replay(changed)
        self.assertEqual(code, DIFFERENT)
        self.assertIn("error KeyError versus ok", printed)

    def test_nothing_compared_is_undecided(self):
        self.assertEqual(replay()[0], UNDECIDED)

    def test_an_alternative_is_enough(self):
        case = json.loads(json.dumps(next(case for case in SMALL if case["op"] == "data.shard")))
        case["expect"] = {"accepted": [{"all": {"error": "KeyError"}}, case["expect"]]}
        self.assertEqual(replay(case)[0], SAME)


class CommandLineTest(unittest.TestCase):
    def test_a_subject_that_does_not_start_has_an_exit_code_of_its_own(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(replay(SMALL[0], subject="false")[0], 4)
        self.assertIn("rank 0 of 1 ended with exit code 1 before its hello", said.getvalue())

    def test_options_that_exclude_each_other_or_have_no_effect_are_refused(self):
        for arguments in (["--corpus", "a", "--record", "b"], ["--corpus", "a", "--seed", "2"], ["--cases", "0"],
                          ["--replay", "a", "--area", "pad"], ["--record", "a", "--subject", "x"]):
            with self.subTest(arguments=arguments), contextlib.redirect_stderr(io.StringIO()):
                with self.assertRaises(SystemExit) as ended:
                    main(arguments)
                self.assertEqual(ended.exception.code, USAGE)

    def test_files_that_cannot_be_read_are_usage(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file, contextlib.redirect_stderr(io.StringIO()):
            file.write('{"op": "data.shard"}\n')
            file.flush()
            for path in ("/no/such/file", file.name):
                self.assertEqual(main(["--replay", path, "--subject", "accelerate"]), USAGE)
