"""Speaks protocol 1 with `lockstep conformance serve`.

Run: python3 conformance/tests/serve/test_serve.py BIN [TEST ...]
The answers of Examples were compared with real Accelerate 1.15.
"""
import json
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from conformance.runner.world import World

BIN = pathlib.Path()


def tensor(data, dtype="float32", shape=None):
    return {"t": dtype, "shape": [len(data)] if shape is None else shape, "data": data}


def ints(*data):
    return tensor(list(data), "int64")


class Served(unittest.TestCase):
    """Worlds of 1 to 3 ranks, which live as long as the class's tests do well."""
    worlds: dict[int, World] = {}

    @classmethod
    def world(cls, size: int) -> World:
        if size not in Served.worlds:
            Served.worlds[size] = new_world(size)
        return Served.worlds[size]

    def ask(self, size: int, op: str, args: dict, rank_args=None, **more) -> list[dict]:
        """The outcome of each rank."""
        return ask(self.world(size), op, args, rank_args, **more)

    def results(self, size: int, op: str, args: dict, rank_args=None, **more) -> list:
        """Every rank's RESULT, where all of them are to have one."""
        outcomes = self.ask(size, op, args, rank_args, **more)
        self.assertTrue(all("ok" in outcome for outcome in outcomes), outcomes)
        return [outcome["ok"] for outcome in outcomes]

    def answer_to(self, line: str) -> dict:
        """What a world of one says to a line."""
        rank = self.world(1).ranks[0]
        rank.send(line.encode() + b"\n")
        while (answer := rank.read()) == b"":
            pass
        return json.loads(answer)

    def check(self, size: int, op: str, args: dict, expected: list, rank_args=None, **more):
        """`expected` has an answer for each rank."""
        self.assertEqual(self.ask(size, op, args, rank_args, **more), expected)

    def check_ok(self, size: int, op: str, args: dict, results: list, rank_args=None, **more):
        self.check(size, op, args, [{"ok": result} for result in results], rank_args, **more)


def new_world(size: int) -> World:
    return World([str(BIN / "lockstep"), "conformance", "serve"], size)


def ask(world: World, op: str, args: dict, rank_args=None, **more) -> list[dict]:
    world.send({"op": op, "args": args, **({} if rank_args is None else {"rank_args": rank_args}), **more})
    return world.collect()


def tearDownModule():
    for world in Served.worlds.values():
        world.kill()


