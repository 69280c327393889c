# fault, 3 ranks: objects
# gather_object() brings everybody's to one rank. Rank 0, which wants them, calls it; the others see no reason to.
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
mine = {"rank": rank, "words": ["word"] * rank}
if rank == 0:
    everyones = [None] * world_size
    dist.gather_object(mine, everyones, dst=0)  # verdict: rank 0 here: mismatch
    print(f"rank 0: {everyones}")
dist.barrier()
dist.destroy_process_group()
