"""Loaders of which rank 0 reads for all, and gather_for_metrics over passes of any loader."""

from .loaders import iterable_loader, script, size_for


def case(draw, world: int) -> dict:
    config = draw.some(0.3, split_batches=True)
    if draw.chance(0.55):
        loader = iterable_loader(draw, world, config)
    else:
        loader = {"n": draw.small(0, 14), "b": size_for(draw, world, config)}
        loader.update(draw.some(0.2, drop_last=True, item=lambda: draw.pick("id", "x1", "dict", "nested")))
    if world == 1 and draw.chance(0.1):
        loader["item"] = draw.pick("text", "ragged")  # on more ranks only the first fails, and the others wait
        loader["b"] = 1
    config.update(draw.some(0.1, even_batches=False))
    args = {"loader": loader, **({"config": config} if config else {})}
    args.update(draw.some(0.12, values=True, record_slices=True))
    args.update(draw.some(0.4, script=lambda: script(draw, shuffled=False, depth=1)))
    if "record_slices" in args and draw.chance(0.3):
        args["script"] = [{"v": "pass"}, {"v": "pass", "skip": draw.small(0, 2)}]
    if draw.chance(0.04):
        args["accelerator"] = {"device_placement": False}  # refused
    return {"op": "data.dispatcher", "args": args}


def metrics_case(draw, world: int) -> dict:
    """Every rank has equally many rows in each step, or what is gathered are objects."""
    kind = draw.weighted({"map": 5, "dispatch": 2, "iterable": 2})
    config = draw.some(0.25, split_batches=True)
    if kind == "map":
        loader = {"n": draw.small(1, 13), "b": size_for(draw, world, config), **draw.some(0.2, drop_last=True)}
        if draw.chance(0.15):
            loader.update(shuffle=True)
            config.update(use_seedable_sampler=True, data_seed=draw.integer(0, 99))
    else:
        loader = iterable_loader(draw, world, config)
        loader["n"] = max(loader["n"], world)  # fewer rows than ranks are the dispatch area's
        config["dispatch_batches"] = kind == "dispatch"
    if config.get("split_batches") and loader["b"] % world:
        loader["b"] *= world
    what = draw.pick("batch", "batch", "dict", "mean", "objects", "strings")
    args = {"loader": loader, "config": config, "what": what}
    args.update(draw.some(0.3, after=True, stop_after=lambda: draw.small(1, 3)), **draw.some(0.15, passes=2))
    if args["what"] in ("batch", "dict"):
        args.update(draw.some(0.3, plain=True))
    if args["what"] == "objects":
        args["use_gather_object"] = True  # an empty list would count as tensors
    return {"op": "ops.gather_for_metrics", "args": args}
