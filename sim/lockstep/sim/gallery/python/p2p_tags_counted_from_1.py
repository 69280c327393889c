# fault, 3 ranks: point_to_point
# The tag is the micro-batch; rank 1 counts them from 1.
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
activations = torch.ones(8)
sends = []
for micro_batch in range(3):
    if rank == 0:
        sends.append(dist.isend(activations, dst=1, tag=micro_batch))
    if rank == 1:
        dist.recv(activations, src=0, tag=micro_batch + 1)  # verdict: rank 1 here: deadlock
dist.barrier()
for send in sends:
    send.wait()
dist.destroy_process_group()
