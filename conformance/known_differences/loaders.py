"""What a case says of its loaders, and which pass of which loader a path is about."""

from typing import NamedTuple

from .entry import Seen, flat

PER_STEP = ("batches", "values", "end", "remainder", "state_end", "state_remainder", "slices")


def config(case: dict, name: str, default=None):
    """A data option as Lockstep takes it, from either place."""
    args = case["args"]
    return args.get("config", {}).get(name, args.get("accelerator", {}).get(name, default))


def loaders(case: dict) -> dict[str, dict]:
    """By their names."""
    args = case["args"]
    return {"main": args["loader"]} if isinstance(args.get("loader"), dict) else dict(args.get("loaders", {}))


def any_loader(case: dict, condition) -> bool:
    return any(condition(loader) for loader in loaders(case).values())


def is_map(loader: dict) -> bool:
    return loader.get("kind", "map") == "map"


def is_stream(loader: dict) -> bool:
    return not is_map(loader)


def batch_size(loader: dict):
    return loader.get("batches_b") if loader.get("batches") is not None else loader.get("b", 1)


def drops_last(loader: dict) -> bool:
    return bool(loader.get("batches_drop_last" if loader.get("batches") is not None else "drop_last", False))


def splits(case: dict) -> bool:
    return bool(config(case, "split_batches", False))


def total_batch_size(case: dict, loader: dict):
    """Rows of a step on all ranks; None if batches have no common size."""
    size = batch_size(loader)
    return size if size is None or splits(case) else size * case["world"]


def remainder(case: dict, loader: dict) -> int:
    """Of a map-style shard loader, as DATA-066 says."""
    total = total_batch_size(case, loader)
    if not total or drops_last(loader):
        return -1
    visited = loader["n"] if loader.get("batches") is not None else loader.get("num_samples") or loader["n"]
    return visited % total


def dispatches(case: dict) -> bool:
    """Whether the loader is a dispatcher: asked for, or by default for iterable data."""
    by_default = True if case["op"] == "data.dispatcher" else any_loader(case, is_stream) and (
        case["args"].get("accelerator", {}).get("device_placement", True))
    wanted = config(case, "dispatch_batches")
    return bool(loaders(case)) and (by_default if wanted is None else wanted)


def skips(case: dict) -> bool:
    return case["op"] in ("data.skip_first_batches", "data.resume") or any(
        entry.get("skip") is not None for entry in flat(case["args"].get("script", [])))


def has_no_step(case: dict, loader: dict, skipped: int | None) -> bool:
    """Whether a dispatcher of this loader has nothing to hand out behind the steps that are skipped."""
    whole = total_batch_size(case, loader) or 1
    left = loader["n"] - max(skipped or 0, 0) * whole
    return left <= 0 or (drops_last(loader) and left < whole)


class Place(NamedTuple):
    """A pass of a loader, and the field of its record that a path names."""

    loader: dict
    skipped: int | None  # steps; None: nothing was asked to be skipped
    at: tuple  # the path of the record in the rank's result
    field: tuple


def place(seen: Seen) -> Place | None:
    """Which pass the difference is about; None if it is about none."""
    case, path = seen.case, seen.path
    if not path or case["op"] not in ("data.loader", "data.dispatcher", "data.skip_first_batches", "data.resume"):
        return None
    if case["op"] in ("data.loader", "data.dispatcher"):
        return place_in_script(case, path) if path[0] == "log" else None
    length = 2 if path[0] == "passes" else 1
    skipped = {"passes": case["args"].get("skip"), "resumed": case["args"].get("consume")}.get(path[0])
    return Place(loaders(case)["main"], skipped, path[:length], path[length:]) if len(path) > length else None


def place_in_script(case: dict, path: tuple) -> Place | None:
    entries, at = case["args"].get("script", [{"v": "pass"}]), 1
    while at < len(path) and isinstance(path[at], int) and path[at] < len(entries):
        entry, rest = entries[path[at]], path[at + 1:]
        if rest[:1] == ("body",):
            entries, at = entry.get("body", []), at + 2
        elif rest[:1] == ("nested",) and len(rest) > 2:
            entries, at = entry["nested"][rest[1]], at + 3
        elif entry["v"] == "pass" and rest:
            return Place(loaders(case)[entry.get("loader", "main")], entry.get("skip"), path[:at + 1], rest)
        else:
            return None
    return None


def in_pass(condition):
    """Explains what condition(seen, place) says of a difference in a pass."""
    def explains(seen: Seen) -> bool:
        where = place(seen)
        return where is not None and condition(seen, where)
    return explains


def is_remainder(where: Place) -> bool:
    """A remainder, of the loader or as the state has it, in the loop or after it."""
    return where.field[0] in ("remainder", "state_remainder") or where.field in (("after", 1), ("after", 3))
