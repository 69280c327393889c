# fault, 3 ranks: groups
# All ranks must make a group, whether they belong to it or not. Rank 1 alone prepares for another kind of evaluation.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
evaluates = rank == 1
if evaluates:
    group = dist.new_group([0, 1, 2])  # verdict: rank 1 here: deadlock
accuracy = torch.full((1,), 0.5)
dist.all_reduce(accuracy)
dist.destroy_process_group()