class Examples(Served):
    """The examples of the protocol."""

    def test_shard(self):
        self.check_ok(1, "data.shard", {"n": 9, "b": 2, "shards": 2}, [
            [{"len": 3, "total_length": 5, "passes": [[[0, 1], [4, 5], [8, 0]]]},
             {"len": 3, "total_length": 5, "passes": [[[2, 3], [6, 7], [1, 2]]]}]])

    def test_loader(self):
        first, _ = self.results(2, "data.loader", {"loader": {"n": 5, "b": 2}, "config": {"even_batches": True}})
        summary = first["loaders"]["main"]
        self.assertEqual(summary.pop("epochs_seen"), [])
        self.assertEqual(first, {
            "loaders": {"main": {"len": 2, "total_batch_size": 4, "total_dataset_length": 5, "iteration": 1,
                                 "reads": 4}},
            "log": [{"batches": [[0, 1], [4, 0]], "end": [False, True], "remainder": [1, 1],
                     "state_end": [False, True], "state_remainder": [1, 1], "after": [True, 1, False, -1, 1]}],
            "active": 0})

    def test_iterable_shard(self):
        self.check_ok(1, "data.iterable_shard", {"n": 2, "b": 4, "split_batches": True, "shards": 2}, [
            [{"len": 2, "passes": [[0, 1]]}, {"len": 2, "passes": [[0, 1]]}]])  # len: the true one (DATA-056)

    def test_dispatcher(self):
        first, second = self.results(2, "data.dispatcher", {"loader": {"kind": "iterable", "n": 5, "b": 2},
                                                            "record_slices": True})
        summary = first["loaders"]["main"]
        self.assertEqual((summary["len"], summary["iteration"], summary["reads"]), ({"error": "TypeError"}, 1, 5))
        record = first["log"][0]
        keeps_head, *shares = record.pop("slices")  # the head of the pass may have to fill its end
        self.assertEqual((keeps_head, shares), ([0, 2, 0, 2], [[0, 2, 0, 2], [0, 1, 0, 2]]))
        self.assertEqual(record, {"batches": [[0, 1], [4]], "end": [False, True], "remainder": [-1, 1],
                                  "state_end": [False, True], "state_remainder": [-1, 1],
                                  "after": [True, 1, False, -1, 1]})
        self.assertEqual(second["loaders"]["main"]["reads"], 0)

    def test_skip_first_batches(self):
        first, _ = self.results(2, "data.skip_first_batches", {"loader": {"n": 9, "b": 2}, "skip": 1})
        self.assertEqual((first["len"], first["passes"][0]["batches"]), (2, [[4, 5], [8, 0]]))
        self.assertEqual(first["original"]["batches"], [[0, 1], [4, 5], [8, 0]])

    def test_resume(self):
        for more, finished in (({}, None), ({"via": "state_dict", "config": {"use_stateful_dataloader": True}}, False)):
            first, _ = self.results(2, "data.resume", {"loader": {"n": 6, "b": 1}, "consume": 2, **more})
            self.assertEqual(first["finished"], finished)
            batches = [first[run]["batches"] for run in ("before", "resumed", "next")]
            self.assertEqual(batches, [[[0], [2]], [[4]], [[0], [2], [4]]])

    def test_seedable_sampler(self):
        self.check_ok(1, "data.seedable_sampler", {"n": 8, "data_seed": 42, "passes": [{}, {}]}, [
            {"passes": [[6, 3, 0, 7, 2, 1, 4, 5], [4, 5, 7, 1, 3, 2, 6, 0]], "epoch": 2, "initial_seed": 42}])

    def test_process(self):
        for size in (1, 2):
            self.check_ok(size, "state.process", {"of": "gradient"}, [
                {"sync_gradients": True, "num_steps": 1, "adjust_scheduler": False, "sync_with_dataloader": True,
                 "end_of_dataloader": False, "remainder": -1, "in_dataloader": False}] * size)

    def test_split_between_processes(self):
        whole = ["a", "b", "c", "d"]
        self.check_ok(3, "state.split_between_processes", {"input": whole},
                      [{"part": part, "input_after": whole} for part in (["a", "b"], ["c"], ["d"])])

    def test_control(self):
        calls = [{"v": "set_trigger", "ranks": [1]}, {"v": "check_trigger"}, {"v": "check_trigger"}]
        self.check_ok(2, "state.control", {"calls": calls}, [{"log": [None, True, False]}] * 2)

    def test_gather(self):
        inputs = [ints(3), ints(4)]
        self.check_ok(2, "ops.gather", {}, [{"value": ints(3, 4), "input_after": one} for one in inputs],
                      rank_args=[{"input": one} for one in inputs])

    def test_gather_object(self):
        inputs = [[1], [2, 2]]
        self.check_ok(2, "ops.gather_object", {}, [{"value": [1, 2, 2], "input_after": one} for one in inputs],
                      rank_args=[{"input": one} for one in inputs])

    def test_reduce(self):
        self.check_ok(2, "ops.reduce", {"input": tensor([1, 2]), "reduction": "sum"},
                      [{"value": tensor([2.0, 4.0]), "input_after": tensor([1.0, 2.0])}] * 2)

    def test_broadcast(self):
        self.check_ok(2, "ops.broadcast", {"from_process": 1}, [{"value": ints(4), "input_after": ints(4)}] * 2,
                      rank_args=[{"input": ints(3)}, {"input": ints(4)}])

    def test_broadcast_object_list(self):
        self.check_ok(2, "ops.broadcast_object_list", {"from_process": 0},
                      [{"value": ["a"], "input_after": ["a"]}] * 2, rank_args=[{"input": ["a"]}, {"input": [None]}])

    def test_pad_across_processes(self):
        self.check_ok(2, "ops.pad_across_processes", {"pad_first": True, "pad_index": -1},
                      [{"value": ints(-1, 1), "input_after": ints(1)},
                       {"value": ints(1, 2), "input_after": ints(1, 2)}],
                      rank_args=[{"input": ints(1)}, {"input": ints(1, 2)}])

    def test_verify(self):
        rows = [{"input": tensor([0.0] * 2 * n, shape=[n, 2])} for n in (1, 2)]
        for answer in self.ask(2, "ops.verify", {"call": "gather"}, rows):
            self.assertEqual(answer["error"], "DistributedOperationException")
            self.assertIn("Process 1: ", answer["message"])

    def test_gather_for_metrics(self):
        self.check_ok(2, "ops.gather_for_metrics",
                      {"loader": {"n": 5, "b": 2}, "what": "objects", "use_gather_object": True},
                      [{"passes": [{"gathered": [[0, 1, 2, 3], [4]]}]}] * 2)

    def test_train_program(self):
        micro_batch = [{"v": "forward"}, {"v": "backward"}, {"v": "step"}, {"v": "zero_grad"}]
        self.check_ok(1, "train.program", {
            "models": {"m": {"kind": "scale", "init": {"w": tensor([0])}}},
            "optimizers": {"o": {"kind": "sgd", "models": ["m"], "lr": 1.0}},
            "loaders": {"train": {"n": 2, "item": "x1"}}, "accumulation": {"num_steps": 2},
            "program": [{"v": "loop", "body": [{"v": "accumulate", "body": micro_batch}]}]}, [
                {"log": [{"v": "loop"}, {"v": "next", "batch": [0], "end": False, "remainder": 0},
                         {"v": "accumulate", "sync": False, "step": 1}, {"v": "forward", "loss": 0.0},
                         {"v": "backward"}, {"v": "step", "stepped": False, "skipped": False}, {"v": "zero_grad"},
                         {"v": "next", "batch": [1], "end": True, "remainder": 0},
                         {"v": "accumulate", "sync": True, "step": 0}, {"v": "forward", "loss": 0.0},
                         {"v": "backward"}, {"v": "step", "stepped": True, "skipped": False}, {"v": "zero_grad"},
                         {"v": "next", "batch": None, "end": False, "remainder": -1}],
                 "params": {"m": {"w": tensor([-1.5])}}}])

    def test_rng_program(self):
        for size in (1, 2):
            self.check_ok(size, "rng.program", {"program": [
                {"v": "generator", "name": "g", "seed": 5}, {"v": "sync", "types": ["generator"], "generator": "g"},
                {"v": "initial_seed", "source": "g"}]}, [
                    {"log": [{"v": "generator"}, {"v": "sync"}, {"v": "initial_seed", "seed": 5}]}] * size)

    def test_scaler(self):
        self.check_ok(1, "amp.scaler", {"grads": [1.0, "Infinity"]}, [
            {"steps": [{"params": [-1.0], "skipped": [False], "scale": 65536.0},
                       {"params": [-1.0], "skipped": [True], "scale": 32768.0}]}])

    def test_autocast(self):
        init = {"0.weight": tensor([2], shape=[1, 1]), "0.bias": tensor([1])}
        model = {"kind": "mlp", "widths": [1, 1], "init": init}
        self.check_ok(1, "amp.autocast", {"accelerator": {"mixed_precision": "bf16"}, "model": model,
                                          "input": tensor([3], shape=[1, 1])}, [
            {"output": tensor([7.0], shape=[1, 1]), "param_dtype": "float32", "block_dtype": "bfloat16",
             "outer_dtype": "float32", "native_amp": True, "scaler": False}])


