"""Where Lockstep differs from Accelerate on purpose: it does what the clause names under `Accepted:`, or the clause
says that the older behaviour wins (S). Nothing else may differ.

Each entry says for which cases it may, and which differences of such a case it explains; a case counts as known only if
every one of its differences is explained. In a Difference the left side is Accelerate's.
"""

from typing import Callable, NamedTuple

from conformance.runner.compare import Difference


class KnownDifference(NamedTuple):
    clause: str
    reason: str
    applies: Callable[[dict], bool]
    explains: Callable[[Difference], bool] = lambda difference: True


def config(case: dict, name: str, default=None):
    return case["args"].get("config", {}).get(name, default)


def loaders(case: dict) -> list[dict]:
    args = case["args"]
    return [args["loader"]] if isinstance(args.get("loader"), dict) else list(args.get("loaders", {}).values())


def any_loader(case: dict, condition) -> bool:
    return any(condition(loader) for loader in loaders(case))


def is_map(loader: dict) -> bool:
    return loader.get("kind", "map") == "map"


def dispatches(case: dict) -> bool:
    """Whether the loader is a dispatcher: asked for, or by default for iterable data."""
    by_default = True if case["op"] == "data.dispatcher" else any_loader(case, lambda loader: not is_map(loader)) and (
        case["args"].get("accelerator", {}).get("device_placement", True))
    wanted = config(case, "dispatch_batches")
    return bool(loaders(case)) and (by_default if wanted is None else wanted)


def flat(entries: list[dict]) -> list[dict]:
    """Entries of a script or verbs of a program, those of their bodies among them."""
    return [found for entry in entries for found in (entry, *flat(entry.get("body", [])))]


def script(case: dict) -> list[dict]:
    return flat(case["args"].get("script", []))


def verbs(case: dict, name: str) -> list[dict]:
    return [entry for entry in flat(case["args"].get("program", [])) if entry.get("v") == name]


def skips(case: dict) -> bool:
    return case["op"] in ("data.skip_first_batches", "data.resume") or any("skip" in entry for entry in script(case))


def ranks_have_seeds(case: dict) -> bool:
    return any("rank_seed" in args for args in case.get("rank_args", []))


def inputs(case: dict) -> list:
    """The input of each rank."""
    return [{**case["args"], **args}.get("input") for args in case.get("rank_args", [{}])]


def at(*names: str):
    """Explains differences below a field of one of these names."""
    return lambda difference: any(name in difference.path for name in names)


def refused_as(*kinds: str):
    """Explains that the other side refuses the case with an error of one of these kinds."""
    return lambda difference: str(difference.right) in [f"error {kind}" for kind in kinds]


def global_batch(case: dict, loader: dict) -> int:
    """Rows that a dispatcher hands out in one step."""
    b = loader.get("b", 1) or 1
    return b if config(case, "split_batches", False) else b * case["world"]


def has_no_step(case: dict, loader: dict) -> bool:
    """Whether a dispatcher of this loader has nothing to hand out, perhaps because what there is has been skipped."""
    args, whole = case["args"], global_batch(case, loader)
    skipped = max(args.get("skip", 0), args.get("consume", 0), *(entry.get("skip") or 0 for entry in script(case)), 0)
    left = loader["n"] - skipped * whole if is_map(loader) else loader["n"]
    return left <= 0 or (loader.get("drop_last", False) and left < whole)


def irregular(loader: dict) -> bool:
    """Batches of a sampler that names a batch size and does not keep to it."""
    sizes = [len(batch) for batch in loader.get("batches") or []]
    return loader.get("batches_b") is not None and any(size != loader["batches_b"] for size in sizes)


def pads_other_dtype(difference: Difference) -> bool:
    left, right = difference.left, difference.right
    return isinstance(left, dict) and isinstance(right, dict) and left.get("t") != right.get("t") and (
        left.get("shape") == right.get("shape"))


def is_tuple(value) -> bool:
    return isinstance(value, dict) and "tuple" in value


def is_mapping(value) -> bool:
    return isinstance(value, dict) and not value.keys() & {"t", "tuple", "named", "b64", "set"}


