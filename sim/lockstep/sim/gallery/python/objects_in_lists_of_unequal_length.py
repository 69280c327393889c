# fault, 3 ranks: objects
# Rank 0's configuration goes to all. Rank 1 runs a newer version, which has one part more to be filled.
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
num_parts = 3 if rank == 1 else 2
configuration = [{"lr": 0.1}, ["train", "test"]] if rank == 0 else [None] * num_parts
dist.broadcast_object_list(configuration, src=0)  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {configuration}")
dist.barrier()
dist.destroy_process_group()
