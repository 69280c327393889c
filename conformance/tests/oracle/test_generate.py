"""Generated cases: the same today and tomorrow, enough of each area, and of the form that the schema says."""

import collections
import unittest

from conformance.known_differences import KNOWN_DIFFERENCES
from conformance.runner.generate import AREAS, cases, generate
from conformance.runner.outcomes import of_expect, recorded
from conformance.runner.schema import Schema


class GenerateTest(unittest.TestCase):
    def test_a_case_is_a_function_of_seed_and_index(self):
        self.assertEqual([generate(7, index) for index in (5, 100, 5)], [generate(7, index) for index in (5, 100, 5)])
        self.assertEqual(generate(7, 40), list(cases(7, 41))[40])
        self.assertNotEqual(generate(7, 40), generate(8, 40))

    def test_of_two_thousand_cases_each_area_has_at_least_a_hundred(self):
        count = collections.Counter(case["area"] for case in cases(1, 2000))
        self.assertEqual(set(count), set(AREAS))
        self.assertGreaterEqual(min(count.values()), 100)

    def test_what_the_areas_are_named_after_is_in_their_cases(self):
        operations = collections.Counter(case["op"] for case in cases(1, 2000))
        for op, least in (("data.shard", 100), ("data.iterable_shard", 50), ("ops.gather", 75), ("ops.reduce", 90),
                          ("ops.pad_across_processes", 90), ("ops.gather_for_metrics", 100), ("train.program", 400),
                          ("amp.scaler", 100), ("rng.program", 100)):
            self.assertGreaterEqual(operations[op], least, op)
        precision = [case for case in cases(1, 2000) if case["op"] == "train.program"
                     and case["args"].get("accelerator", {}).get("mixed_precision") == "bf16"]
        self.assertGreaterEqual(len(precision), 100)

    def test_the_cases_of_one_area_are_those_of_the_whole(self):
        self.assertEqual(list(cases(1, 3, "pad")), [case for case in cases(1, 3 * len(AREAS)) if case["area"] == "pad"])

    def test_worlds_of_all_four_sizes_are_asked_in_every_area(self):
        sizes = collections.defaultdict(set)
        for case in cases(1, 2000):
            sizes[case["area"]].add(case["world"])
        self.assertTrue(all(of_area == {1, 2, 3, 4} for of_area in sizes.values()))

    def test_every_known_difference_may_show_in_some_case(self):
        idle = set(range(len(KNOWN_DIFFERENCES)))
        for case in cases(1, 4000):
            idle -= {number for number in idle if KNOWN_DIFFERENCES[number].applies(case)}
        self.assertEqual([KNOWN_DIFFERENCES[number].clause for number in idle], [])

    def test_arguments_of_ranks_are_as_many_as_there_are_ranks(self):
        for case in cases(2, 1000):
            self.assertEqual(len(case.get("rank_args", [{}] * case["world"])), case["world"])


class SchemaTest(unittest.TestCase):
    def setUp(self):
        self.schema = Schema.of_protocol()

    def test_every_case_is_valid(self):
        for case in cases(1, 340):
            self.assertEqual(self.schema.problems(case, "case"), [])

    def test_what_is_wrong_is_named(self):
        case = {"clause": "DATA-020", "world": 2, "op": "data.shard", "args": {"n": -1, "odd": 1}}
        self.assertEqual(self.schema.problems(case, "case"),
                         ["case.args.n: -1 is below 0", "case.args.odd: not allowed"])
        self.assertEqual(self.schema.problems({"world": True, "op": "x", "args": {}, "clause": "A"}, "case"),
                         ["case.world: True is no integer", "case.op: 'x' is none of "
                          + str(self.schema.document["$defs"]["operation"]["enum"])])

    def test_requests_answers_and_hello(self):
        good = {"request": {"id": 7, "op": "ops.gather", "args": {}, "rank_args": [{"input": [1]}], "seed": 1},
                "hello": {"hello": 1, "name": "x", "version": "1", "capabilities": ["ddp"]},
                "answer": {"id": 7, "error": {"kind": "ValueError", "message": "m"}}}
        bad = {"request": {"id": 7, "op": "ops.gather", "args": {"dim": 0}}, "hello": {"hello": 2, "name": "x"},
               "answer": {"id": 7, "ok": 1, "unsupported": "x"}}
        for name in good:
            self.assertEqual(self.schema.problems(good[name], name), [])
            self.assertNotEqual(self.schema.problems(bad[name], name), [])

    def test_a_schema_that_says_what_nobody_checks_is_refused(self):
        with self.assertRaisesRegex(ValueError, "patternProperties"):
            Schema({"$defs": {"case": {"patternProperties": {}}}})


class OutcomesTest(unittest.TestCase):
    def test_equal_outcomes_are_recorded_once_and_read_back_for_each_rank(self):
        same = [{"error": "ValueError", "message": "a"}, {"error": "ValueError", "message": "b"}]
        self.assertEqual(recorded(same), {"all": {"error": "ValueError"}})
        self.assertEqual(of_expect(recorded(same), 2), [[{"error": "ValueError"}] * 2])
        unequal = [{"ok": 1}, {"hang": True}]
        self.assertEqual(of_expect(recorded(unequal), 2), [unequal])
