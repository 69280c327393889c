# legal, 3 ranks: objects
# What is gathered or sent as objects may have any size, and be nothing at all.
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
everyones = [None] * world_size
dist.all_gather_object(everyones, "word " * 100 * rank or None)
collected = [None] * world_size if rank == 1 else None
dist.gather_object({"files": list(range(10**rank))}, collected, dst=1)
configuration = [{"lr": 0.1}, list(range(1000))] if rank == 0 else [None, None]
dist.broadcast_object_list(configuration, src=0)
mine = [None]
dist.scatter_object_list(mine, ["a", "bb" * 500, None] if rank == 0 else None, src=0)
print(f"rank {rank}: {[len(one or '') for one in everyones]} {len(configuration[1])} {len(mine[0] or '')}")
dist.destroy_process_group()
