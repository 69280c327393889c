# fault, 3 ranks: operation
# The one rank that needs all predictions gathers them; the others still call all_gather, as they all did before.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
predictions = torch.full((4,), rank)
everyones = [torch.empty_like(predictions) for _ in range(world_size)]
if rank == 0:
    dist.gather(predictions, everyones, dst=0)  # verdict: rank 0 here: mismatch
    print(f"rank 0: {[part.tolist() for part in everyones]}")
else:
    dist.all_gather(everyones, predictions)
dist.barrier()
dist.destroy_process_group()
