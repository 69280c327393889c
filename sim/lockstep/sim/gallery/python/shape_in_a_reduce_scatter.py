# fault, 3 ranks: shape
# Gradients are summed so that each rank gets its third. Rank 1 found a newer tokenizer on its disk, with three more
# words.
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
num_words = 33 if rank == 1 else 30
embedding = nn.Embedding(num_words, 4)
embedding(torch.tensor([1, 2])).sum().backward()
gradient = embedding.weight.grad
mine = torch.empty(num_words // world_size, 4)
dist.reduce_scatter_tensor(mine, gradient)  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {mine.sum().item()}")
dist.destroy_process_group()
