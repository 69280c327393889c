# fault, 4 ranks: operation
# Rank 3 has run out of batches. It means to keep step with the others, and calls a barrier each time they call
# something.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
batches = torch.ones(15, 16)[rank::4]
gradient = torch.zeros(16)
for step in range(4):
    if step < len(batches):
        gradient += batches[step]
        dist.all_reduce(gradient)
    else:
        dist.barrier()  # verdict: rank 3 here: mismatch
dist.destroy_process_group()
