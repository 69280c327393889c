"""Prepared loaders that each rank reads by itself: map-style and iterable data, skipping and resuming."""

from .shards import index_lists

SHUFFLED_N = (8, 12)  # with fewer items two random passes are equal by chance
WORLD_ITEMS = ("id", "x1", "dict", "nested", "text")


def case(draw, world: int) -> dict:
    if draw.chance(0.12):
        return nested_case(draw, world)
    loader, config = map_loader(draw, world)
    args = {"loader": loader, **draw.some(0.95, config=config)}
    args.update(draw.some(0.15, values=not is_shuffled(loader)))
    args.update(draw.some(0.6, script=lambda: script(draw, shuffled=is_shuffled(loader))))
    if is_shuffled(loader) and draw.chance(0.6):
        if draw.chance(0.3):
            args["accelerator"] = {"rng_types": ["torch"]}
        ranks = [{"rank_seed": draw.integer(0, 99)} for _ in range(world)]
        return {"op": "data.loader", "args": args, "rank_args": ranks}
    if draw.chance(0.05):
        args["accelerator"] = draw.pick({"split_batches": True}, {"even_batches": False}, {"mixed_precision": "BF16"},
                                        {"device_placement": False}, {"rng_types": ["torch", "generator"]})
    return {"op": "data.loader", "args": args}


def is_shuffled(loader: dict) -> bool:
    return loader.get("shuffle", False)


def size_for(draw, world: int, config: dict) -> int:
    """A batch size, mostly one that can be split where batches are."""
    if config.get("split_batches") and draw.chance(0.9):
        return world * draw.small(1, 3)
    return draw.small(1, 4)


def map_loader(draw, world: int) -> tuple[dict, dict]:
    """A LOADER of map-style data and a config for it."""
    config = draw.some(0.25, split_batches=True, even_batches=False, non_blocking=True, dispatch_batches=False)
    loader = {"n": draw.small(0, 14)}
    if draw.chance(0.15):
        loader.update(index_lists(draw), n=18)
        return loader, config
    loader["b"] = size_for(draw, world, config)
    loader.update(draw.some(0.2, drop_last=True, item=lambda: draw.pick(*WORLD_ITEMS)))
    if draw.chance(0.05):
        loader["sampler_batches"] = True
    elif draw.chance(0.03):
        loader["b"] = None
    elif draw.chance(0.35):
        loader.update(shuffle=True, n=draw.integer(*SHUFFLED_N))
        loader.update(draw.some(0.4, generator=lambda: draw.integer(0, 99)))
        if draw.chance(0.5):
            config.update(use_seedable_sampler=True, **draw.some(0.6, data_seed=lambda: draw.integer(0, 2000)))
    elif draw.chance(0.08):
        loader.update(item="ragged", b=1)
    if draw.chance(0.05):
        loader["prepare"] = False
    return loader, config


def script(draw, shuffled: bool, depth: int = 0) -> list:
    """Passes, full and left early, with epochs set between them."""
    entries = []
    for _ in range(draw.small(1, 3)):
        entry = {"v": "pass", **draw.some(0.2, set_epoch=lambda: draw.small(0, 5))}
        if draw.chance(0.3):
            entry["stop_after"] = draw.small(1, 3)
        elif draw.chance(0.15) and not shuffled:
            entry["skip"] = draw.small(0, 3)
        entries.append(entry)
    if draw.chance(0.15):
        entries.insert(draw.small(0, len(entries)), {"v": "set_epoch", "epoch": draw.small(0, 5)})
    if draw.chance(0.1):
        entries.insert(0, {"v": "prepare"})
    if draw.chance(0.08) and depth == 0:
        entries.append({"v": "even_batches", "value": draw.chance(0.3), "body": script(draw, shuffled, depth=1)})
    return entries


def nested_case(draw, world: int) -> dict:
    """A pass over one loader inside the pass over another; all ranks take equally many steps."""
    loaders = {"train": {"n": draw.integer(3, 8), "b": draw.small(1, 2)}, "eval": {"n": draw.small(0, 5), "b": 1}}
    outer = {"v": "pass", "loader": "train", **draw.some(0.2, stop_after=lambda: draw.small(1, 2))}
    inner = {"v": "pass", "loader": "eval", **draw.some(0.2, stop_after=1)}
    outer["nested"] = {str(step): [inner] for step in sorted({draw.small(0, 3), draw.small(0, 3)})}
    return {"op": "data.loader", "args": {"loaders": loaders, "script": [outer, *draw.some(0.3, more={
        "v": "pass", "loader": "train"}).values()]}}


def iterable_loader(draw, world: int, config: dict) -> dict:
    loader = {"kind": draw.pick("iterable", "sized_iterable"), "n": draw.small(0, 14)}
    loader["b"] = size_for(draw, world, config)
    loader.update(draw.some(0.2, drop_last=True, item=lambda: draw.pick("id", "x1", "dict", "nested")))
    return {**loader, **draw.some(0.2, dataset_generator=lambda: draw.integer(0, 99), epoch_log=True)}


def iterable_case(draw, world: int) -> dict:
    """Iterable data that is not dispatched: each rank reads the whole stream and keeps its part."""
    config = draw.some(0.3, split_batches=True)
    args = {"config": config}
    if draw.chance(0.5):
        config["dispatch_batches"] = False
    elif draw.chance(0.9):
        args["accelerator"] = {"device_placement": False}
    else:
        args["accelerator"], config["dispatch_batches"] = {"device_placement": False}, True  # refused
    args["loader"] = iterable_loader(draw, world, config)
    args.update(draw.some(0.4, script=lambda: script(draw, shuffled=False, depth=1)))
    return {"op": "data.loader", "args": args}


def resume_case(draw, world: int) -> dict:
    iterable = draw.chance(0.3)
    if iterable:
        config = draw.some(0.5, dispatch_batches=False)
        loader = iterable_loader(draw, world, config)
    else:
        loader, config = map_loader(draw, world)
        config.update(draw.some(0.2, dispatch_batches=True) if "text" != loader.get("item") else {})
        loader.pop("prepare", None)
        if config.get("dispatch_batches"):
            loader.pop("batches", None), loader.pop("sampler_batches", None)
            loader["b"] = loader.get("b") or 1
            loader["item"] = "id"
    args = {"loader": loader, "config": config}
    if draw.chance(0.5):
        args.update(consume=draw.small(1, 5), **draw.some(0.3, epoch=lambda: draw.small(1, 4)))
        return {"op": "data.resume", "args": args}
    args.update(skip=draw.small(0, 4), **draw.some(0.25, passes=2, first=1))
    return {"op": "data.skip_first_batches", "args": args}
