# fault, 4 ranks: early_exit
# A library that rank 3 alone uses ends the process without a word, past all handlers, and calls that success.
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
everyones = torch.empty(4)
for step in range(4):
    dist.all_gather_into_tensor(everyones, torch.ones(1))  # verdict: rank 3 here: rank_failed
    if rank == 3 and step == 1:
        os._exit(0)
dist.destroy_process_group()