class Training(Served):
    def learning_rates(self, scheduler: dict, num_steps: int) -> list[float]:
        micro_batch = [{"v": "forward"}, {"v": "backward"}, {"v": "step"}, {"v": "sched"}]
        result, = self.results(1, "train.program", {
            "models": {"m": {"kind": "scale", "init": {"w": tensor([1])}}},
            "optimizers": {"o": {"kind": "sgd", "models": ["m"], "lr": 1.0, "momentum": 0.9}},
            "schedulers": {"s": {"optimizer": "o", **scheduler}}, "loaders": {"train": {"n": num_steps, "item": "x1"}},
            "program": [{"v": "loop", "body": micro_batch}]})
        steps = [entry for entry in result["log"] if entry["v"] == "sched"]
        self.assertEqual([entry["position"] for entry in steps], list(range(1, num_steps + 1)))
        return [entry["lr"][0] for entry in steps]

    def test_every_kind_of_schedule(self):
        for scheduler, rates in (({"kind": "inverse"}, [1 / 2, 1 / 3, 1 / 4]),
                                 ({"kind": "step", "step_size": 2, "gamma": 0.1}, [1, 0.1, 0.1]),
                                 ({"kind": "linear", "start_factor": 0.5, "end_factor": 1.0, "total_iters": 2},
                                  [0.75, 1, 1]),
                                 ({"kind": "cosine", "t_max": 2}, [0.5, 0, 0.5]),
                                 ({"kind": "one_cycle", "max_lr": 1.0, "total_steps": 4},
                                  [0.811745653949763, 0.28306099820869923, 4e-06])):
            with self.subTest(scheduler["kind"]):
                for rate, expected in zip(self.learning_rates(scheduler, 3), rates):
                    self.assertAlmostEqual(rate, expected, delta=1e-12)

    def test_a_verb_that_fails_ends_the_program_and_says_so(self):
        program = [{"v": "fail", "ranks": [1]}, {"v": "params"}]
        first, second = self.results(2, "train.program", {
            "models": {"m": {"kind": "scale", "init": {"w": tensor([1])}}}, "program": program})
        self.assertEqual(first["log"], [{"v": "fail"}, {"v": "params", "params": {"w": tensor([1.0])}}])
        self.assertEqual(second["log"], [{"v": "fail", "failed": "RuntimeError"}])

    def test_gradients_of_several_models_are_named_by_model_and_parameter(self):
        models = {name: {"kind": "scale", "init": {"w": tensor([1])}} for name in ("a", "b")}
        result, = self.results(1, "train.program", {"models": models, "program": [
            {"v": "forward", "model": "b", "input": tensor([3])}, {"v": "backward", "grads": True}]})
        self.assertEqual(result["log"][-1]["grads"], {"a.w": None, "b.w": tensor([3.0])})


