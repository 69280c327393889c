# fault, 3 ranks: asynchrony
# Buckets are posted as they become ready, and waited for at the end. They may be waited for in any order; they may not
# be posted in one that differs. Both have as many bytes, so that their sums are mixed up in silence.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
buckets = [torch.full((6,), 1.0), torch.full((2, 3), 100.0)]
if rank == 1:
    buckets.reverse()
works = []
for bucket in buckets:
    works.append(dist.all_reduce(bucket, async_op=True))  # verdict: rank 1 here: mismatch
for work in works:
    work.wait()
print(f"rank {rank}: {[bucket.max().item() for bucket in buckets]}")
dist.destroy_process_group()
