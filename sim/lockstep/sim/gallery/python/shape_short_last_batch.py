# fault, 3 ranks: shape
# 47 samples on 3 ranks in batches of 8, and drop_last is off: rank 2's last batch has 7.
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
samples = TensorDataset(torch.arange(47.0))
mine = Subset(samples, range(16 * rank, min(16 * (rank + 1), 47)))
for (batch,) in DataLoader(mine, batch_size=8):
    logits = torch.stack([batch, -batch], dim=1)
    everyones = [torch.empty_like(logits) for _ in range(world_size)]
    dist.all_gather(everyones, logits)  # verdict: rank 2 here: mismatch
print(f"rank {rank}: {[part[:, 0].max().item() for part in everyones]}")
dist.destroy_process_group()
