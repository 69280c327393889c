# fault, 3 ranks: store
# Rank 0 sets "data/ready". Rank 2 waits for a key with another name.
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    store.set("data/ready", "yes")
key = "data_ready" if rank == 2 else "data/ready"
answer = store.get(key)  # verdict: rank 2 here: deadlock
print(f"rank {rank}: {answer.decode()}")
dist.barrier()
dist.destroy_process_group()
