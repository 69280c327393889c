# fault, 3 ranks: groups
# A group is known by how many were made before it. Rank 2 made none of the first one, of which it is no member, and so
# its second group is not that of the others.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank in (0, 1):
    encoder = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(2), group=encoder)
dist.all_reduce(torch.ones(4), group=dist.new_group([0, 1, 2]))  # verdict: rank 2 here: deadlock
dist.destroy_process_group()
