# fault, 3 ranks: point_to_point
# Each rank sends to the right and receives from the left. Rank 2, the last one, receives from the right.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world_size, (rank - 1) % world_size
mine, theirs = torch.full((4,), float(rank)), torch.empty(4)
source = right if rank == world_size - 1 else left
batch = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, theirs, source)]
for work in dist.batch_isend_irecv(batch):  # verdict: rank 2 here: deadlock
    work.wait()
dist.barrier()
dist.destroy_process_group()
