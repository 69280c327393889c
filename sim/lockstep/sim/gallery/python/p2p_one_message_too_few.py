# fault, 3 ranks: point_to_point
# Rank 1 expects four micro-batches, rank 0 has made three of its data.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
activations = torch.ones(8)
for micro_batch in range(4 if rank == 1 else 3):
    if rank == 0:
        dist.send(activations, dst=1)
    if rank == 1:
        dist.recv(activations, src=0)  # verdict: rank 1 here: deadlock
dist.barrier()
dist.destroy_process_group()
