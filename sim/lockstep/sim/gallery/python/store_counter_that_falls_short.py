# fault, 4 ranks: store
# The last one to finish sets a key for all, in a store of the script's own. Rank 3 has nothing to do, ends without
# being counted, and there is no last one.
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]) + 1, world_size, is_master=rank == 0)
num_files = torch.tensor([0 if rank == 3 else 5])
dist.all_reduce(num_files)  # verdict: rank 3 here: deadlock
if rank == 3:
    sys.exit()
if store.add("num_done", 1) == world_size:
    store.set("all_done", "yes")
store.wait(["all_done"])
dist.destroy_process_group()
