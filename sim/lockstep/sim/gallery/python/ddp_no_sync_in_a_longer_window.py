# fault, 3 ranks: ddp
# Two micro-batches make a step, and gradients stay local in all but the last. Rank 2 was told that four make one.
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(4, 2))
window = 4 if rank == 2 else 2
for micro_batch in range(1, 9):
    is_last = micro_batch % window == 0
    with nullcontext() if is_last else model.no_sync():
        model(torch.ones(2, 4)).mean().backward()  # verdict: rank 2 here: deadlock
