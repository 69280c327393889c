# fault, 3 ranks: early_exit
# Rank 1's own loss is small enough, so it is done. The others' are not, and they wait for it.
import torch
import torch.distributed as dist


def train(rank):
    gradient = torch.ones(8)
    loss = 0.4 if rank == 1 else 4.0
    for step in range(6):
        dist.all_reduce(gradient)  # verdict: rank 1 here: deadlock
        loss *= 0.5
        if loss < 0.1:
            return step


dist.init_process_group("gloo")
step = train(dist.get_rank())
print(f"rank {dist.get_rank()} is done after step {step}")
dist.destroy_process_group()
