"""Collectives on nested values; all ranks have the same structure, their tensors differ."""

GATHERED = ("float32", "float32", "int64", "float64", "int32", "uint8", "bool", "float16")
REDUCED = ("float32", "float32", "float64", "int64", "int32")


def structure(draw, dtypes, depth: int = 0, least_dim: int = 0):
    """A nested value with shapes in the place of tensors: ("tensor", dtype, shape), or a container of such."""
    kind = draw.weighted({"tensor": 6 if depth == 0 else 8, "list": 1, "tuple": 1, "dict": 2, "named": 0.7} if depth < 2
                         else {"tensor": 1})
    if kind == "tensor":
        return "tensor", draw.pick(*dtypes), [draw.small(0 if least_dim == 0 else 1, 3)
                                              for _ in range(draw.integer(least_dim, 2))]
    children = [structure(draw, dtypes, depth + 1, least_dim) for _ in range(draw.small(0 if depth else 1, 3))]
    return kind, children


NAMES = ("a", "b", "c")


def fill(shape, leaf):
    """A value of the structure; leaf(dtype, shape) makes its tensors."""
    if shape[0] == "tensor":
        return leaf(shape[1], shape[2])
    items = [fill(child, leaf) for child in shape[1]]
    if shape[0] == "list":
        return items
    if shape[0] == "tuple":
        return {"tuple": items}
    fields = dict(zip(NAMES, items))
    return {"named": "P", "fields": fields} if shape[0] == "named" else fields


def per_rank(draw, world: int, shape, leaf=None) -> list[dict]:
    leaf = leaf or (lambda dtype, size: draw.tensor(*size, dtype=dtype))
    return [{"input": fill(shape, leaf)} for _ in range(world)]


def gather_case(draw, world: int) -> dict:
    return draw.weighted({gather: 8, wrong_leaf: 1})(draw, world)


def object_case(draw, world: int) -> dict:
    return draw.weighted({gather_object: 3, broadcast: 3, broadcast_object_list: 2, verify: 2})(draw, world)


def gather(draw, world: int) -> dict:
    shape = structure(draw, GATHERED)
    return {"op": "ops.gather", "args": draw.some(0.2, via="accelerator", debug=has_tensor(shape)),
            "rank_args": per_rank(draw, world, shape)}


def has_tensor(shape) -> bool:
    return shape[0] == "tensor" or any(has_tensor(child) for child in shape[1])


def gather_object(draw, world: int) -> dict:
    items = (lambda: draw.integer(-9, 9), lambda: draw.pick("a", "bc", ""), lambda: draw.number(),
             lambda: {"k": draw.integer(0, 3)}, lambda: None, lambda: {"tuple": [draw.integer(0, 3), "x"]},
             lambda: draw.tensor(draw.small(1, 2)))
    if draw.chance(0.1):
        inputs = [draw.pick(7, 2.5, None) for _ in range(world)]  # none of them can be joined
    elif draw.chance(0.1):
        inputs = [{"k" + str(rank): rank} for rank in range(world)]
    else:
        inputs = [[draw.pick(*items)() for _ in range(draw.small(0, 3))] for _ in range(world)]
    return {"op": "ops.gather_object", "args": {}, "rank_args": [{"input": value} for value in inputs]}


def broadcast(draw, world: int) -> dict:
    shape = structure(draw, GATHERED)
    return {"op": "ops.broadcast", "args": draw.some(0.6, from_process=lambda: draw.integer(0, world - 1)),
            "rank_args": per_rank(draw, world, shape)}


def broadcast_object_list(draw, world: int) -> dict:
    length = draw.small(1, 3)
    items = (lambda: draw.integer(-9, 9), lambda: draw.pick("a", "bc"), lambda: None, lambda: [draw.integer(0, 3), "x"])
    return {"op": "ops.broadcast_object_list", "args": draw.some(0.6, from_process=lambda: draw.integer(0, world - 1)),
            "rank_args": [{"input": [draw.pick(*items)() for _ in range(length)]} for _ in range(world)]}


def verify(draw, world: int) -> dict:
    """Debug mode on; often the shapes differ, which every rank is told."""
    columns = draw.small(1, 2)
    same = draw.chance(0.3)
    inputs = [draw.tensor(2 if same else rank + 1, columns) for rank in range(world)]
    return {"op": "ops.verify", "args": {"call": draw.pick("gather", "reduce", "broadcast")},
            "rank_args": [{"input": value} for value in inputs]}


def wrong_leaf(draw, world: int) -> dict:
    """Something among the tensors that is none: refused by every rank."""
    value = draw.pick([1, 2], {"a": "text"}, 3.5, {"tuple": [None]}, {"a": draw.tensor(2), "b": 1})
    return {"op": draw.pick("ops.gather", "ops.broadcast", "ops.reduce", "ops.pad_across_processes"),
            "args": {"input": value}}


def reduce_case(draw, world: int) -> dict:
    if draw.chance(0.05):
        return {**wrong_leaf(draw, world), "op": "ops.reduce"}
    words = {"sum": 4, "mean": 4, "max": 3, "none": 1, "median": 1}
    args = draw.some(0.8, reduction=lambda: draw.weighted(words))
    args.update(draw.some(0.2, via="accelerator", scale=lambda: draw.pick(0.5, 2.0)))
    return {"op": "ops.reduce", "args": args, "rank_args": per_rank(draw, world, structure(draw, REDUCED))}


def pad_case(draw, world: int) -> dict:
    """Each tensor of each rank has a size of its own along the padded dimension."""
    if draw.chance(0.05):
        return {**wrong_leaf(draw, world), "op": "ops.pad_across_processes"}
    dim = draw.weighted({0: 6, 1: 2, -1: 3, -2: 1, 3: 0.5, -4: 0.5})
    shape = structure(draw, ("float32", "int64", "float64", "bool", "int32"), least_dim=1)

    def leaf(dtype, size):
        size = list(size)
        if -len(size) <= dim < len(size):
            size[dim] = draw.small(0 if draw.chance(0.1) else 1, 4)
        return draw.tensor(*size, dtype=dtype)

    args = {**({"dim": dim} if dim else {}), **draw.some(0.4, pad_first=True)}
    args.update(draw.some(0.5, pad_index=lambda: draw.integer(-3, 3)), **draw.some(0.15, via="accelerator"))
    return {"op": "ops.pad_across_processes", "args": args, "rank_args": per_rank(draw, world, shape, leaf)}
