# legal, 4 ranks: uneven_times
# After their last common call ranks end when they like, the one with the store first, and without a word.
import time

import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
time.sleep(0.3 * dist.get_rank())