class Session(Served):
    def test_the_hello_names_the_subject_and_what_it_can_do(self):
        for hello in self.world(2).hellos:
            self.assertEqual((hello["hello"], hello["name"]), (1, "lockstep"))
            self.assertIn("ops.gather", hello["capabilities"])
            self.assertNotIn("comm.allreduce", hello["capabilities"])

    def test_what_is_not_known_is_unsupported_and_named(self):
        shard, loader = {"n": 4, "b": 2}, {"n": 3}
        early, nested = {"v": "pass", "stop_after": 0}, {"v": "pass", "nested": {"x": []}}
        for op, args, named in (("data.shred", {}, "data.shred"), ("data.shard", {**shard, "colour": 1}, "colour"),
                                ("data.shard", {"n": "four", "b": 2}, "four"),
                                ("ops.gather", {"via": "telegraph"}, "via"),
                                ("ops.gather", {"input": {"t": "float4", "shape": [0], "data": []}}, "float4"),
                                ("rng.program", {"program": [{"v": "roll"}]}, "roll"),
                                ("state.control", {"calls": [{"v": "print", "text": "x", "twice": True}]}, "twice"),
                                ("state.process", {"device": "cuda"}, "cuda"),
                                ("data.loader", {"loader": {"n": 1}, "loaders": {"main": {"n": 1}}}, "loaders"),
                                ("data.loader", {}, "loader"),
                                ("ops.gather_for_metrics", {"loaders": {"main": {"n": 1}}}, "loader"),
                                ("train.program", {"loader": {"n": 1}, "program": []}, "loader"),
                                ("data.loader", {"loader": loader, "script": [early]}, "at least 1"),
                                ("data.loader", {"loader": loader, "script": [nested]}, "number"),
                                ("data.resume", {"loader": {"n": 3}, "consume": 0}, "1 or more"),
                                *((op, {"n": -1}, "0 or more") for op in ("data.shard", "data.iterable_shard",
                                                                          "data.seedable_sampler")),
                                ("data.loader", {"loader": {"n": -1}}, "0 or more"),
                                *(("amp.autocast", {"model": {**model, "init": {}}}, named)
                                  for model, named in (({"kind": "mlp", "widths": []}, "widths"),
                                                       ({"kind": "batchnorm", "d": 0}, "1 or more"),
                                                       ({"kind": "unused", "branches": 0}, "1 or more"))),
                                ("ops.broadcast", {"input": 1, "from_process": 1 << 32}, "32 bits")):
            answer, = self.ask(1, op, args)
            self.assertIn(named, answer.get("unsupported", answer), (op, args))

    def test_fields_of_the_request_are_known_too(self):
        answer = self.answer_to('{"id": 901, "op": "state.process", "args": {}, "colour": 3}')
        self.assertIn("colour", answer["unsupported"])

    def test_a_script_reads_its_own_states_after_a_reset(self):
        precision = {"of": "accelerator", "name": "mixed_precision"}
        for reset, read in (({"of": "partial"}, {"of": "partial", "name": "num_processes"}),
                            ({"of": "accelerator"}, precision),
                            ({"of": "accelerator", "partial_too": True}, precision)):
            result, = self.results(1, "state.control", {"calls": [{"v": "reset", **reset}, {"v": "read", **read}]})
            self.assertEqual(result["log"][1]["error"], "AttributeError", (reset, read))

    def test_bad_lines_are_unsupported(self):
        for line in ("{", "[]", "7", '{"id": 900}', '{"id": 900, "op": 7}',
                     '{"id": 900, "op": "data.shard", "args": []}'):
            self.assertIn("unsupported", self.answer_to(line))

    def test_rank_arguments_lie_over_the_common_ones(self):
        first, second = self.results(2, "data.shard", {"n": 4, "b": 2, "shards": 1},
                                              [{}, {"b": 4}])
        self.assertEqual((first[0]["len"], second[0]["len"]), (2, 1))

    def test_an_error_is_answered_with_its_kind(self):
        answer, = self.ask(1, "data.shard", {"n": 4, "b": 3, "split_batches": True, "shards": 2})
        self.assertEqual(answer["error"], "ValueError")
        self.assertTrue(answer["message"])

    def test_the_end_of_input_is_exit_code_0_on_every_rank(self):
        world = new_world(2)
        ask(world, "state.process", {"of": "partial"})
        world.close()
        self.assertEqual([rank.process.returncode for rank in world.ranks], [0, 0])

    def test_prints_do_not_reach_stdout(self):
        answers = self.results(2, "state.control", {"calls": [{"v": "print", "text": "x"}]})
        self.assertEqual(answers[0], {"log": [{"printed": True}]})

    def test_a_rank_that_fails_says_so_at_once_while_its_peers_wait(self):
        world = new_world(2)
        self.addCleanup(world.kill)
        rank_args = [{"input": ints(1)}, {"input": "no tensor"}]
        waiting, failed = ask(world, "ops.gather", {}, rank_args, timeout_s=1)
        self.assertEqual((waiting, failed["error"]), ({"hang": True}, "TypeError"))


