# fault, 3 ranks: shape
# Each rank counts its labels, and takes the largest that it has seen for the last class. Rank 1 has seen no 4.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
labels = torch.tensor([[4, 0, 2], [0, 3, 3], [1, 4, 4]])[rank]
counts = torch.bincount(labels)
dist.all_reduce(counts)  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {counts.tolist()}")
dist.destroy_process_group()
