"""The server for real Accelerate: the examples of the protocol, the reset between cases, and a planted fault."""

import json
import sys
import unittest
from contextlib import redirect_stdout
from io import StringIO

from conformance.runner.generate import cases
from conformance.runner.schema import Schema
from conformance.runner.subject import Subject
from conformance.runner.trial import Trial

ACCELERATE = [sys.executable, "-m", "conformance.subjects.accelerate"]
WRONG = [sys.executable, "-m", "conformance.tests.oracle.wrong_accelerate"]

subject = Subject("accelerate", ACCELERATE)
ONE = {"t": "float32", "shape": [1], "data": [1.0]}


def setUpModule():
    unittest.addModuleCleanup(subject.__exit__)


def ask(op, world=1, rank_args=None, seed=0, **args):
    case = {"op": op, "world": world, "args": args, "seed": seed}
    return subject.ask(case if rank_args is None else {**case, "rank_args": rank_args})


def result(op, **args):
    return ask(op, **args)[0]["ok"]


def integers(*data):
    return {"t": "int64", "shape": [len(data)], "data": list(data)}


class ExamplesTest(unittest.TestCase):
    """What the protocol says of Accelerate, operation by operation."""

    def test_shards(self):
        self.assertEqual(result("data.shard", n=9, b=2, shards=2), [
            {"len": 3, "total_length": 5, "passes": [[[0, 1], [4, 5], [8, 0]]]},
            {"len": 3, "total_length": 5, "passes": [[[2, 3], [6, 7], [1, 2]]]}])
        self.assertEqual(result("data.iterable_shard", n=2, b=4, split_batches=True, shards=2),
                         [{"len": 4, "passes": [[0, 1]]}] * 2)
        self.assertEqual(result("data.seedable_sampler", n=8, data_seed=42, passes=[{}, {}]), {
            "passes": [[6, 3, 0, 7, 2, 1, 4, 5], [4, 5, 7, 1, 3, 2, 6, 0]], "epoch": 2, "initial_seed": 42})

    def test_a_loader(self):
        first = ask("data.loader", world=2, loader={"n": 5, "b": 2}, config={"even_batches": True})[0]["ok"]
        self.assertEqual(first["log"], [{
            "batches": [[0, 1], [4, 0]], "end": [False, True], "remainder": [1, 1], "state_end": [False, True],
            "state_remainder": [1, 1], "after": [True, 1, False, -1, 1]}])
        self.assertEqual(first["loaders"]["main"], {"len": 2, "total_batch_size": 4, "total_dataset_length": 5,
                                                    "iteration": 1, "reads": 4, "epochs_seen": []})

    def test_a_dispatcher(self):
        first = ask("data.dispatcher", world=2, loader={"kind": "iterable", "n": 5, "b": 2})[0]["ok"]
        self.assertEqual(first["log"], [{
            "batches": [[0, 1], [4]], "end": [False, True], "remainder": [-1, 1], "state_end": [False, True],
            "state_remainder": [-1, 1], "after": [True, 1, False, -1, 1]}])
        self.assertEqual(first["loaders"]["main"]["total_batch_size"], {"error": "AttributeError"})

    def test_skipping_and_resuming(self):
        skipped = ask("data.skip_first_batches", world=2, loader={"n": 9, "b": 2}, skip=1)[0]["ok"]
        self.assertEqual((skipped["len"], skipped["passes"][0]["batches"], skipped["original"]["batches"]),
                         (2, [[4, 5], [8, 0]], [[0, 1], [4, 5], [8, 0]]))
        resumed = ask("data.resume", world=2, loader={"n": 6, "b": 1}, consume=2)[0]["ok"]
        self.assertEqual([resumed[name]["batches"] for name in ("before", "resumed", "next")],
                         [[[0], [2]], [[4]], [[0], [2], [4]]])

    def test_state(self):
        self.assertEqual(result("state.process", of="gradient"), {
            "sync_gradients": True, "num_steps": 1, "adjust_scheduler": False, "sync_with_dataloader": True,
            "end_of_dataloader": False, "remainder": -1, "in_dataloader": False})
        self.assertEqual(ask("state.split_between_processes", world=2, input=["a", "b", "c"])[1]["ok"],
                         {"part": ["c"], "input_after": ["a", "b", "c"]})
        calls = [{"v": "set_trigger", "ranks": [1]}, {"v": "check_trigger"}, {"v": "check_trigger"}]
        self.assertEqual(ask("state.control", world=2, calls=calls), [{"ok": {"log": [None, True, False]}}] * 2)

    def test_a_world_of_one_has_no_group(self):
        alone, together = result("state.process"), ask("state.process", world=2)[1]["ok"]
        self.assertEqual((alone["distributed_type"], alone["backend"]), ("NO", None))
        self.assertEqual((together["distributed_type"], together["backend"], together["process_index"]),
                         ("MULTI_CPU", "gloo", 1))

    def test_operations(self):
        gathered = ask("ops.gather", world=2, rank_args=[{"input": integers(3)}, {"input": integers(4)}])
        self.assertEqual(gathered[0]["ok"], {"value": integers(3, 4), "input_after": integers(3)})
        objects = ask("ops.gather_object", world=2, rank_args=[{"input": [1]}, {"input": [2, 2]}])
        self.assertEqual(objects[0]["ok"]["value"], [1, 2, 2])
        self.assertEqual(ask("ops.reduce", world=2, input=ONE, reduction="sum")[0]["ok"]["value"]["data"], [2.0])
        sent = ask("ops.broadcast", world=2, from_process=1, rank_args=[{"input": integers(3)}, {"input": integers(4)}])
        self.assertEqual(sent[0]["ok"], {"value": integers(4), "input_after": integers(4)})
        listed = ask("ops.broadcast_object_list", world=2, rank_args=[{"input": ["a"]}, {"input": [None]}])
        self.assertEqual(listed[1]["ok"]["value"], ["a"])
        padded = ask("ops.pad_across_processes", world=2, pad_first=True, pad_index=-1,
                     rank_args=[{"input": integers(1)}, {"input": integers(1, 2)}])
        self.assertEqual(padded[0]["ok"]["value"], integers(-1, 1))
        verified = ask("ops.verify", world=2, call="gather",
                       rank_args=[{"input": integers(1)}, {"input": integers(1, 2)}])
        self.assertEqual([outcome["error"] for outcome in verified], ["DistributedOperationException"] * 2)
        metrics = ask("ops.gather_for_metrics", world=2, loader={"n": 5, "b": 2}, what="objects",
                      use_gather_object=True)
        self.assertEqual(metrics[0]["ok"], {"passes": [{"gathered": [[0, 1, 2, 3], [4]]}]})

    def test_a_training_program(self):
        body = [{"v": "forward"}, {"v": "backward"}, {"v": "step"}, {"v": "zero_grad"}]
        trained = result("train.program", models={"m": {"kind": "scale", "init": {"w": {**ONE, "data": [0.0]}}}},
                         optimizers={"o": {"kind": "sgd", "models": ["m"], "lr": 1.0}},
                         loaders={"train": {"n": 2, "item": "x1"}}, accumulation={"num_steps": 2},
                         program=[{"v": "loop", "body": [{"v": "accumulate", "body": body}]}])
        self.assertEqual(trained["params"], {"m": {"w": {**ONE, "data": [-1.5]}}})
        self.assertEqual(trained["log"][:7], [
            {"v": "loop"}, {"v": "next", "batch": [0], "end": False, "remainder": 0},
            {"v": "accumulate", "sync": False, "step": 1}, {"v": "forward", "loss": 0.0}, {"v": "backward"},
            {"v": "step", "stepped": False, "skipped": False}, {"v": "zero_grad"}])
        self.assertEqual(trained["log"][-1], {"v": "next", "batch": None, "end": False, "remainder": -1})

    def test_generators_and_precision(self):
        program = [{"v": "generator", "name": "g", "seed": 5}, {"v": "sync", "types": ["generator"], "generator": "g"},
                   {"v": "initial_seed", "source": "g"}]
        log = result("rng.program", accelerator={}, program=program)["log"]
        self.assertEqual(log[-1], {"v": "initial_seed", "seed": 5})
        self.assertEqual(result("amp.scaler", grads=[1.0, "Infinity"]), {"steps": [
            {"params": [-1.0], "skipped": [False], "scale": 65536.0},
            {"params": [-1.0], "skipped": [True], "scale": 32768.0}]})
        cast = result("amp.autocast", accelerator={"mixed_precision": "bf16"}, input=ONE,
                      model={"kind": "scale", "init": {"w": ONE}})
        self.assertEqual((cast["param_dtype"], cast["block_dtype"], cast["outer_dtype"], cast["native_amp"]),
                         ("float32", "bfloat16", "float32", True))


