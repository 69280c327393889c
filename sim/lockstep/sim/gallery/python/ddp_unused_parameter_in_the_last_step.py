# fault, 3 ranks: ddp
# Rank 1 takes another branch than the others, in the last step. There is no next forward that would refuse: it ends as
# if all were well, without its part of the gradients, for which the others wait.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x, skips_second):
        return self.first(x).mean() if skips_second else (self.first(x) + self.second(x)).mean()


dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(Branches())
for step in range(4):
    loss = model(torch.ones(2, 4), rank == 1 and step == 3)
    loss.backward()  # verdict: rank 1 here: rank_failed
print(f"rank {rank}: loss {loss.item():.3f}")
