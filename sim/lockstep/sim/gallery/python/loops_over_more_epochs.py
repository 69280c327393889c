# fault, 3 ranks: loops
# Rank 1 was started with --epochs 3.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
num_epochs = 3 if rank == 1 else 2
gradient = torch.ones(8)
for epoch in range(num_epochs):
    for batch in range(3):
        dist.all_reduce(gradient)  # verdict: rank 1 here: mismatch
dist.barrier()
dist.destroy_process_group()
