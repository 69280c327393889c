"""A differing case becomes the smallest one that differs."""

import json
import math
import pathlib
import sys
import unittest
from contextlib import redirect_stdout
from io import StringIO

from conformance.runner.shrink import candidates, shrink, size
from conformance.runner.subject import Subject
from conformance.runner.trial import Trial

FAKE = [sys.executable, str(pathlib.Path(__file__).with_name("fake_subject.py"))]


class AnyCase:
    """A schema that allows everything."""

    def problems(self, document, definition):
        return []


class ShrinkTest(unittest.TestCase):
    def test_numbers_lists_and_ranks_become_as_small_as_the_predicate_allows(self):
        case = {"world": 4, "seed": 9, "op": "x", "args": {"n": 17, "b": 3, "list": [4, 5, 6, 7, 8], "on": True}}

        def differs(smaller):
            args = smaller["args"]
            return args.get("n", 0) >= 5 and len(args.get("list", [])) >= 2 and smaller["world"] > 1

        found = shrink(case, differs).case
        self.assertEqual(found, {"world": 2, "seed": 0, "op": "x", "args": {"n": 5, "list": [0, 0]}})

    def test_a_verb_gives_way_to_its_body_and_a_container_to_its_item(self):
        step = {"v": "step"}
        program = [{"v": "loop", "body": [{"v": "accumulate", "body": [step]}]}]
        case = {"world": 1, "op": "x", "args": {"program": program}}
        found = shrink(case, lambda c: "step" in str(c["args"])).case
        self.assertEqual(found["args"], {"program": [step]})
        case = {"world": 1, "op": "x", "args": {"input": {"tuple": [{"named": "P", "fields": {"a": 3}}, 2]}}}
        self.assertEqual(shrink(case, lambda c: "3" in str(c["args"])).case["args"], {"input": 3})

    def test_tensors_keep_as_many_elements_as_their_shape_says(self):
        tensor = {"t": "float32", "shape": [2, 3], "data": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
        case = {"world": 2, "op": "x", "args": {}, "rank_args": [{"input": tensor}, {"input": tensor}]}

        def differs(candidate):
            inputs = [rank.get("input", {}) for rank in candidate.get("rank_args", [])]
            for value in inputs:
                rows, columns = value["shape"] if value else (0, 0)
                self.assertEqual(len(value.get("data", [])), rows * columns)
            return len(inputs) == 2 and all(value and value["shape"] == inputs[0].get("shape") for value in inputs)

        found = shrink(case, differs).case
        self.assertEqual(found["rank_args"][0]["input"], {"t": "float32", "shape": [1, 1], "data": [0.0]})

    def test_no_candidate_is_the_case_itself_and_the_case_is_left_alone(self):
        case = {"world": 2, "seed": 1, "op": "x", "args": {"a": {"b": [1, 2.5, None]}},
                "rank_args": [{"c": 1}, {"c": 2}]}
        before = json.dumps(case)
        self.assertTrue(all(candidate != case for candidate in candidates(case)))
        self.assertEqual(json.dumps(case), before)

    def test_it_stops_when_its_tries_are_used_up(self):
        asked = []
        case = {"world": 1, "op": "x", "args": {"n": 1000}}
        self.assertFalse(shrink(case, lambda c: asked.append(c) or False, most_tries=3).is_smallest)
        self.assertEqual(len(asked), 3)
        self.assertTrue(shrink(case, lambda c: False).is_smallest)

    def test_the_rank_that_matters_stays_and_the_others_become_small_by_themselves(self):
        case = {"world": 3, "op": "x", "args": {}, "rank_args": [{"a": [1, 2, 3]}, {"a": [4, 5]}, {"a": [7]}]}
        found = shrink(case, lambda c: any(7 in args.get("a", []) for args in c.get("rank_args", [])))
        self.assertEqual((found.case["world"], found.case["rank_args"]), (1, [{"a": [7]}]))
        found = shrink(case, lambda c: c["world"] == 3 and 7 in c.get("rank_args", [{}] * 3)[2].get("a", []))
        self.assertEqual(found.case["rank_args"], [{}, {}, {"a": [7]}])

    def test_what_is_left_over_by_batches_stays(self):
        case = {"world": 1, "op": "x", "args": {"loader": {"n": 11, "b": 4}}}

        def differs(candidate):
            loader = candidate["args"].get("loader", {})
            return loader.get("b", 0) == 4 and loader.get("n", 0) % 4 == 3

        self.assertEqual(shrink(case, differs).case["args"]["loader"], {"n": 3, "b": 4})

    def test_models_become_narrow_with_their_weights(self):
        weights = {"0.weight": self.zeros(4, 3), "0.bias": self.zeros(4), "1.weight": self.zeros(2, 4),
                   "1.bias": self.zeros(2)}
        case = {"world": 1, "op": "x", "args": {"m": {"kind": "mlp", "widths": [3, 4, 2], "init": weights}}}

        def differs(candidate):
            model = candidate["args"].get("m", {})
            return len(model.get("widths", [])) == 3 and len(model.get("init", {})) == 4 and all(
                len(tensor.get("data", [])) == math.prod(tensor.get("shape", [0])) for tensor in model["init"].values())

        model = shrink(case, differs).case["args"]["m"]
        self.assertEqual(model["init"]["1.weight"]["shape"][1], 1)

    @staticmethod
    def zeros(*shape):
        return {"t": "float32", "shape": list(shape), "data": [0.0] * math.prod(shape)}

    def test_sizes_are_ordered_by_ranks_then_length(self):
        self.assertLess(size({"world": 1, "args": {"a": [1, 2, 3]}}), size({"world": 2, "args": {}}))
        self.assertLess(size({"world": 1, "args": {"n": 3}}), size({"world": 1, "args": {"n": 4}}))


class TrialTest(unittest.TestCase):
    """The fake subject against itself, and against one that is wrong by one from n = 3 on."""

    def trial(self, *wrong):
        left, right = Subject("left", FAKE), Subject("right", [*FAKE, *wrong])
        self.addCleanup(left.__exit__)
        self.addCleanup(right.__exit__)
        return Trial(left, right, AnyCase())

    def case(self, **args):
        return {"clause": "X-1", "area": "sums", "world": 2, "seed": 3, "op": "fake", "args": args}

    def run_quietly(self, trial, *cases):
        with redirect_stdout(StringIO()) as printed:
            trial.run(cases)
        return printed.getvalue()

    def test_a_subject_does_not_differ_from_itself(self):
        trial = self.trial()
        self.assertEqual(self.run_quietly(trial, self.case(n=9), self.case(do="fail"), self.case(do="what")), "")
        self.assertEqual(dict(trial.counts["sums"]), {"same": 2, "unsupported": 1})

    def test_a_wrong_one_is_found_and_its_smallest_case_told_as_one_line(self):
        trial = self.trial("wrong")
        printed = self.run_quietly(trial, self.case(n=2), self.case(n=12, parts=[1, 2, 3, 4]))
        self.assertEqual(dict(trial.counts["sums"]), {"same": 1, "different": 1})
        smallest = json.loads(printed.splitlines()[-1])
        self.assertEqual((smallest["world"], smallest["args"]), (1, {"n": 3}))
        self.assertIn("rank 0 sum: 3 versus 4", printed)

    def test_a_hang_counts_only_when_it_is_seen_twice(self):
        trial = self.trial()
        asked = []
        answers = [([{"hang": True}], [{"ok": 1}]), ([{"ok": 1}], [{"ok": 1}])]
        trial.ask_both = lambda case: asked.append(case) or answers[len(asked) - 1]
        self.assertEqual(trial.try_case({**self.case(), "world": 1}).word, "same")
        self.assertEqual(len(asked), 2)
        self.assertEqual(trial.hung_once, {"left": 1})

    def test_a_result_of_another_form_than_the_schema_says_is_a_difference(self):
        class Refusing(AnyCase):
            def problems(self, document, definition):
                return ["sum: odd"] if definition == "result.fake" and document.get("sum") == 5 else []

        trial = self.trial()
        trial.schema, trial.shrinking = Refusing(), False
        self.run_quietly(trial, self.case(n=4), self.case(n=5))
        self.assertEqual(dict(trial.counts["sums"]), {"same": 1, "different": 1})

    def test_what_the_right_side_alone_does_not_support_is_counted(self):
        trial = self.trial()
        trial.ask_both = lambda case: ([{"ok": 1}], [{"unsupported": "x"}])
        self.run_quietly(trial, {**self.case(), "world": 1})
        self.assertEqual(trial.refused, 1)
