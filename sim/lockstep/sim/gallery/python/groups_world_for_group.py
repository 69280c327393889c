# fault, 4 ranks: groups
# Three ranks train and one evaluates. The evaluating one averages its accuracy over the world, where it meant a group
# of its own.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
trainers = dist.new_group([0, 1, 2])
if rank < 3:
    dist.all_reduce(torch.ones(4), group=trainers)
else:
    accuracy = torch.full((1,), 0.5)
    dist.all_reduce(accuracy)  # verdict: rank 3 here: mismatch
dist.barrier()
dist.destroy_process_group()
