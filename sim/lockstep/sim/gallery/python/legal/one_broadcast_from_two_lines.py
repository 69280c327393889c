# legal, 3 ranks: asynchrony
# The root broadcasts in a branch of its own, since it has something to say first.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(6):
    root = step % 3
    if rank == root:
        weights = torch.full((4,), float(step))
        print(f"step {step}: rank {rank} sends")
        dist.broadcast(weights, src=root)
    else:
        weights = torch.empty(4)
        dist.broadcast(weights, src=root)
    assert weights.eq(step).all()
dist.destroy_process_group()
