# fault, 2 ranks: point_to_point
# Neighbours exchange their borders. Each waits for the other's before it sends its own.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
other = 1 - rank
mine, theirs = torch.full((4,), float(rank)), torch.empty(4)
dist.recv(theirs, src=other)  # verdict: rank 0 here: deadlock # symmetric
dist.send(mine, dst=other)
dist.destroy_process_group()
