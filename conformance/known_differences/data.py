"""Loaders, shards and dispatchers."""

from .entry import MISSING, KnownDifference, Seen, either, field, not_refused, refused_as
from .loaders import (PER_STEP, Place, any_loader, batch_size, config, dispatches, drops_last, has_no_step, in_pass,
                      is_map, is_remainder, is_stream, loaders, place, remainder, skips, splits, total_batch_size)


def the_loader(seen: Seen) -> dict:
    """The one of path ("loaders", NAME, ..), else the only one."""
    known = loaders(seen.case)
    return known[seen.path[1]] if seen.path[:1] == ("loaders",) else next(iter(known.values()))


def splits_as_told(seen: Seen) -> bool:
    """Whether it is split_batches that Lockstep takes from there, and refuses for these batches."""
    def cannot_be_split(loader: dict) -> bool:
        size = batch_size(loader)
        return size is None or size % seen.case["world"] != 0
    is_told = bool(seen.case["args"]["accelerator"].get("split_batches"))
    return is_told and refused_as("ValueError")(seen) and any_loader(seen.case, cannot_be_split)


def irregular(loader: dict) -> bool:
    """Batches of a sampler that names a batch size and does not keep to it."""
    sizes = [len(batch) for batch in loader.get("batches") or []]
    return loader.get("batches_b") is not None and any(size != loader["batches_b"] for size in sizes)


def of_script_or_shard(seen: Seen) -> int | None:
    """How many batches a whole pass had here, by the answer itself: what a length has to be."""
    if seen.case["op"] == "data.loader":
        for i, entry in enumerate(seen.case["args"].get("script", [{"v": "pass"}])):
            is_whole = entry["v"] == "pass" and not (entry.keys() & {"skip", "stop_after"})
            if is_whole and entry.get("loader", "main") == seen.path[1]:
                return len(seen.of_right(("log", i, "batches")))
        return None
    passes = seen.of_right((*seen.path[:-1], "passes"))
    batches = [one["batches"] if isinstance(one, dict) and "batches" in one else one for one in passes]
    return next((len(one) for one in batches if isinstance(one, list)), None)


def length_of_what_it_yields(seen: Seen) -> bool:
    if seen.path[-1:] != ("len",) or not isinstance(seen.difference.right, int):
        return False
    return of_script_or_shard(seen) in (None, seen.difference.right)


