# legal, 4 ranks: groups
# All make the group, and two of the four talk among themselves for as long as they like.
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
pair = dist.new_group([1, 2])
if rank in (1, 2):
    for _ in range(30):
        dist.all_reduce(torch.ones(4), group=pair)
        time.sleep(0.01)
dist.barrier()
dist.destroy_process_group()
