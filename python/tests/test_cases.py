"""Failures from the field, as scripts: where PyTorch alone is silent, gives garbage, aborts or says nothing but "timed
out", the verdict names the cause. The names are those of the cases in the simulator's own tests (sim/cases_test.cpp)."""

import unittest

import support

HEAD = """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    rank = dist.get_rank()
"""

TWO_BRANCHES = HEAD + """
    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)

        def forward(self, x, branch):
            return self.a(x) if branch == "a" else self.b(x)
"""


class Cases(support.ScriptTest):
    def expect(self, text, code, verdict, *words, options=(), **changes):
        run = self.run_script(text, 2, options, **changes)
        self.assertEqual((run.code, run.verdict["verdict"]), (code, verdict), f"{run.verdict}\n{run.output}")
        told = " ".join([run.verdict["cause"], *run.verdict.get("notes", []),
                         *(rank.get("message", "") for rank in run.verdict["ranks"])])
        for word in words:
            self.assertIn(word, told)
        return run

    def test_M1_what_a_reduce_leaves_elsewhere_is_undefined(self):
        # Gloo: the tensor of rank 1 becomes [[4, 5], [9, 11]], without a word.
        run = self.expect(HEAD + """
    x = torch.tensor([[1.0, 2], [3, 4]]) if rank == 0 else torch.tensor([[4.0, 5], [6, 7]])
    dist.reduce(x, 0)
    """, 0, "ok", "partial sums in the tensors of ranks other than the root", "rank 1")
        self.assertEqual(len(run.verdict["notes"]), 1)

    def test_M3_equal_bytes_of_different_types(self):
        # Gloo: rank 1 reads [1065353216, 1073741824], without an error.
        self.expect(HEAD + """
    dist.all_reduce(torch.ones(2) if rank == 0 else torch.ones(2, dtype=torch.int32))
    """, 11, "mismatch", "float32 [2]", "int32 [2]")

    SWAPPED = HEAD + """
    a, b = torch.full((1,), rank + 1.0), torch.full((1,), rank + 100.0)
    if rank == 0:
        dist.all_reduce(a)
        dist.all_reduce(b)
    else:
        dist.all_reduce(b)
        dist.all_reduce(a)
    """

    def test_M5_swapped_calls_are_noted(self):
        # Gloo: both become 102 on both ranks; DISTRIBUTED_DEBUG=DETAIL says nothing either.
        self.expect(self.SWAPPED, 0, "ok", "call sites differ: allreduce #1 of group world")

    def test_M5_swapped_calls_are_a_verdict_if_one_asks(self):
        self.expect(self.SWAPPED, 11, "mismatch", "train.py:10", "train.py:13", options=["--strict-places"])

    def test_M7_a_message_of_another_length(self):
        # Gloo: an abort of the process, or half a tensor without a word.
        for sent, received in ((4, 2), (2, 4)):
            self.expect(HEAD + f"""
    dist.send(torch.zeros({sent}), 1) if rank == 0 else dist.recv(torch.zeros({received}), 0)
    """, 11, "mismatch", f"float32 [{sent}]", f"float32 [{received}]")

    def test_M13_the_mean_of_integers(self):
        self.expect(HEAD + """
    x = torch.ones(2, dtype=torch.int64)
    dist.all_reduce(x)
    x /= dist.get_world_size()
    """, 12, "rank_failed", "result type Float can't be cast to the desired output type Long", "train.py:9")

    def test_N9_debug_detail_does_not_crash_and_mismatches_are_found(self):
        # torch 2.11 without a GPU: the constructor of DistributedDataParallel ends in a segmentation fault.
        text = HEAD + """
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    model(torch.ones(1, 1)).sum().backward()
    """
        self.expect(text, 0, "ok", TORCH_DISTRIBUTED_DEBUG="DETAIL")
        self.expect(text + "dist.all_reduce(torch.ones(1 + rank))\n", 11, "mismatch", "float32 [2]",
                    TORCH_DISTRIBUTED_DEBUG="DETAIL")

    def test_J1_an_unused_parameter_in_the_only_step(self):
        # PyTorch: each rank keeps its own gradient, and says so only at the next forward.
        step = """
    model = DistributedDataParallel(Branches())
    model(torch.full((1, 1), rank + 1.0), "a").sum().backward()
    """
        self.expect(TWO_BRANCHES + step, 12, "rank_failed", "without a gradient for b.weight")
        self.expect(TWO_BRANCHES + step + "torch.optim.SGD(model.parameters(), 0.1).step()\n", 12, "rank_failed",
                    "without a gradient for b.weight", "train.py:18")

    def test_J3_another_branch_on_each_rank(self):
        # PyTorch: nothing is averaged, without an error.
        step = """
    model = DistributedDataParallel(Branches(), find_unused_parameters=SEARCH)
    model(torch.ones(1, 1), "a" if rank == 0 else "b").sum().backward()
    print(model.module.a.weight.grad.item(), model.module.b.weight.grad.item(), flush=True)
    """
        self.expect(TWO_BRANCHES + step.replace("SEARCH", "False").replace(
            "model.module.a.weight.grad.item(), model.module.b.weight.grad.item(), ", ""), 12, "rank_failed",
            "backward ended without a gradient for")
        run = self.expect(TWO_BRANCHES + step.replace("SEARCH", "True"), 0, "ok")
        self.assertEqual(run.output.count("0.5 0.5"), 2)

    def test_J5_two_forwards_before_one_backward_with_running_statistics(self):
        # PyTorch: "modified by an inplace operation", and nothing of the buffers.
        text = HEAD + """
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    model = DistributedDataParallel(net BUFFERS)
    (model(torch.randn(4, 2)) + model(torch.randn(4, 2))).sum().backward()
    """
        self.expect(text.replace("BUFFERS", ""), 12, "rank_failed", "modified by an inplace operation",
                    "broadcast_buffers=False", "train.py:10")
        self.expect(text.replace("BUFFERS", ", broadcast_buffers=False"), 0, "ok")


if __name__ == "__main__":
    unittest.main()
