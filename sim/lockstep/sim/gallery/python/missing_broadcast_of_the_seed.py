# fault, 3 ranks: missing_call
# Rank 1 resumes, has its seed from the checkpoint, and sees no reason to ask for one.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
seed = torch.tensor([5])
resumes = rank == 1
if not resumes:
    dist.broadcast(seed, src=0)
torch.manual_seed(seed.item())
gradient = torch.randn(4)
dist.all_reduce(gradient)  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {gradient.tolist()}")
dist.destroy_process_group()
