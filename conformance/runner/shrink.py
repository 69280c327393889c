"""Makes a differing case smaller while it still differs: fewer ranks, fields back to their defaults, shorter lists,
smaller numbers and tensors."""

import copy
import itertools
import json
import time
from typing import NamedTuple

MOST_TRIES = 500
LONGEST_S = 120.0
CONTAINERS = ("tuple", "set")  # fields of a VALUE that hold a list of values


class Shrunk(NamedTuple):
    case: dict
    is_smallest: bool  # no edit makes a smaller one that differs; False: tries or time ran out


def shrink(case: dict, still_differs, most_tries: int = MOST_TRIES, longest_s: float = LONGEST_S) -> Shrunk:
    """The smallest case found.

    @param still_differs  asks both subjects; only smaller cases than the last one that differed are tried
    """
    ending, tries = time.monotonic() + longest_s, 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(case):
            if tries == most_tries or time.monotonic() > ending:
                return Shrunk(case, is_smallest=False)
            if size(candidate) >= size(case):
                continue
            tries += 1
            if still_differs(candidate):
                case, smaller = candidate, True
                break
    return Shrunk(case, is_smallest=True)


def size(case: dict) -> tuple:
    """What shrinking makes smaller, the most important first."""
    parts = [case["args"], case.get("rank_args")]
    return case["world"], len(json.dumps(parts)), magnitude(parts), case.get("seed", 0)


def magnitude(document) -> float:
    if isinstance(document, dict):
        return sum(magnitude(item) for item in document.values())
    if isinstance(document, list):
        return sum(magnitude(item) for item in document)
    return abs(document) if isinstance(document, (int, float)) and not isinstance(document, bool) else 0


def candidates(case: dict):
    """Cases that are one edit away, the largest cuts first."""
    for world in range(1, case["world"]):
        if "rank_args" not in case:
            yield {**case, "world": world}
            continue
        for ranks in itertools.combinations(case["rank_args"], world):
            yield {**case, "world": world, "rank_args": list(ranks)}
    for path, edit in edits(case["args"]):
        if (args := applied(case["args"], path, edit)) is not None:
            yield {**case, "args": args}
    if "rank_args" in case:
        yield {name: value for name, value in case.items() if name != "rank_args"}
        for path, edit in edits(case["rank_args"][0]):
            ranks = [applied(args, path, edit) for args in case["rank_args"]]  # the ranks keep the same structure
            if None not in ranks:
                yield {**case, "rank_args": ranks}
        for rank, args in enumerate(case["rank_args"]):
            for path, edit in edits(args):
                if (changed := applied(args, path, edit)) is not None:
                    yield {**case, "rank_args": [*case["rank_args"][:rank], changed, *case["rank_args"][rank + 1:]]}
    if case.get("seed", 0) != 0:
        yield {**case, "seed": 0}


class Impossible(Exception):
    """The edit does not fit this document."""


def applied(document, path: tuple, edit):
    """A copy of the document with the edit made at a path; None where that is impossible."""
    changed = copy.deepcopy([document])
    parent, last = changed, 0
    try:
        for part in path:
            parent, last = parent[last], part
        edit(parent, last)
    except (Impossible, KeyError, IndexError, TypeError):
        return None
    return changed[0]


def edits(document, path: tuple = ()):
    """(path, edit) pairs for a document and everything in it; edit(parent, key) changes parent[key] in place."""
    if isinstance(document, dict) and "t" in document and "shape" in document:
        yield from ((path, edit) for edit in tensor_edits(document))
    elif isinstance(document, dict):
        for name in document:
            yield (*path, name), delete
        if path and any(name in document for name in ("body", *CONTAINERS, "fields")):
            yield path, unwrap
        if document.get("kind") == "mlp" and "init" in document:
            yield path, narrowed
        if "n" in document and "b" in document:
            yield path, fewer_by_a_batch
        for name, item in document.items():
            yield from edits(item, (*path, name))
    elif isinstance(document, list):
        if len(document) > 2:
            yield path, keep_half(first=True)
            yield path, keep_half(first=False)
        for i in range(len(document)):
            yield (*path, i), delete
        for i, item in enumerate(document):
            yield from edits(item, (*path, i))
    else:
        yield from ((path, replace(number)) for number in smaller_numbers(document))


