# fault, 3 ranks: objects
# Rank 2 gathers the names of its files before the number of them, the others after it.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
files = [f"shard-{i}" for i in range(rank + 1)]


def share_names():
    names = [None] * world_size
    dist.all_gather_object(names, files)  # verdict: rank 2 here: mismatch
    return names


if rank == 2:
    names = share_names()
num_files = torch.tensor([float(len(files))])
dist.all_reduce(num_files)
if rank != 2:
    names = share_names()
print(f"rank {rank}: {names}")
dist.destroy_process_group()
