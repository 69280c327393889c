# fault, 3 ranks: operation
# Only rank 0 prints the loss, so that rank 2 was content with a reduce to rank 0, which is cheaper.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for epoch in range(3):
    loss = torch.full((1,), 1.0 / (epoch + 1))
    if rank == 2 and epoch == 2:
        dist.reduce(loss, dst=0)  # verdict: rank 2 here: mismatch
    else:
        dist.all_reduce(loss)
    if rank == 0:
        print(f"epoch {epoch}: loss {loss.item() / 3:.3f}")
dist.barrier()
dist.destroy_process_group()
