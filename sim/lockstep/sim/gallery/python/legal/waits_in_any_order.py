# legal, 3 ranks: asynchrony
# Posted alike, waited for in an order of each rank's own; rank 2 never waits for the last one.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
works = [dist.all_reduce(torch.ones(8 + i), async_op=True) for i in range(6)]
for i in range(5):
    works[(i * 2 + rank) % 5].wait()
if rank != 2:
    works[5].wait()
dist.barrier()
dist.destroy_process_group()
