# fault, 3 ranks: missing_call
# The others meet once more before they end; rank 2 had nothing to write, and leaves.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
loss = torch.ones(1)
for step in range(4):
    dist.all_reduce(loss)  # verdict: rank 2 here: deadlock
results = {"loss": loss.item()} if rank != 2 else {}
if results:
    dist.barrier()
    print(f"rank {rank} writes {results}")
