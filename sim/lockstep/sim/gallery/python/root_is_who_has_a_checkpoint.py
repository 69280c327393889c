# fault, 3 ranks: root
# After a restart, whoever has a checkpoint sends it to the others. Rank 2 has an old one lying about.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
has_checkpoint = rank != 1
holder = rank if has_checkpoint else 0
weights = torch.full((4, 4), float(rank))
dist.broadcast(weights, src=holder)  # verdict: rank 2 here: mismatch
print(f"rank {rank} has the weights of rank {weights.mean().item():.0f}")
dist.destroy_process_group()
