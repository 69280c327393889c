# legal, 2 ranks: threads_and_processes
# Each rank's loader forks two processes, which end when the epoch does.
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.tensor([index * index], dtype=torch.float32)


dist.init_process_group("gloo")
loader = DataLoader(Squares(), batch_size=4, num_workers=2)
for epoch in range(2):
    for batch in loader:
        total = batch.sum()
        dist.all_reduce(total)
print(f"rank {dist.get_rank()}: {total.item()}")
dist.destroy_process_group()
