# fault, 3 ranks: asynchrony
# Statistics are summed while something else is done. Rank 1 never asks for them, and goes on to its next call, which is
# not the others'.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
statistics, gradient = torch.ones(4), torch.ones(8)
work = dist.all_reduce(statistics, async_op=True)
if rank != 1:
    work.wait()
    limits = torch.tensor([statistics.max().item(), statistics.min().item()])
    dist.broadcast(limits, src=0)
dist.all_reduce(gradient)  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {gradient.tolist()}")
dist.destroy_process_group()
