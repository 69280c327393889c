"""Compares a state dict across ranks."""

import hashlib
import pickle

import torch
import torch.distributed as dist


class DivergenceError(RuntimeError):
    """Ranks that should hold equal values do not."""


def check(state, group):
    """See lockstep.check_divergence."""
    own = {key: _digest(value) for key, value in state.items()}
    everyones = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyones, own, group=group)
    ranks = dist.get_process_group_ranks(group if group is not None else dist.group.WORLD)
    for key in dict.fromkeys(key for digests in everyones for key in digests):
        holders = {}
        for rank, digests in zip(ranks, everyones):
            holders.setdefault(digests.get(key, "nothing"), []).append(rank)
        if len(holders) > 1:
            raise DivergenceError(_describe(key, holders))


def _digest(value):
    if not torch.is_tensor(value):
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    value = value.detach()
    if hasattr(value, "to_local"):
        return "a shard"  # each rank's own
    if value.layout is not torch.strided:
        value = value.to_dense()
    value = value.cpu().contiguous()
    data = value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
    return f"{value.dtype} {list(value.shape)} {hashlib.sha256(data).hexdigest()}"


def _describe(key, holders):
    groups = sorted(holders.values(), key=lambda ranks: (-len(ranks), ranks))
    listed = "; ".join(f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}" for ranks in groups)
    return (f"the ranks have diverged: '{key}' differs, and equal values are held by: {listed}; broadcast the state from "
            "one rank, and see that all ranks draw the same random numbers and reduce the same gradients")
