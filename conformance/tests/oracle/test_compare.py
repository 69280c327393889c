"""When two answers are the same."""

import base64
import struct
import unittest

from conformance.runner.compare import compare_outcomes
from conformance.runner.judge import judge

CASE = {"op": "ops.gather", "world": 1, "args": {}}


def tensor(*data, t="float32", **changes):
    return {"t": t, "shape": [len(data)], "data": list(data), **changes}


def differences(one, other, case=CASE):
    return compare_outcomes(case, [{"ok": one}], [{"ok": other}])


class ComparisonTest(unittest.TestCase):
    def same(self, one, other, case=CASE):
        self.assertEqual(differences(one, other, case), [])

    def different(self, one, other, case=CASE):
        self.assertNotEqual(differences(one, other, case), [])

    def test_integers_booleans_and_strings_are_compared_exactly(self):
        self.same({"a": [1, True, "x", None]}, {"a": [1, True, "x", None]})
        for one, other in ((1, 2), (True, False), (True, 1), ("x", "y"), (None, 0)):
            self.different({"a": one}, {"a": other})

    def test_floats_have_the_tolerance_of_their_type(self):
        for t, near, far in (("float32", 1.000009, 1.00003), ("float64", 1 + 1e-11, 1 + 1e-9),
                             ("bfloat16", 1.009, 1.02)):
            with self.subTest(t=t):
                self.same(tensor(1.0, t=t), tensor(near, t=t))
                self.different(tensor(1.0, t=t), tensor(far, t=t))
        self.same({"loss": 1.0}, {"loss": 1.000009})
        self.different({"loss": 1.0}, {"loss": 1.00003})

    def test_a_run_in_half_precision_has_its_tolerance_where_products_go_in(self):
        case = {**CASE, "args": {"accelerator": {"mixed_precision": "bf16"}}}
        self.same({"loss": 1.0}, {"loss": 1.009}, case)
        self.different({"loss": 1.0}, {"loss": 1.02}, case)
        self.same({"params": {"m": {"w": tensor(1.0)}}}, {"params": {"m": {"w": tensor(1.009)}}}, case)
        self.different({"lr": [1.0]}, {"lr": [1.009]}, case)

    def test_special_numbers_equal_themselves_alone(self):
        self.same(tensor("NaN", "Infinity"), tensor("NaN", "Infinity"))
        self.different(tensor("NaN"), tensor(0.0))
        self.different(tensor("Infinity"), tensor("-Infinity"))

    def test_tensors_differ_in_type_and_shape(self):
        self.different(tensor(1, t="int64"), tensor(1, t="int32"))
        self.different(tensor(1.0, 2.0), tensor(1.0, 2.0, shape=[2, 1]))
        self.different(tensor(1, t="int64"), tensor(2, t="int64"))

    def test_bytes_and_numbers_of_a_tensor_are_the_same_tensor(self):
        content = base64.b64encode(struct.pack("<2f", 1.0, 2.5)).decode()
        self.same(tensor(1.0, 2.5), {"t": "float32", "shape": [2], "b64": content})

    def test_the_order_of_keys_counts_in_values_and_not_in_records(self):
        self.same({"len": 1, "total_length": 2}, {"total_length": 2, "len": 1})
        self.different({"value": {"a": 1, "b": 2}}, {"value": {"b": 2, "a": 1}})

    def test_in_values_an_integer_is_no_float(self):
        self.same({"loss": 2}, {"loss": 2.0})
        self.different({"value": [2]}, {"value": [2.0]})

    def test_sets_have_no_order(self):
        self.same({"value": {"set": [1, 2]}}, {"value": {"set": [2, 1]}})
        self.different({"value": {"set": [1, 2]}}, {"value": {"set": [1, 3]}})

    def test_a_missing_field_differs_unless_it_is_optional(self):
        self.different({"len": 1}, {})
        self.same({"reads": 1, "epochs_seen": []}, {"reads": 1})

    def test_of_times_only_that_somebody_waited_is_compared(self):
        self.same({"log": [{"entered_s": 0.3}]}, {"log": [{"entered_s": 0.2}]})
        self.same({"log": [{"entered_s": 0.0}]}, {"log": [{"entered_s": 0.09}]})
        self.different({"log": [{"entered_s": 0.2}]}, {"log": [{"entered_s": 0.01}]})

    def test_a_recorded_answer_may_name_fewer_fields(self):
        one, other = [{"ok": {"len": 2}}], [{"ok": {"len": 2, "total_length": 4}}]
        self.assertEqual(compare_outcomes(CASE, one, other, one_sided=True), [])
        self.assertNotEqual(compare_outcomes(CASE, one, other), [])
        self.assertNotEqual(compare_outcomes(CASE, other, one, one_sided=True), [])

    def test_ranks_are_as_many_on_both_sides(self):
        with self.assertRaises(ValueError):
            compare_outcomes(CASE, [{"ok": 1}], [{"ok": 1}] * 2)

    def test_kinds_of_errors_count_and_messages_do_not(self):
        one = [{"error": "ValueError", "message": "a"}]
        self.assertEqual(compare_outcomes(CASE, one, [{"error": "ValueError", "message": "b"}]), [])
        self.assertNotEqual(compare_outcomes(CASE, one, [{"error": "TypeError"}]), [])
        self.assertNotEqual(compare_outcomes(CASE, one, [{"error": "Error"}]), [])
        self.assertNotEqual(compare_outcomes(CASE, one, [{"hang": True}]), [])

    def test_a_difference_says_where_it_is(self):
        found = differences({"log": [{"loss": 1.0}]}, {"log": [{"loss": 2.0}]})
        self.assertEqual(str(found[0]), "rank 0 log 0 loss: 1.0 versus 2.0")


