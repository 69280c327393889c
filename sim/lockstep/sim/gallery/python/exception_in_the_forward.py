# fault, 3 ranks: exception
# Rank 2 gets images of another width, and the product of matrices refuses.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 2))

    def forward(self, images):
        return images @ self.weight  # verdict: rank 2 here: rank_failed


dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(Net())
for step in range(4):
    width = 5 if rank == 2 and step == 3 else 4
    model(torch.ones(2, width)).mean().backward()
dist.destroy_process_group()
