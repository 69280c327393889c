# legal, 3 ranks: training
# Without synchronisation a rank may run as many micro-batches as it has.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(4, 2))
for step in range(3):
    with model.no_sync():
        for _ in range(rank + 1):
            model(torch.rand(2, 4)).mean().backward()
    model(torch.rand(2, 4)).mean().backward()
    model.zero_grad()
dist.destroy_process_group()
