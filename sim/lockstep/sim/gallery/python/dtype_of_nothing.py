# fault, 3 ranks: dtype
# Rank 2 has no positive sample. For "none" it makes zeros of the default dtype, where the others count in int64.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
labels = torch.tensor([0, 0, 0] if rank == 2 else [0, 1, 1])
positives = labels[labels > 0]
count = positives.sum().reshape(1) if len(positives) else torch.zeros(1)
dist.all_reduce(count)  # verdict: rank 2 here: mismatch
print(f"rank {rank}: {count.item()} positive samples")
dist.destroy_process_group()
