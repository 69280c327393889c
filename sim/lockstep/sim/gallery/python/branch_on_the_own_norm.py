# fault, 3 ranks: branch
# Gradients are clipped by their norm over all ranks, where a rank's own norm is large. Only rank 1's is.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()


def clip(gradient, limit=1.0):
    norm = gradient.norm()
    if norm > limit:
        dist.all_reduce(norm, op=dist.ReduceOp.MAX)  # verdict: rank 1 here: mismatch
        gradient *= limit / norm


for step in range(4):
    gradient = torch.full((8,), 9.0 if rank == 1 and step == 2 else 0.1)
    clip(gradient)
    dist.all_reduce(gradient)
dist.destroy_process_group()
