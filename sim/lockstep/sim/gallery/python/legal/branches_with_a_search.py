# legal, 3 ranks: training
# With the search for unused parameters each rank may take another branch.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x, takes_first):
        return (self.first if takes_first else self.second)(x).mean()


dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(Branches(), find_unused_parameters=True)
for step in range(4):
    model(torch.ones(2, 4), (rank + step) % 2 == 0).backward()
    model.zero_grad()
dist.destroy_process_group()
