# legal, 3 ranks: store
# Two ranks wait for a key that a third one sets when it has worked for a while. Before, they asked for it and gave up.
import time
from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    time.sleep(1)
    store.set("index", "built")
else:
    try:
        store.wait(["index"], timedelta(milliseconds=300))
    except dist.DistStoreError:
        print(f"rank {rank}: there is no index yet")
print(f"rank {rank}: the index is {store.get('index').decode()}")
dist.barrier()
dist.destroy_process_group()
