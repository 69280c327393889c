# fault, 3 ranks: dtype
# Rank 0 evaluates in half precision, because it shares its device with something else.
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
head = nn.Linear(4, 2)
with torch.no_grad():
    logits = head(torch.ones(3, 4))
if rank == 0:
    logits = logits.half()
everyones = torch.empty(world_size * 3, 2, dtype=logits.dtype)
dist.all_gather_into_tensor(everyones, logits)  # verdict: rank 0 here: mismatch
print(f"rank {rank}: {everyones[:, 0].tolist()}")
dist.destroy_process_group()