class Reset(Served):
    def test_a_case_finds_nothing_of_the_one_before(self):
        fresh = self.results(2, "state.process", {"of": "gradient"})
        self.results(2, "data.loader", {"loader": {"n": 9, "b": 2}, "accelerator": {"gradient_accumulation_steps": 3},
                                      "script": [{"v": "pass", "stop_after": 1}]})
        self.assertEqual(self.results(2, "state.process", {"of": "gradient"}), fresh)

    def test_generators_are_seeded_with_the_case_s_seed(self):
        program = {"program": [{"v": "draw", "source": "torch"}]}
        ones = self.results(2, "rng.program", program, seed=1)
        self.assertEqual(ones[0], ones[1])
        self.results(2, "rng.program", {"program": [{"v": "seed", "seed": 9, "deterministic": True}]})
        self.assertEqual(self.results(2, "rng.program", program, seed=1), ones)
        own = self.results(2, "rng.program", program, [{}, {"rank_seed": 2}], seed=1)
        self.assertEqual(own[0], ones[0])
        self.assertNotEqual(own[1], ones[0])

    def test_the_case_s_environment_ends_with_it(self):
        debug = {"of": "partial", "env": {"ACCELERATE_DEBUG_MODE": "1"}}
        self.assertTrue(all(one["debug"] for one in self.results(2, "state.process", debug)))
        self.assertFalse(any(one["debug"] for one in self.results(2, "state.process", {"of": "partial"})))
        steps = {"of": "gradient", "accelerator": {}, "env": {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4"}}
        self.assertEqual([one["num_steps"] for one in self.results(2, "state.process", steps)], [4, 4])


class Speed(Served):
    def test_a_thousand_small_requests_a_minute(self):
        args = {"input": ints(1)}
        self.results(2, "ops.gather", args)
        num_requests = 100
        begin = time.monotonic()
        for _ in range(num_requests):
            self.results(2, "ops.gather", args)
        self.assertGreater(num_requests / (time.monotonic() - begin) * 60, 1000)


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
