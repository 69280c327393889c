"""Orders that a random sampler draws without a seed of its own are compared up to renaming.

In each pass by itself the indices are numbered by first appearance, step by step and rank by rank within a step. What
remains is the structure: how indices repeat, and which ranks see the same. Whether two passes had the same order is
compared besides.
"""

import copy

# Shorter beginnings of two passes may agree by chance.
ENOUGH_TO_JUDGE = 7


def is_random(case: dict) -> bool:
    """Whether a loader of the case is shuffled without a seed of its own."""
    return bool(shuffled_loaders(case))


def is_too_small_to_judge(case: dict) -> bool:
    """Whether random orders of this case may agree by chance."""
    return any(loader.get("n", 0) <= ENOUGH_TO_JUDGE for loader in shuffled_loaders(case))


def shuffled_loaders(case: dict) -> list[dict]:
    args = case["args"]
    if not case["op"].startswith("data.") or args.get("config", {}).get("use_seedable_sampler", False):
        return []
    loaders = [args["loader"]] if "loader" in args else args.get("loaders", {}).values()
    return [loader for loader in loaders if isinstance(loader, dict) and loader.get("shuffle")]


def canonical(case: dict, results) -> list:
    """The results of all ranks with their random orders renamed, as new objects; others as they are."""
    if not is_random(case):
        return list(results)
    renamed = copy.deepcopy(list(results))
    passes = [passes_in(result) for result in renamed]
    if len({len(of_rank) for of_rank in passes}) > 1:
        return renamed  # the ranks do not even agree on the number of passes
    together = list(zip(*passes))
    same = [[same_order(one, other) for other in together[:i]] for i, one in enumerate(together)]
    for of_all_ranks in together:
        rename(of_all_ranks)
    for result in renamed:
        result["same_order"] = same
    return renamed


def passes_in(result) -> list[dict]:
    """All PASS objects of a result, in the order in which they stand there."""
    if isinstance(result, list):
        return [found for item in result for found in passes_in(item)]
    if not isinstance(result, dict):
        return []
    nested = [found for item in result.values() for found in passes_in(item)]
    return [result, *nested] if "batches" in result and "end" in result else nested


def in_order(of_all_ranks) -> list[list[int]]:
    """The batches of one pass, step by step and rank by rank within a step."""
    steps = max(len(of_rank["batches"]) for of_rank in of_all_ranks)
    return [of_rank["batches"][step] for step in range(steps) for of_rank in of_all_ranks
            if step < len(of_rank["batches"])]


def same_order(one, other) -> bool | None:
    """Whether two passes began with the same indices; None where there are too few of them to say."""
    first, second = ([index for batch in in_order(of_all_ranks) for index in batch] for of_all_ranks in (one, other))
    common = min(len(first), len(second))
    return first[:common] == second[:common] if common >= ENOUGH_TO_JUDGE else None


def rename(of_all_ranks) -> None:
    numbers = {}
    for batch in in_order(of_all_ranks):
        batch[:] = [numbers.setdefault(index, len(numbers)) for index in batch]
