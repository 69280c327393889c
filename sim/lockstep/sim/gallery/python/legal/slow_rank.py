# legal, 3 ranks: uneven_times
# Ranks take turns in being slow, in the middle of training. Who sleeps is waited for, and not accused.
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
gradient = torch.ones(8)
for step in range(3):
    if step == rank:
        time.sleep(2)
    dist.all_reduce(gradient)
dist.destroy_process_group()
