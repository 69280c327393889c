# fault, 3 ranks: order
# After each step the loss is averaged, then rank 0 says whether training goes on. A branch that was to save rank 1 some
# work has the two turned round.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
loss = torch.ones(1)
goes_on = torch.ones(1, dtype=torch.bool)
for step in range(4):
    if rank == 1 and step == 3:
        dist.broadcast(goes_on, src=0)  # verdict: rank 1 here: mismatch
        dist.all_reduce(loss)
    else:
        dist.all_reduce(loss)
        dist.broadcast(goes_on, src=0)
print(f"rank {rank}: loss {loss.item():.2f}")
dist.destroy_process_group()
