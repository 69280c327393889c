# fault, 3 ranks: exception
# The same, in a process of its own: the error comes to the rank at the loop over its loader.
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, num_labels):
        self.labels = [0] * num_labels

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.ones(4), self.labels[index]


dist.init_process_group("gloo")
rank = dist.get_rank()
loader = DataLoader(Samples(33 if rank == 1 else 64), batch_size=4, num_workers=2)
for inputs, labels in loader:  # verdict: rank 1 here: rank_failed
    loss = inputs.mean() + labels.sum()
    dist.all_reduce(loss)
dist.destroy_process_group()
