# legal, 3 ranks: training
# Ranks have 3, 4 and 5 batches. In join() those that are through play along with the others.
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Join([model]):
    for batch in range(3 + rank):
        optimizer.zero_grad()
        model(torch.rand(2, 4)).square().mean().backward()
        optimizer.step()
dist.barrier()
dist.destroy_process_group()
