# fault, 3 ranks: early_exit
# The same with a code that says that all is well: rank 2 was started with --dry-run.
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
batch_size = torch.tensor([16])
dist.broadcast(batch_size, src=0)  # verdict: rank 2 here: deadlock
is_dry_run = rank == 2
if is_dry_run:
    print(f"rank {rank}: batches of {batch_size.item()}")
    sys.exit()
dist.barrier()
dist.destroy_process_group()
