# fault, 3 ranks: splits
# Rank 1 expects what the step before brought, when rank 0 had two tokens for it. Each of the two believes itself.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
# How many tokens each rank (row) has for the expert of each rank (column).
counts = torch.tensor([[2, 3, 1], [1, 2, 2], [4, 1, 2]])
sends, receives = counts[rank].tolist(), counts[:, rank].tolist()
if rank == 1:
    receives[0] = 2
tokens = torch.full((sum(sends), 4), float(rank))
routed = torch.empty(sum(receives), 4)
dist.all_to_all_single(routed, tokens, receives, sends)  # verdict: rank 1 here: mismatch # symmetric
print(f"rank {rank}: tokens of {routed[:, 0].tolist()}")
dist.destroy_process_group()
