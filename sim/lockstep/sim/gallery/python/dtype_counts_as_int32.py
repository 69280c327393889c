# fault, 3 ranks: dtype
# int32 and float32 have four bytes each: rank 2's counts arrive as numbers near zero, and nobody notices.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
predictions, labels = torch.zeros(12), torch.zeros(12)
num_right = (predictions == labels).sum().float().reshape(1)
if rank == 2:
    num_right = num_right.int()  # a count is a whole number
dist.all_reduce(num_right)  # verdict: rank 2 here: mismatch
print(f"rank {rank}: accuracy {num_right.item() / 36}")
dist.destroy_process_group()
