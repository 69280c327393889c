# fault, 3 ranks: point_to_point
# The sender's last micro-batch is a short one, and the receiver expects a full one: what it has not got stays as it
# was.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 0:
    for micro_batch in torch.ones(10).split(4):
        dist.send(micro_batch, dst=1)
if rank == 1:
    for _ in range(3):
        activations = torch.full((4,), -7.0)
        dist.recv(activations, src=0)  # verdict: rank 1 here: mismatch # symmetric
    print(f"rank 1: {activations.tolist()}")
dist.barrier()
dist.destroy_process_group()
