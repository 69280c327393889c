# fault, 3 ranks: fsdp
# Weights are gathered whenever a layer runs. Rank 1 looks at a second image, while the others go backward.
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
for layer in model:
    fully_shard(layer)
fully_shard(model)
for step in range(3):
    loss = model(torch.ones(2, 8)).mean()
    if rank == 1 and step == 1:
        loss = loss + model(torch.zeros(2, 8)).mean()  # verdict: rank 1 here: mismatch
    loss.backward()
dist.destroy_process_group()