def delete(parent, key) -> None:
    del parent[key]


def replace(value):
    def edit(parent, key):
        parent[key] = value
    return edit


def keep_half(first: bool):
    def edit(parent, key):
        middle = len(parent[key]) // 2
        parent[key] = parent[key][:middle] if first else parent[key][middle:]
    return edit


def unwrap(parent, key) -> None:
    """In the place of a verb its body, in the place of a container its first item."""
    node = parent[key]
    if "body" in node:
        if not isinstance(parent, list):
            raise Impossible
        parent[key:key + 1] = node["body"]
        return
    items = next((node[name] for name in CONTAINERS if name in node), None) or list(node.get("fields", {}).values())
    if not items:
        raise Impossible
    parent[key] = items[0]


def fewer_by_a_batch(parent, key) -> None:
    """What is left over when items are put into batches stays."""
    loader = parent[key]
    if not isinstance(loader["b"], int) or not isinstance(loader["n"], int) or not 0 < loader["b"] <= loader["n"]:
        raise Impossible
    loader["n"] -= loader["b"]


def narrowed(parent, key) -> None:
    """Hidden layers of one unit each, their weights cut with them."""
    model = parent[key]
    widths = [model["widths"][0], *[1] * (len(model["widths"]) - 2), model["widths"][-1]]
    if widths == model["widths"]:
        raise Impossible
    for j, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        weight, bias = model["init"][f"{j}.weight"], model["init"][f"{j}.bias"]
        columns = weight["shape"][1]
        weight["data"] = [weight["data"][row * columns + column] for row in range(outputs) for column in range(inputs)]
        weight["shape"] = [outputs, inputs]
        bias["data"], bias["shape"] = bias["data"][:outputs], [outputs]
    model["widths"] = widths


def smaller_numbers(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return []
    if isinstance(value, float):
        return [number for number in (0.0, 1.0) if abs(number) < abs(value)]
    towards_zero = value - 1 if value > 0 else value + 1
    return [number for number in dict.fromkeys((0, 1, value // 2, towards_zero)) if abs(number) < abs(value)]


def tensor_edits(tensor: dict):
    """Fewer rows along each dimension, fewer dimensions, and simple numbers."""
    for axis, length in enumerate(tensor["shape"]):
        if length > 1:
            yield cut(axis, 1)
            yield cut(axis, length - 1)
    if "data" in tensor and any(value not in (0, False) for value in tensor["data"]):
        yield all_elements(0)
        if any(value not in (0, 1) for value in tensor["data"]):
            yield all_elements(1)
            yield each_element(round)


def cut(axis: int, length: int):
    def edit(parent, key):
        tensor = parent[key]
        if "data" not in tensor or length > tensor["shape"][axis]:
            raise Impossible
        inner = 1
        for extent in tensor["shape"][axis + 1:]:
            inner *= extent
        extent = tensor["shape"][axis]
        tensor["data"] = [value for i, value in enumerate(tensor["data"]) if i // inner % extent < length]
        tensor["shape"][axis] = length
    return edit


def each_element(change):
    def edit(parent, key):
        tensor = parent[key]
        if any(isinstance(value, str) for value in tensor["data"]):
            raise Impossible
        tensor["data"] = [type(value)(change(value)) for value in tensor["data"]]
    return edit


def all_elements(value):
    def edit(parent, key):
        tensor = parent[key]
        kind = bool if tensor["t"] == "bool" else float if "float" in tensor["t"] else int
        tensor["data"] = [kind(value)] * len(tensor["data"])
    return edit
