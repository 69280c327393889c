# legal, 3 ranks: threads_and_processes
# A thread of rank 0 compresses a checkpoint by another program, and tells the others by the store when that is done.
import subprocess
import threading

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()


def save():
    subprocess.run(["sleep", "1"], check=True)
    store.set("checkpoint", "there")


if rank == 0:
    saver = threading.Thread(target=save)
    saver.start()
else:
    print(f"rank {rank}: the checkpoint is {store.get('checkpoint').decode()}")
dist.barrier()
if rank == 0:
    saver.join()
dist.destroy_process_group()
