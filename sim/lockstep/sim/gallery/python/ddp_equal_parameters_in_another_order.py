# fault, 3 ranks: ddp
# Two towers of one shape, which rank 1 registers the other way round. DDP sees equal shapes, and trains each tower with
# the gradients of the other. Only their names tell.
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
names = ["image", "text"]
if rank == 1:
    names.reverse()
towers = nn.ModuleDict({name: nn.Linear(4, 2, bias=False) for name in names})
towers.forward = lambda image, text: (towers["image"](image) - 3 * towers["text"](text)).sum()
model = DistributedDataParallel(towers)
loss = model(torch.ones(1, 4), torch.ones(1, 4))
loss.backward()  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {[(name, towers[name].weight.grad.mean().item()) for name in sorted(names)]}")
dist.destroy_process_group()
