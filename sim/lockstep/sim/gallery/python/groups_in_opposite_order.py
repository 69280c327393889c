# fault, 3 ranks: groups
# Each group's calls are in order. But rank 1 waits in the second group for the others, who wait in the first for it.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
gradients = dist.new_group([0, 1, 2])
metrics = dist.new_group([0, 1, 2])
x = torch.ones(4)
for step in range(3):
    order = [metrics, gradients] if rank == 1 and step == 2 else [gradients, metrics]
    for group in order:
        dist.all_reduce(x, group=group)  # verdict: rank 1 here: deadlock
dist.destroy_process_group()
