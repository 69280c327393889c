# fault, 3 ranks: reduce_op
# Likelihoods multiply, their logarithms add. Rank 0 works with likelihoods, since its part is small.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
likelihood = torch.full((1,), 0.5)
if rank == 0:
    dist.reduce(likelihood, dst=0, op=dist.ReduceOp.PRODUCT)  # verdict: rank 0 here: mismatch
    print(f"likelihood {likelihood.item():.4f}, expected 0.125")
else:
    logarithm = likelihood.log()
    dist.reduce(logarithm, dst=0, op=dist.ReduceOp.SUM)
dist.destroy_process_group()
