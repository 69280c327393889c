"""A known difference explains what its clause accepts, and not what stands beside it.

fixtures/golden/known_differences.jsonl has a real case for each entry, with both sides' answers
(ci/oracle --examples FILE --cases 7000 --seed 5).
"""

import copy
import json
import pathlib
import re
import unittest

from conformance.known_differences import KNOWN_DIFFERENCES
from conformance.runner.judge import judge

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = [json.loads(line) for line in (ROOT / "fixtures/golden/known_differences.jsonl").read_text().splitlines()]
# Where Accelerate has no answer, or one that cannot be compared: what Lockstep does is a test of its own, by clause.
NOT_PINNED = {"STATE-102", "DATA-002", "DATA-008", "DATA-059", "DATA-101", "RNG-009", "ACC-014", "ACC-041", "DDP-008"}


def clauses() -> dict[str, str]:
    """The text of each clause."""
    found = {}
    for path in (ROOT / "conformance/spec").glob("*.md"):
        for text in re.split(r"\n(?=### )", path.read_text())[1:]:
            found[text.split()[1]] = re.split(r"\n## ", text)[0]
    return found


def leaves(document, path=()):
    if isinstance(document, dict):
        for name, item in document.items():
            yield from leaves(item, (*path, name))
    elif isinstance(document, list):
        for i, item in enumerate(document):
            yield from leaves(item, (*path, i))
    else:
        yield path, document


def another(value):
    """A value that is wrong in its place."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 7
    return "wrong"


def changed(outcomes: list, path: tuple, value) -> list:
    outcomes = copy.deepcopy(outcomes)
    parent = outcomes
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    return outcomes


class ExamplesTest(unittest.TestCase):
    def test_every_entry_has_one(self):
        shown = {entry for example in EXAMPLES
                 for entry in judge(example["case"], example["left"], example["right"]).known}
        self.assertEqual([(entry.clause, entry.reason) for entry in KNOWN_DIFFERENCES if entry not in shown], [])

    def test_each_is_known(self):
        for example in EXAMPLES:
            with self.subTest(case=example["case"]):
                verdict = judge(example["case"], example["left"], example["right"])
                self.assertEqual((verdict.word, verdict.differences), ("known", []))

    def test_no_answer_at_all_is_never_known(self):
        for example in EXAMPLES:
            for outcome in ({"hang": True}, {"crash": "signal 11"}, {"protocol": "x"}, {"error": "OSError"}):
                with self.subTest(case=example["case"], outcome=outcome):
                    right = [outcome] * len(example["right"])
                    self.assertEqual(judge(example["case"], example["left"], right).word, "different")

    def test_another_value_in_any_place_is_different(self):
        for example in EXAMPLES:
            case, left, right = example["case"], example["left"], example["right"]
            if not {entry.clause for entry in judge(case, left, right).known}.isdisjoint(NOT_PINNED):
                continue
            for path, value in leaves(right):
                if path[-1] == "message":
                    continue
                wrong = another(value)
                if (path, wrong) in list(leaves(left)):
                    continue  # that is Accelerate's own
                with self.subTest(case=case, path=path):
                    self.assertEqual(judge(case, left, changed(right, path, wrong)).word, "different")

    def test_without_its_clause_the_same_answers_are_different(self):
        case = {"op": "data.loader", "world": 2, "args": {"loader": {"n": 5}}}
        left, right = ({"loaders": {"main": {"total_batch_size": size}}} for size in ({"error": "AttributeError"}, 2))
        self.assertEqual(judge(case, [{"ok": left}] * 2, [{"ok": right}] * 2).word, "different")
        case["op"] = "data.dispatcher"
        self.assertEqual(judge(case, [{"ok": left}] * 2, [{"ok": right}] * 2).clauses, ["DATA-096"])


class ClausesTest(unittest.TestCase):
    def test_each_clause_says_that_lockstep_may_differ(self):
        text = clauses()
        for entry in KNOWN_DIFFERENCES:
            with self.subTest(clause=entry.clause):
                heading = text[entry.clause].split("\n")[0]
                self.assertTrue("(S)" in heading or re.search("Accepted:|Lockstep:", text[entry.clause]), heading)
