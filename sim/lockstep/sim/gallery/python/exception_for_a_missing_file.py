# fault, 4 ranks: exception
# Only rank 3's node lacks the checkpoint.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
epoch = torch.tensor([1])
dist.broadcast(epoch, src=0)
if rank == 3:
    weights = torch.load(f"checkpoint-of-epoch-{epoch.item()}.pt")  # verdict: rank 3 here: rank_failed
dist.barrier()
dist.destroy_process_group()