def accumulation_steps(case: dict):
    args = case["args"]
    return args.get("accumulation", {}).get("num_steps", args.get("accelerator", {}).get("gradient_accumulation_steps"))


KNOWN_DIFFERENCES = [
    KnownDifference("DATA-002", "data options given to the Accelerator take effect",
                    lambda case: bool(case["args"].get("accelerator", {}).keys()
                                      & {"split_batches", "dispatch_batches", "even_batches"})),
    KnownDifference("DATA-012", "map-style data without batches is refused when it is prepared, with the same kind",
                    lambda case: case["world"] > 1 and any_loader(
                        case, lambda loader: is_map(loader) and loader.get("b", 1) is None),
                    refused_as("TypeError")),
    KnownDifference("DATA-031", "the length of a split shard without completion is that of each rank",
                    lambda case: case["op"].startswith("data.")
                    and (config(case, "split_batches") or case["args"].get("split_batches", False))
                    and not (config(case, "even_batches", True) and case["args"].get("even_batches", True))
                    and not dispatches(case),
                    at("len")),
    KnownDifference("DATA-037", "batches of another size than the sampler names are an error",
                    lambda case: irregular(case["args"]) or any_loader(case, irregular)),
    KnownDifference("DATA-054", "splitting batches of one is refused",
                    lambda case: case["op"] == "data.iterable_shard" and case["args"].get("b", 1) == 1
                    and case["args"].get("split_batches", False),
                    refused_as("ValueError")),
    KnownDifference("DATA-056", "the length of a split iterable shard is what it yields",
                    lambda case: (case["op"] == "data.iterable_shard" and case["args"].get("split_batches", False))
                    or (bool(config(case, "split_batches")) and any_loader(case, lambda loader: not is_map(loader))),
                    at("len", "total_dataset_length")),
    KnownDifference("DATA-017", "the total batch size of a stream, too, is that of all ranks",
                    lambda case: not dispatches(case) and any_loader(case, lambda loader: not is_map(loader)),
                    at("total_batch_size")),
    KnownDifference("DATA-071", "a pass of which everything is skipped is an empty one",
                    lambda case: skips(case) and any_loader(case, lambda loader: not is_map(loader)),
                    at("after")),
    KnownDifference("DATA-066", "the remainder of a stream whose short batch is dropped is unknown, skipped or not",
                    lambda case: skips(case) and any_loader(
                        case, lambda loader: not is_map(loader) and loader.get("drop_last", False)),
                    at("remainder", "state_remainder", "after")),
    KnownDifference("DATA-008", "a loader whose sampler yields the batches can be skipped as others can",
                    lambda case: skips(case) and any_loader(case, lambda loader: loader.get("sampler_batches", False))),
    KnownDifference("DDP-008", "buffers are those of rank 0 in training, and each rank's own in evaluation",
                    lambda case: case["world"] > 1 and any(
                        model["kind"] == "batchnorm" for model in case["args"].get("models", {}).values()),
                    at("losses")),
    KnownDifference("DATA-017", "a sampler without a batch size and one whose batch size is none are alike",
                    lambda case: any_loader(case, lambda loader: loader.get("batches_b", 0) is None),
                    lambda difference: difference.path[-1] == "total_batch_size"
                    and difference.right == {"error": "AttributeError"}),
    KnownDifference("DATA-107", "the length of a skipped stream, too, is without what is skipped",
                    lambda case: case["op"] == "data.skip_first_batches" and any_loader(
                        case, lambda loader: not is_map(loader)),
                    at("len")),
    KnownDifference("DATA-059", "a shard that was never told an epoch is in epoch 0",
                    lambda case: case["op"] == "data.iterable_shard"
                    and case["args"].get("dataset_generator") is not None,
                    lambda difference: difference.left == {"error": "AttributeError"} or "passes" in difference.path),
    KnownDifference("DATA-085", "a dispatcher repeats what little there is until every rank has a row",
                    lambda case: dispatches(case)
                    and any_loader(case, lambda loader: 0 < 2 * loader["n"] < case["world"])),
    KnownDifference("DATA-089", "a dispatcher without data makes an empty pass",
                    lambda case: dispatches(case) and any_loader(case, lambda loader: has_no_step(case, loader))),
    KnownDifference("DATA-090", "a dispatcher refuses to split batches of one",
                    lambda case: dispatches(case) and bool(config(case, "split_batches")) and case["world"] > 1
                    and any_loader(case, lambda loader: loader.get("b", 1) == 1)),
    KnownDifference("DATA-096", "a dispatcher knows its total batch size",
                    dispatches,
                    lambda difference: difference.path[-1] == "total_batch_size"
                    and difference.left == {"error": "AttributeError"} and isinstance(difference.right, int)),
    KnownDifference("DATA-101", "the seed of rank 0 is that of every seedable sampler",
                    lambda case: ranks_have_seeds(case) and bool(config(case, "use_seedable_sampler"))
                    and config(case, "data_seed") is None),
    KnownDifference("DATA-106", "a skipped loader keeps its remainder",
                    lambda case: skips(case) and any_loader(case, is_map),
                    lambda difference: at("passes", "resumed", "log")(difference)
                    and at("remainder", "state_remainder", "after")(difference)),
    KnownDifference("DATA-108", "skipping on a dispatcher counts the batches that it hands out",
                    lambda case: skips(case) and dispatches(case) and any_loader(case, is_map)),
    KnownDifference("OPS-006", "only lists are gathered as objects",
                    lambda case: case["op"] == "ops.gather_object" and any(
                        is_mapping(value) or isinstance(value, str) for value in inputs(case)),
                    refused_as("TypeError", "ValueError")),
    KnownDifference("OPS-008", "reduction `none` returns the input, an unknown word is refused",
                    lambda case: case["op"] == "ops.reduce" and case["args"].get("reduction") in ("none", "median")),
    KnownDifference("OPS-014", "padding keeps the dtype",
                    lambda case: case["op"] == "ops.pad_across_processes", pads_other_dtype),
    KnownDifference("STATE-138", "tuples are padded as lists are",
                    lambda case: case["op"] == "state.split_between_processes" and is_tuple(case["args"].get("input"))
                    and case["args"].get("apply_padding", False)),
    KnownDifference("STATE-139", "the caller's mapping is not changed",
                    lambda case: case["op"] == "state.split_between_processes"
                    and is_mapping(case["args"].get("input")), at("input_after")),
    KnownDifference("ACC-013", "no accumulation steps at all are refused earlier",
                    lambda case: accumulation_steps(case) == 0),
    KnownDifference("ACC-014", "adjust_scheduler is read back as it was given",
                    lambda case: case["op"] == "state.process" and accumulation_steps(case) is not None,
                    at("adjust_scheduler")),
    KnownDifference("ACC-014", "adjust_scheduler counts steps without synchronisation against total_steps",
                    lambda case: accumulation_steps(case) is not None and any(
                        scheduler["kind"] == "one_cycle" for scheduler in case["args"].get("schedulers", {}).values()),
                    at("lr", "position", "loss", "params", "norm", "grads", "losses")),
    KnownDifference("ACC-026", "optimizers that share a scaler update it once for all",
                    lambda case: case["op"] == "amp.scaler" and case["args"].get("optimizers", 1) > 1),
    KnownDifference("RNG-003", "generators can be synchronised without an Accelerator",
                    lambda case: case["op"] == "rng.program" and "accelerator" not in case["args"]),
    KnownDifference("ACC-041", "clamping gradients where there are none is no error",
                    lambda case: any("value" in entry for entry in verbs(case, "clip"))),
    KnownDifference("RNG-009", "the generator of a sampler is synchronised whatever else is",
                    lambda case: ranks_have_seeds(case)
                    and any_loader(case, lambda loader: loader.get("shuffle", False))
                    and "generator" not in case["args"].get("accelerator", {}).get("rng_types", ["generator"])),
    KnownDifference("AMP-002", "fp16 on CPU is real",
                    lambda case: case["args"].get("accelerator", {}).get("mixed_precision") == "fp16"),
]