def loaded(*passes):
    return {"log": [{"batches": batches, "end": [False] * len(batches)} for batches in passes]}


class RandomOrderTest(unittest.TestCase):
    """Nine items in batches of three, shuffled without a seed of their own."""

    CASE = {"op": "data.loader", "world": 2, "args": {"loader": {"n": 9, "b": 3, "shuffle": True}}}
    ONE, OTHER = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[8, 3, 1], [0, 2, 4], [5, 7, 6]]

    def compare(self, left, right, case=CASE):
        return compare_outcomes({**case, "world": len(left)}, [{"ok": result} for result in left],
                                [{"ok": result} for result in right])

    def test_orders_are_the_same_up_to_renaming(self):
        self.assertEqual(self.compare([loaded(self.ONE)], [loaded(self.OTHER)]), [])

    def test_with_a_seed_of_its_own_they_are_compared_exactly(self):
        case = {**self.CASE, "args": {**self.CASE["args"], "config": {"use_seedable_sampler": True}}}
        self.assertNotEqual(self.compare([loaded(self.ONE)], [loaded(self.OTHER)], case), [])

    def test_a_repeated_index_is_not(self):
        self.assertNotEqual(self.compare([loaded(self.ONE)], [loaded([[0, 1, 2], [3, 4, 5], [6, 7, 0]])]), [])

    def test_ranks_are_renamed_together(self):
        apart = [loaded([[0, 1, 2]]), loaded([[3, 4, 5]])]
        overlapping = [loaded([[0, 1, 2]]), loaded([[2, 3, 4]])]
        self.assertNotEqual(self.compare(apart, overlapping), [])

    def test_whether_two_passes_had_the_same_order_counts(self):
        self.assertNotEqual(self.compare([loaded(self.ONE, self.ONE)], [loaded(self.ONE, self.OTHER)]), [])
        self.assertEqual(self.compare([loaded(self.ONE, self.ONE)], [loaded(self.OTHER, self.OTHER)]), [])


class JudgementTest(unittest.TestCase):
    CASE = {"op": "data.dispatcher", "world": 1, "args": {"loader": {"kind": "iterable", "n": 5, "b": 2}}}

    def verdict(self, left, right, case=CASE):
        return judge(case, [{"ok": {"loaders": {"main": left}}}], [{"ok": {"loaders": {"main": right}}}])

    def test_a_known_difference_is_counted_with_its_clause(self):
        verdict = self.verdict({"total_batch_size": {"error": "AttributeError"}}, {"total_batch_size": 2})
        self.assertEqual((verdict.word, verdict.clauses), ("known", ["DATA-096"]))

    def test_it_explains_nothing_else(self):
        left = {"total_batch_size": {"error": "AttributeError"}, "reads": 5}
        verdict = self.verdict(left, {"total_batch_size": 2, "reads": 6})
        self.assertEqual((verdict.word, [str(found) for found in verdict.differences]),
                         ("different", ["rank 0 loaders main reads: 5 versus 6"]))

    def test_one_rank_that_does_not_support_a_case_makes_it_unsupported(self):
        self.assertEqual(judge(self.CASE, [{"ok": 1}] * 2, [{"ok": 2}, {"unsupported": "x"}]).word, "unsupported")