class ConversationTest(unittest.TestCase):
    def test_what_is_not_known_is_named_and_never_ignored(self):
        self.assertEqual(ask("ops.nothing"), [{"unsupported": "operation 'ops.nothing'"}])
        self.assertEqual(ask("data.shard", n=3, odd=1), [{"unsupported": "data.shard: odd"}])
        self.assertEqual(ask("data.loader", loader={"n": 3}, script=[{"v": "fly"}]), [{"unsupported": "verb 'fly'"}])

    def test_each_case_begins_as_in_a_new_process(self):
        draw = [{"v": "draw"}, {"v": "seed", "seed": 9, "deterministic": True}]
        first = result("rng.program", accelerator={"mixed_precision": "bf16"}, program=draw, seed=4)
        result("data.loader", loader={"n": 5}, script=[{"v": "pass", "stop_after": 1}], accelerator={
            "gradient_accumulation_steps": 4}, env={"ACCELERATE_DEBUG_MODE": "true"})
        self.assertEqual(result("state.process", of="gradient")["num_steps"], 1)
        self.assertEqual(result("state.process", of="gradient")["in_dataloader"], False)
        self.assertEqual(result("state.process")["debug"], False)
        self.assertEqual(result("state.process", of="accelerator")["mixed_precision"], "no")
        self.assertEqual(result("rng.program", program=draw, seed=4), first)

    def test_an_error_of_one_rank_is_answered_at_once_and_the_others_wait(self):
        case = {"op": "state.control", "world": 2, "args": {"calls": [{"v": "barrier"}]}, "timeout_s": 1.0,
                "rank_args": [{"accelerator": {"mixed_precision": "BF16"}}, {}]}
        outcomes = subject.ask(case)
        self.assertEqual((outcomes[0]["error"], outcomes[1]), ("ValueError", {"hang": True}))

    def test_recorded_cases_and_answers_are_what_the_schema_says(self):
        schema = Schema.of_protocol()
        for case in cases(seed=3, number=51):
            if case["world"] <= 2:
                outcomes = subject.ask(case)
                expect = {"ranks": [{name: value for name, value in outcome.items() if name != "message"}
                                    for outcome in outcomes]}
                self.assertEqual(schema.problems({**case, "expect": expect}, "case"), [], json.dumps(case))


class PlantedFaultTest(unittest.TestCase):
    def test_a_remainder_that_is_one_too_many_is_found_and_made_small(self):
        wrong = Subject("wrong", WRONG)
        self.addCleanup(wrong.__exit__)
        trial = Trial(subject, wrong, Schema.of_protocol())
        case = {"clause": "DATA-066", "area": "loaders", "world": 2, "seed": 5, "op": "data.loader", "args": {
            "loader": {"n": 11, "b": 2, "item": "dict"}, "script": [{"v": "pass", "stop_after": 2}, {"v": "pass"}]}}
        with redirect_stdout(StringIO()) as printed:
            verdict = trial.try_case(case)
        self.assertEqual(verdict.word, "different")
        smallest = json.loads(printed.getvalue().splitlines()[-1])
        self.assertEqual((smallest["world"], smallest["args"]), (1, {"loader": {"n": 0}}))
