# fault, 3 ranks: fsdp
# Gradients are accumulated over two micro-batches and shared out in the last. Rank 2 counts from the other end.
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
model = fully_shard(nn.Linear(6, 4))
for micro_batch in range(4):
    is_last = micro_batch % 2 == (0 if rank == 2 else 1)
    model.set_requires_gradient_sync(is_last)
    loss = model(torch.ones(2, 6)).mean()
    loss.backward()  # verdict: rank 2 here: mismatch
dist.destroy_process_group()
