# fault, 3 ranks: exception
# A sample of rank 0's shard has no label, at batch 41 of a run that went well so far.
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, rank):
        self.inputs = torch.ones(256, 4)
        self.labels = [0] * (83 if rank == 0 else 256)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.labels[index]  # verdict: rank 0 here: rank_failed


dist.init_process_group("gloo")
rank = dist.get_rank()
for batch, (inputs, labels) in enumerate(DataLoader(Samples(rank), batch_size=2)):
    loss = inputs.mean() + labels.sum()
    dist.all_reduce(loss)
dist.destroy_process_group()
