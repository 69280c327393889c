# fault, 3 ranks: early_exit
# The kernel ends the largest process when memory runs out. Nobody is told.
import os
import signal

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
gradient = torch.ones(64)
for step in range(4):
    dist.all_reduce(gradient)  # verdict: rank 2 here: rank_failed
    if rank == 2 and step == 2:
        os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
