"""Which group it is that torch makes: ProcessGroupGloo's constructor is told neither its ranks nor its name."""

import os
import sys

import torch.distributed as dist


def describe(store, rank, size):
    """Name, global ranks in group order and world size of the group that the caller's caller is about to make.

    torch's own helper knows them; where something else makes the group, its members tell each other by the store.
    """
    from lockstep import _ending

    is_first = not dist.is_initialized()
    _ending.watch(rank if is_first else dist.get_rank())
    world_size = size if is_first else dist.get_world_size()
    helper = _helper_frame()
    if helper is None:
        ranks = list(range(size)) if is_first or size == world_size else _exchange(store, rank, size)
        return _name("", ranks, world_size), ranks, world_size
    ranks = list(helper["global_ranks_in_group"]) or list(range(size))
    description = helper.get("group_desc")
    if description in (None, "undefined", "default_pg"):
        description = helper.get("group_name", "")
    return _name(str(description), ranks, world_size), ranks, world_size


def _helper_frame():
    frame = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            return None
        if "global_ranks_in_group" in frame.f_locals:
            return frame.f_locals
        frame = frame.f_back
    return None


def _name(description, ranks, world_size):
    if ranks == list(range(world_size)) and not dist.is_initialized():
        return "world"
    # A hash of the ranks, as torch makes one, says less than the ranks.
    if len(description) == 40 and all(c in "0123456789abcdef" for c in description):
        description = description[:8]
    members = "rank" if len(ranks) == 1 else "ranks"
    return f"{description} ({members} {', '.join(map(str, ranks))})".strip()


def _exchange(store, rank, size):
    own = dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", rank))
    store.set(f"lockstep/global_rank/{rank}", str(own))
    return [int(store.get(f"lockstep/global_rank/{member}")) for member in range(size)]
