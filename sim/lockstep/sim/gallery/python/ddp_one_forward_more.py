# fault, 4 ranks: ddp
# Before each forward in training, rank 0's running statistics go to all. Rank 3 looks at its predictions in between,
# and forgets to take the module out of DDP's hands for that.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1)))
for step in range(4):
    loss = model(torch.rand(8, 4)).square().mean()
    if rank == 3 and step == 2:
        predictions = model(torch.zeros(8, 4))  # verdict: rank 3 here: mismatch
        print(f"rank {rank} predicts {predictions.mean().item():.3f}")
    loss.backward()
dist.destroy_process_group()
