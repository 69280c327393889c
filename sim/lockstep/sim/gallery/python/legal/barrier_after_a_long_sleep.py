# legal, 3 ranks: uneven_times
# Rank 0 prepares the data, and the others wait for it in the barrier.
import time

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    time.sleep(4)
dist.barrier()
dist.destroy_process_group()
