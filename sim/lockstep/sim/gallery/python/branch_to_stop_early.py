# fault, 3 ranks: branch
# Each rank stops when its own score is good enough. Rank 2's is, and it goes on to what comes after training.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
gradient = torch.ones(8)
for epoch in range(4):
    dist.all_reduce(gradient)
    score = 0.9 if rank == 2 and epoch == 1 else 0.5
    if score > 0.8:
        break
result = torch.tensor([score, epoch])
dist.broadcast(result, src=0)  # verdict: rank 2 here: mismatch
dist.destroy_process_group()
