# fault, 3 ranks: reduce_op
# Training stops when any rank has a reason to: a maximum. Rank 2 thinks that all have to have it.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(4):
    is_nan = rank == 0 and step == 1
    reasons = torch.tensor([0, 0, int(is_nan)])  # time is up, no space is left, the loss is not a number
    dist.all_reduce(reasons, op=dist.ReduceOp.MIN if rank == 2 else dist.ReduceOp.MAX)  # verdict: rank 2 here: mismatch
    if reasons.any():
        break
print(f"rank {rank} stops after step {step}: {reasons.tolist()}")
dist.destroy_process_group()
