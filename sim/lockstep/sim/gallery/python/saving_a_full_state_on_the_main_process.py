# fault, 3 ranks: saving
# The model is sharded: to have all of it, all ranks must give their parts. Only the main process asks.
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank = dist.get_rank()
model = fully_shard(nn.Sequential(nn.Linear(6, 12), nn.Linear(12, 4)))
model(torch.ones(2, 6)).mean().backward()
if rank == 0:
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=options)  # verdict: rank 0 here: mismatch
    print(f"rank 0 saves {len(state)} tensors")
dist.barrier()
dist.destroy_process_group()
