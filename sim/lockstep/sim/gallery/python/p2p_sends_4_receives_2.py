# fault, 3 ranks: point_to_point
# The receiver has room for less than what comes. Two ends, and nothing tells which of them is wrong.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    dist.send(torch.ones(4), dst=1)
if rank == 1:
    activations = torch.empty(2)
    dist.recv(activations, src=0)  # verdict: rank 1 here: mismatch # symmetric
dist.barrier()
dist.destroy_process_group()
