# legal, 3 ranks: asynchrony
# All ranks receive first, and nobody waits before all have sent.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world_size, (rank - 1) % world_size
for step in range(20):
    theirs = torch.empty(16)
    receive = dist.irecv(theirs, src=left)
    send = dist.isend(torch.full((16,), float(rank)), dst=right)
    receive.wait()
    send.wait()
    assert theirs.eq(left).all()
dist.destroy_process_group()
