"""A known difference explains what its clause accepts, and not what stands beside it."""

import unittest

from conformance.runner.judge import judge

def data(op="data.loader", world=2, rank_args=None, **args):
    case = {"op": op, "world": world, "args": args}
    return case if rank_args is None else {**case, "rank_args": rank_args}


def seen(remainder, length=2):
    return {"batches": [[0]], "end": [True], "remainder": [remainder], "after": [True, remainder, False, -1, 1],
            "len": length}


def ok(result):
    return [{"ok": result}]


def failed(kind):
    return [{"error": kind}]


# (clause or None where nothing explains the difference, case, Accelerate's outcomes, the other side's)
TABLE = [
    ("DATA-002", data(loader={"n": 4}, accelerator={"split_batches": True}), ok({"len": 1}), ok({"len": 2})),
    (None, data(loader={"n": 4}, config={"split_batches": True}), ok({"len": 1}), ok({"len": 2})),
    ("DATA-012", data(loader={"n": 4, "b": None}), ok({"log": [{"failed": "TypeError"}]}), failed("TypeError")),
    (None, data(loader={"n": 4, "b": None}), ok({"log": [{"failed": "TypeError"}]}), failed("RuntimeError")),
    ("DATA-031", data("data.shard", n=1, b=2, split_batches=True, even_batches=False), ok({"len": 1}), ok({"len": 0})),
    (None, data("data.shard", n=1, b=2, split_batches=True), ok({"len": 1}), ok({"len": 0})),
    ("DATA-085", data("data.dispatcher", 3, loader={"n": 1}), ok({"batches": [[]]}), ok({"batches": [[0]]})),
    (None, data("data.dispatcher", 3, loader={"n": 2}), ok({"batches": [[]]}), ok({"batches": [[0]]})),
    ("DATA-089", data("data.dispatcher", loader={"n": 0}), ok({"failed": "TypeError"}), ok({"after": [False]})),
    ("DATA-089", data("data.dispatcher", loader={"n": 3, "b": 2, "drop_last": True}),
     ok({"failed": "TypeError"}), ok({})),
    (None, data("data.dispatcher", loader={"n": 4, "b": 2, "drop_last": True}), ok({"failed": "TypeError"}), ok({})),
    ("DATA-101", data(loader={"n": 9, "shuffle": True}, config={"use_seedable_sampler": True},
                      rank_args=[{"rank_seed": 1}, {"rank_seed": 2}]), ok({"batches": [[3]]}), ok({"batches": [[4]]})),
    (None, data(loader={"n": 9, "shuffle": True}, config={"use_seedable_sampler": True}),
     ok({"batches": [[3]]}), ok({"batches": [[4]]})),
    ("DATA-106", data("data.resume", loader={"n": 5}, consume=1), ok({"resumed": seen(-1)}), ok({"resumed": seen(1)})),
    (None, data("data.resume", loader={"n": 5}, consume=1), ok({"next": seen(-1)}), ok({"next": seen(1)})),
    (None, data("data.resume", loader={"n": 5}, consume=1), ok({"resumed": seen(1, 2)}), ok({"resumed": seen(1, 3)})),
    ("OPS-006", data("ops.gather_object", rank_args=[{"input": {"k": 1}}]), ok({"value": ["k"]}), failed("TypeError")),
    (None, data("ops.gather_object", rank_args=[{"input": [1]}]), ok({"value": [1]}), failed("TypeError")),
    ("OPS-014", data("ops.pad_across_processes"), ok({"value": {"t": "int64", "shape": [1], "data": [1]}}),
     ok({"value": {"t": "bool", "shape": [1], "data": [True]}})),
    (None, data("ops.pad_across_processes"), ok({"value": {"t": "int64", "shape": [1], "data": [1]}}),
     ok({"value": {"t": "int64", "shape": [1], "data": [2]}})),
    ("STATE-139", data("state.split_between_processes", input={"a": [1, 2]}), ok({"input_after": {"a": [1]}}),
     ok({"input_after": {"a": [1, 2]}})),
    (None, data("state.split_between_processes", input=[1, 2]), ok({"input_after": [1]}), ok({"input_after": [1, 2]})),
    ("AMP-002", data("amp.autocast", accelerator={"mixed_precision": "fp16"}), ok({"scaler": False}),
     ok({"scaler": True})),
    (None, data("amp.autocast", accelerator={"mixed_precision": "bf16"}), ok({"scaler": False}), ok({"scaler": True})),
]


class KnownDifferencesTest(unittest.TestCase):
    def test_each_explains_its_own_and_nothing_else(self):
        for clause, case, left, right in TABLE:
            with self.subTest(clause=clause, op=case["op"], args=case["args"]):
                verdict = judge(case, left, right)
                self.assertEqual((verdict.word, verdict.clauses), ("known", [clause]) if clause else ("different", []))
