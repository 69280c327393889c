# legal, 2 ranks: threads_and_processes
# While rank 0's main thread waits in the barrier, a thread of it computes, and then makes the call that rank 1 waits
# for.
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
side = dist.new_group([0, 1])


def helper():
    matrix = torch.rand(256, 256)
    for _ in range(300):
        matrix = (matrix @ matrix).softmax(0)
    dist.all_reduce(matrix.sum(), group=side)


if rank == 0:
    thread = threading.Thread(target=helper)
    thread.start()
    dist.barrier()
    thread.join()
else:
    dist.all_reduce(torch.zeros(()), group=side)
    dist.barrier()
dist.destroy_process_group()