def items_of_a_split_stream(seen: Seen) -> bool:
    """What a rank sees of a split stream: an equal part of each whole batch, the last one completed unless dropped."""
    if seen.path[:1] != ("loaders",):
        return False
    case, loader = seen.case, the_loader(seen)
    size = batch_size(loader) or 1
    full = loader["n"] // size if drops_last(loader) else -(-loader["n"] // size)
    return seen.path[-1] == "total_dataset_length" and seen.difference.right == full * (size // case["world"])


def skipped_length(seen: Seen) -> bool:
    if seen.path != ("len",) or not isinstance(seen.difference.left, int):
        return False
    left = seen.difference.left - max(seen.case["args"]["skip"], 0)
    return seen.difference.right == (left if left >= 0 else {"error": "ValueError"})


def empty_pass(seen: Seen, where: Place) -> bool:
    """`after` of a pass that handed out nothing: no end, an unknown remainder, and it does not count."""
    left, right = seen.values
    num_empty = where.at[1] + 1 if where.at[0] == "passes" else 1  # so far; Accelerate counts them
    pinned = {("after", 0): (True, False), ("after", 1): (left, -1), ("after", 4): (right + num_empty, right) if (
        isinstance(right, int)) else None}
    return where.skipped is not None and seen.of_right((*where.at, "batches")) == [] and (
        (left, right) == pinned.get(where.field))


def repeats_until_each_rank_has_a_row(seen: Seen, where: Place) -> bool:
    left, right = seen.values
    n = where.loader["n"]
    if where.field[0] == "values":
        return any(other.path == (seen.rank, *where.at, "batches", where.field[1], "length") for other in seen.others)
    return where.field[0] == "batches" and left == [] and 0 < 2 * n < seen.case["world"] and (
        isinstance(right, list) and len(right) == 1 and 0 <= right[0] < n)


def no_data(seen: Seen, where: Place) -> bool:
    """Accelerate fails; here it is an empty pass that does not count."""
    left, right = seen.values
    if not has_no_step(seen.case, where.loader, where.skipped):
        return False
    if where.field == ("failed",):
        return left in ("ValueError", "TypeError") and right == MISSING
    if where.field == ("after",):
        return left == MISSING and is_pass_of_these_steps(seen, where)
    return where.field == ("slices", "length") and right == []


def passes_left_registered(seen: Seen) -> bool:
    """By the failed passes of Accelerate: those that fail stay active."""
    left, right = seen.values
    failed = [other for other in seen.others if other.path[0] == seen.rank and other.path[-1] == "failed"
              and other.right == MISSING]
    return seen.path == ("active",) and right < left <= right + len(failed)


def metrics_of_no_data(seen: Seen) -> bool:
    return not_refused("ValueError", "TypeError")(seen) and all(
        one["gathered"] == [] for one in seen.of_right(("passes",)))


def rows_of_steps(seen: Seen, where: Place) -> list[int]:
    """How many rows of the data each step has that a dispatcher hands out behind the skipped ones."""
    whole, n = total_batch_size(seen.case, where.loader) or 1, where.loader["n"]
    rows = [min(whole, n - begin) for begin in range(max(where.skipped or 0, 0) * whole, n, whole)]
    return [count for count in rows if count == whole or not drops_last(where.loader)]


def batches_of_rank(seen: Seen, where: Place) -> list[list[int]]:
    """What this rank gets of these steps where the order is that of the data."""
    whole, world, head = total_batch_size(seen.case, where.loader) or 1, seen.case["world"], where.loader["n"]
    begin, batches = max(where.skipped or 0, 0) * whole, []
    for count in rows_of_steps(seen, where):
        rows = [*range(begin, begin + count), *[i % head for i in range(-count % world)]]
        share = len(rows) // world
        batches.append(rows[seen.rank * share:(seen.rank + 1) * share])
        begin += count
    return batches


def slices_of_rank(seen: Seen, where: Place) -> list[list[int]]:
    """The calls of a slice function: the head where it is needed, then this rank's part of each step."""
    rank, world, rows, slices = seen.rank, seen.case["world"], rows_of_steps(seen, where), []
    for i, count in enumerate(rows):
        is_filled = i == len(rows) - 1 and count % world != 0 and not drops_last(where.loader)
        if not drops_last(where.loader) and (i == 0 if where.skipped <= 0 else is_filled):
            slices.append([0, world, rank, world])
        share = count // world + is_filled
        slices.append([rank * share, (rank + 1) * share, rank, world])
    return slices


def is_pass_of_these_steps(seen: Seen, where: Place) -> bool:
    """Whether the record of the pass is what these steps make it: batches, flags, and how it is left."""
    record, rows = seen.of_right(where.at), rows_of_steps(seen, where)
    in_order = not where.loader.get("shuffle")
    if where.loader.get("batches") is not None or "failed" in record:
        return True  # rows are the user's own; and what fails is compared with what fails
    end, remainders = [False] * len(rows), [-1] * len(rows)
    if rows:
        end[-1], remainders[-1] = True, rows[-1]
    after = [True, rows[-1], False, -1] if rows else [False, -1, False, -1]
    flags_are_right = record["end"] == record["state_end"] == end and (
        record["remainder"] == record["state_remainder"] == remainders and record["after"][:4] == after)
    return flags_are_right and len(record["batches"]) == len(rows) and (
        not in_order or record["batches"] == batches_of_rank(seen, where))


def skipped_dispatched_steps(seen: Seen, where: Place) -> bool:
    counts = where.field != ("after", 4) or seen.of_right((*where.at, "batches")) == []  # an empty pass does not count
    return where.skipped is not None and counts and is_pass_of_these_steps(seen, where)


def order_of_other_steps(seen: Seen) -> bool:
    """Whether passes had the same order cannot be asked of steps that are grouped otherwise."""
    return seen.path[:1] == ("same_order",) and any_loader(seen.case, lambda loader: loader.get("shuffle", False))


def reads_the_steps_left(seen: Seen) -> bool:
    """Accelerate skips fewer rows or more; here the first step is read too where the last one is filled with it."""
    left, right = seen.values
    most = 2 * seen.case["world"] * (batch_size(the_loader(seen)) or 1)
    return seen.path[-1:] == ("reads",) and seen.rank == 0 and abs(right - left) <= most * len(
        [entry for entry in seen.case["args"].get("script", []) if entry.get("skip")])


def order(seen: Seen) -> bool:
    """Which items come, and nothing else."""
    where = place(seen)
    return where.field[0] in ("batches", "values") if where else "gathered" in seen.path or "plain" in seen.path


def ranks_have_seeds(case: dict) -> bool:
    return any("rank_seed" in args for args in case.get("rank_args", []))


DATA = [
    KnownDifference("DATA-002", "data options given to the Accelerator take effect",
                    lambda case: bool(case["args"].get("accelerator", {}).keys()
                                      & {"split_batches", "dispatch_batches", "even_batches"}),
                    # Accelerate refuses the case or goes on without the option: what it has is nothing to compare with.
                    either(splits_as_told, not_refused("TypeError"),
                           lambda seen: seen.path[:1] in (("loaders",), ("log",)))),
    KnownDifference("DATA-008", "a loader whose sampler yields the batches can be skipped and measured as others can",
                    lambda case: any_loader(case, lambda loader: loader.get("sampler_batches", False)),
                    either(not_refused("TypeError", "ValueError"), in_pass(
                        lambda seen, where: where.skipped is not None and is_remainder(where)
                        and seen.difference.right == remainder(seen.case, where.loader)))),
    KnownDifference("DATA-012", "map-style data without batches is refused when it is prepared or skipped",
                    lambda case: (case["world"] > 1 or skips(case)) and any_loader(
                        case, lambda loader: is_map(loader) and loader.get("b", 1) is None),
                    refused_as("TypeError")),
    KnownDifference("DATA-017", "the total batch size of a stream, too, is that of all ranks",
                    lambda case: not dispatches(case) and any_loader(case, is_stream),
                    field("total_batch_size", lambda seen: total_batch_size(seen.case, the_loader(seen)))),
    KnownDifference("DATA-017", "a sampler without a batch size and one whose batch size is none are alike",
                    lambda case: any_loader(case, lambda loader: loader.get("batches_b", 0) is None),
                    field("total_batch_size", lambda seen: {"error": "AttributeError"})),
    KnownDifference("DATA-031", "the length of a split shard without completion is that of each rank",
                    lambda case: case["op"] in ("data.shard", "data.loader", "data.skip_first_batches")
                    and (splits(case) or case["args"].get("split_batches", False))
                    and not (config(case, "even_batches", True) and case["args"].get("even_batches", True))
                    and not dispatches(case),
                    length_of_what_it_yields),
    KnownDifference("DATA-032", "splitting batches of no common size is refused as splitting uneven ones is",
                    lambda case: splits(case) and any_loader(case, lambda loader: batch_size(loader) is None),
                    lambda seen: refused_as("ValueError")(seen) and seen.difference.left == "error TypeError"),
    KnownDifference("DATA-037", "batches of another size than the sampler names are an error",
                    lambda case: irregular(case["args"]) or any_loader(case, irregular),
                    lambda seen: refused_as("ValueError")(seen) or fails_here(seen)),
    KnownDifference("DATA-054", "splitting batches of one is refused",
                    lambda case: case["op"] == "data.iterable_shard" and case["args"].get("b", 1) == 1
                    and case["args"].get("split_batches", False),
                    refused_as("ValueError")),
    KnownDifference("DATA-056", "the length of a split iterable shard is what it yields",
                    lambda case: (case["op"] == "data.iterable_shard" and case["args"].get("split_batches", False))
                    or (splits(case) and not dispatches(case) and any_loader(case, is_stream)),
                    either(length_of_what_it_yields, items_of_a_split_stream)),
    KnownDifference("DATA-059", "a shard that was never told an epoch is in epoch 0",
                    lambda case: case["op"] == "data.iterable_shard"
                    and case["args"].get("dataset_generator") is not None
                    and None in case["args"].get("epochs", [None]),
                    lambda seen: "passes" in seen.path and seen.difference.left == {"error": "AttributeError"}
                    and isinstance(seen.difference.right, list)),
    KnownDifference("DATA-066", "the remainder is unknown where a short batch is dropped, also by a batch sampler",
                    lambda case: any_loader(case, drops_last),
                    in_pass(lambda seen, where: is_remainder(where) and seen.difference.right == -1
                            and drops_last(where.loader)
                            and (any(where.loader.get(name) for name in ("batches", "sampler_batches"))
                                 or where.loader.get("batches") == []
                                 or (where.skipped is not None and is_stream(where.loader))))),
    KnownDifference("DATA-071", "a pass of which everything is skipped is an empty one", skips, in_pass(empty_pass)),
    KnownDifference("DATA-085", "a dispatcher repeats what little there is until every rank has a row",
                    dispatches, in_pass(repeats_until_each_rank_has_a_row)),
    KnownDifference("DATA-089", "a dispatcher without data makes an empty pass",
                    dispatches, either(in_pass(no_data), passes_left_registered, metrics_of_no_data)),
    KnownDifference("DATA-090", "a dispatcher refuses to split batches of one",
                    lambda case: dispatches(case) and splits(case) and case["world"] > 1
                    and any_loader(case, lambda loader: batch_size(loader) == 1),
                    refused_as("ValueError")),
    KnownDifference("DATA-094", "a skipped dispatcher keeps its slice function",
                    lambda case: skips(case) and dispatches(case) and case["args"].get("record_slices", False),
                    in_pass(lambda seen, where: where.skipped is not None and where.field == ("slices", "length")
                            and seen.values == ([], slices_of_rank(seen, where)))),
    KnownDifference("DATA-096", "a dispatcher knows its total batch size", dispatches,
                    lambda seen: seen.difference.left == {"error": "AttributeError"} and field(
                        "total_batch_size", lambda seen: total_batch_size(seen.case, the_loader(seen)))(seen)),
    KnownDifference("DATA-101", "the seed of rank 0 is that of every seedable sampler",
                    lambda case: ranks_have_seeds(case) and bool(config(case, "use_seedable_sampler"))
                    and config(case, "data_seed") is None,
                    order),
    KnownDifference("DATA-106", "a skipped loader keeps its remainder",
                    lambda case: skips(case) and any_loader(case, is_map),
                    in_pass(lambda seen, where: where.skipped is not None and is_remainder(where)
                            and is_map(where.loader) and seen.difference.left == -1
                            and seen.difference.right == remainder(seen.case, where.loader))),
    KnownDifference("DATA-107", "the length of a skipped stream, too, is without what is skipped",
                    lambda case: case["op"] == "data.skip_first_batches" and any_loader(case, is_stream),
                    skipped_length),
    KnownDifference("DATA-108", "skipping on a dispatcher counts the batches that it hands out",
                    lambda case: skips(case) and dispatches(case) and any_loader(case, is_map),
                    either(in_pass(skipped_dispatched_steps), reads_the_steps_left, order_of_other_steps,
                           lambda seen: seen.path == ("len",))),
    KnownDifference("RNG-009", "the generator of a sampler is synchronised whatever else is",
                    lambda case: ranks_have_seeds(case)
                    and any_loader(case, lambda loader: loader.get("shuffle", False))
                    and "generator" not in case["args"].get("accelerator", {}).get("rng_types", ["generator"]),
                    order),
]


def fails_here(seen: Seen) -> bool:
    """What follows from a pass that fails here with a ValueError: it hands out nothing, and stays active."""
    where = place(seen)
    if where is not None:
        return seen.of_right((*where.at, "failed")) == "ValueError" and where.field[0] in (*PER_STEP, "after", "failed")
    some_fail = any(other.path[-1] == "failed" and other.right == "ValueError" for other in seen.others)
    return some_fail and (seen.path == ("active",) or seen.path[-1:] in (("iteration",), ("reads",)))
