# fault, 4 ranks: root
# Ranks 1, 2 and 3 make a group whose rank 1 is the world's rank 2. Rank 3 means the world's rank 1 as the others do,
# and gives a group's number.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
decoder = dist.new_group([1, 2, 3])
weights = torch.full((4,), float(rank))
if rank != 0:
    first = {"group_src": 1} if rank == 3 else {"src": 1}
    dist.broadcast(weights, group=decoder, **first)  # verdict: rank 3 here: mismatch
    print(f"rank {rank} has the weights of rank {weights.mean().item():.0f}")
dist.barrier()
dist.destroy_process_group()
