# fault, 3 ranks: exception
# Rank 1 catches what a bad line raises and goes on with the next, past the call. From then on it is a call ahead of the
# others, which shows when the lines have come to an end.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.zeros(1)
for line in range(5):
    try:
        total += float("n/a" if rank == 1 and line == 3 else "1.5")
        dist.all_reduce(total)
    except ValueError:
        continue
result = torch.tensor([total.item(), line])
dist.broadcast(result, src=0)  # verdict: rank 1 here: mismatch
print(f"rank {rank}: {result.tolist()}")
dist.destroy_process_group()
