# fault, 3 ranks: branch
# A step whose loss is not a number is skipped, before the call. The loss is not a number on rank 2 alone, which is then
# a call ahead of the others until it ends.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.tensor([1.0], requires_grad=True)
for step in range(5):
    x = torch.tensor([-1.0 if rank == 2 and step == 1 else 4.0])
    loss = (weight * x).sqrt().sum()
    if loss.isnan():
        continue
    weight.grad = None
    loss.backward()
    dist.all_reduce(weight.grad)  # verdict: rank 2 here: deadlock
