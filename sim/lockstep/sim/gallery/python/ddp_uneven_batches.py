# fault, 3 ranks: ddp
# 29 samples were dealt to 3 ranks, and rank 2 got one less. It sums its metric while the others still train.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
loader = DataLoader(torch.rand(29, 4)[rank::world_size], batch_size=1)
model = DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
num_right = torch.tensor([12])
dist.all_reduce(num_right)  # verdict: rank 2 here: mismatch
print(f"rank {rank}: {num_right.item()} are right")
dist.destroy_process_group()
