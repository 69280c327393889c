# fault, 3 ranks: fsdp
# Layers are left out at random, by generators that were seeded with the rank. On rank 2 the second one is left out, and
# with it the gathering of its weights.
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


class Net(nn.Module):
    def __init__(self, skips):
        super().__init__()
        middle = nn.Sequential(nn.Linear(6, 24), nn.Linear(24, 6))
        self.layers = nn.ModuleList([nn.Linear(6, 6), middle, nn.Linear(6, 6)])
        self.skips = skips

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x if i in self.skips else layer(x)  # verdict: rank 2 here: mismatch
        return x.mean()


dist.init_process_group("gloo")
rank = dist.get_rank()
model = Net(skips=[1] if rank == 2 else [])
for layer in model.layers:
    fully_shard(layer)
fully_shard(model)
model(torch.ones(2, 6)).backward()
dist.destroy_process_group()
