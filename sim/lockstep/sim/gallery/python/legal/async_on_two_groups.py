# legal, 3 ranks: asynchrony
# Rank 1 posts to the two groups in the opposite order. Each group sees one order only, and nobody waits before both are
# posted.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
gradients, metrics = dist.new_group([0, 1, 2]), dist.new_group([0, 1, 2])
x, y = torch.ones(4), torch.ones(6)
for step in range(20):
    posts = [(x, gradients), (y, metrics)]
    if rank == 1:
        posts.reverse()
    for work in [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in posts]:
        work.wait()
dist.destroy_process_group()
