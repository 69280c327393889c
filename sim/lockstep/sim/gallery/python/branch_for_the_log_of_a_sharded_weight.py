# fault, 3 ranks: branch
# Only rank 0 prints, so that only rank 0 asks for the norm. The weight is a DTensor, and its norm is a sum over all
# ranks.
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = fully_shard(nn.Linear(6, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(2, 6)).square().mean().backward()
    optimizer.step()
    if dist.get_rank() == 0 and step % 2 == 1:
        norm = model.weight.detach().norm()
        print(f"step {step}: norm {norm.full_tensor().item():.3f}")  # verdict: rank 0 here: mismatch
dist.destroy_process_group()
