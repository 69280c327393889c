# fault, 3 ranks: missing_call
# A monitored barrier every other step, to notice lost ranks early. Rank 2 was told --no-monitor.
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
monitors = rank != 2
gradient = torch.ones(8)
for step in range(4):
    if monitors and step % 2 == 1:
        dist.monitored_barrier(timeout=timedelta(seconds=15))
    dist.all_reduce(gradient)  # verdict: rank 2 here: mismatch
dist.destroy_process_group()
