# fault, 3 ranks: order
# Gradients are averaged by hand, one parameter after the other: in the order of registration, but on rank 2, where a
# newer version sorts them by name.
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.ModuleDict({"encoder": nn.Linear(4, 8), "decoder": nn.Linear(8, 2)})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def average_gradients():
    parameters = dict(model.named_parameters())
    names = sorted(parameters) if rank == 2 else list(parameters)
    for name in names:
        dist.all_reduce(parameters[name].grad)  # verdict: rank 2 here: mismatch
        parameters[name].grad /= world_size


for step in range(3):
    optimizer.zero_grad()
    loss = model["decoder"](model["encoder"](torch.ones(2, 4))).square().mean()
    loss.backward()
    average_gradients()
    optimizer.step()
print(f"rank {rank}: loss {loss.item():.4f}")
dist.destroy_process_group()
