"""Shards and samplers by themselves: data.shard, data.iterable_shard, data.seedable_sampler."""


def stream_case(draw, world: int) -> dict:
    return draw.weighted({iterable_shard: 2, seedable_sampler: 1})(draw, world)


def shard_count(draw) -> dict:
    """Mostly all shards of an imagined world, answered by each rank."""
    return draw.some(0.8, shards=lambda: draw.small(1, 5))


def batch_size(draw, shards: int | None) -> int:
    """Often one that can be split over the shards."""
    if shards is not None and draw.chance(0.4):
        return shards * draw.small(1, 3)
    return draw.small(1, 8)


def batch_shard(draw, world: int) -> dict:
    args = shard_count(draw)
    if draw.chance(0.75):
        args.update(n=draw.small(0, 22), b=batch_size(draw, args.get("shards", world)))
        args.update(draw.some(0.3, drop_last=True))
    else:
        args.update(index_lists(draw))
    args.update(draw.some(0.35, split_batches=True, even_batches=False))
    return {"op": "data.shard", "args": {**args, **draw.some(0.1, passes=2)}}


def index_lists(draw) -> dict:
    """A batch sampler of given batches, with or without a batch size of its own."""
    sizes = [draw.small(1, 3) for _ in range(draw.small(0, 6))]
    if regular := draw.chance(0.4):
        size = draw.small(1, 3)
        sizes = [size] * len(sizes)
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    lists = {"batches": [list(range(start, start + size)) for start, size in zip(starts, sizes)]}
    if draw.chance(0.5):
        lists["batches_b"] = sizes[0] if regular and sizes else draw.pick(None, None, 2)
    return {**lists, **draw.some(0.3, batches_drop_last=lambda: draw.chance(0.5))}


def iterable_shard(draw, world: int) -> dict:
    args = {**shard_count(draw), "n": draw.small(0, 18)}
    args["b"] = batch_size(draw, args.get("shards", world))
    args.update(draw.some(0.3, sized=False, drop_last=True, split_batches=True, epoch_log=True))
    if draw.chance(0.2):
        args["dataset_generator"] = draw.integer(0, 99)
    if draw.chance(0.4) or "dataset_generator" in args:
        args["epochs"] = [draw.small(0, 5) for _ in range(draw.small(1, 3))]
        args["epochs"][0] = None if draw.chance(0.1) else args["epochs"][0]
    return {"op": "data.iterable_shard", "args": args}


def seedable_sampler(draw, world: int) -> dict:
    args = {"n": draw.small(1, 12), **draw.some(0.7, data_seed=lambda: draw.integer(0, 2000))}
    args.update(draw.some(0.25, num_samples=lambda: draw.small(1, 15), generator=lambda: draw.integer(0, 99)))
    args.update(draw.some(0.2, replacement=True))
    args["passes"] = [draw.some(0.3, epoch=lambda: draw.small(0, 9), take=lambda: draw.small(1, 4))
                      for _ in range(draw.small(1, 3))]
    return {"op": "data.seedable_sampler", "args": args}
