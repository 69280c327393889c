# fault, 3 ranks: early_exit
# A check of the options ends the program, with a code that says that something is wrong: a flag that only rank 1 was
# given.
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
batch_size = torch.tensor([16])
dist.broadcast(batch_size, src=0)  # verdict: rank 1 here: rank_failed
has_bad_flag = rank == 1
if has_bad_flag:
    sys.exit(3)
dist.barrier()
dist.destroy_process_group()
