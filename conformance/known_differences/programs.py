"""Training, accumulation, generators and mixed precision."""

import math

from conformance.runner.compare import Comparison, is_half_precision

from .entry import MISSING, KnownDifference, Seen, below, either, field, flat, refused_as


def verbs(case: dict, name: str) -> list[dict]:
    return [entry for entry in flat(case["args"].get("program", [])) if entry.get("v") == name]


def accumulation_steps(case: dict):
    args = case["args"]
    return args.get("accumulation", {}).get("num_steps", args.get("accelerator", {}).get("gradient_accumulation_steps"))


def differs_on_the_rank(seen: Seen, name: str) -> bool:
    """Whether a field of this name differs too: others may follow from it."""
    return any(other.path[0] == seen.rank and name in other.path for other in seen.others)


def ends_in_a_failed(verb: str, seen: Seen, *kinds: str) -> bool:
    """Whether Accelerate's log ends where this verb fails, all before it being alike, and Lockstep's goes on."""
    left, right = seen.values
    if seen.path != ("log", "length") or len(left) > len(right) or left[-1].get("v") != verb:
        return False
    return left[-1].get("failed") in kinds and "failed" not in right[len(left) - 1] and (
        [entry.get("v") for entry in left] == [entry.get("v") for entry in right[:len(left)]])


def clamps_nothing(seen: Seen) -> bool:
    if ends_in_a_failed("clip", seen, "RuntimeError"):
        return True
    failed = any(ends_in_a_failed("clip", seen._replace(difference=other), "RuntimeError") for other in seen.others
                 if other.path[0] == seen.rank)
    return failed and seen.path[:1] == ("params",)


def goes_on_without_an_accelerator(seen: Seen) -> bool:
    left, right = seen.values
    if seen.path[:1] == ("log",) and seen.path[-1] == "failed":
        return left == "ValueError" and right == MISSING and seen.of_right(seen.path[:-1])["v"] == "sync"
    return ends_in_a_failed("sync", seen, "ValueError")


def counts_against_total_steps(seen: Seen) -> bool:
    if seen.path[-1:] == ("position",) or "lr" in seen.path:
        return True
    return differs_on_the_rank(seen, "lr") and any(
        name in seen.path for name in ("loss", "losses", "params", "norm", "grads"))


def updates_once_for_all(seen: Seen) -> bool:
    """Accelerate updates the scale once per optimizer, so that a second one is unscaled by another scale."""
    if seen.path[:1] != ("steps",) or seen.path[2] not in ("params", "scale"):
        return False
    expected = below(steps_of_a_shared_scaler(seen), seen.path[1:])
    return expected is not None and math.isclose(seen.difference.right, expected, rel_tol=1e-5, abs_tol=1e-6)


def steps_of_a_shared_scaler(seen: Seen) -> list[dict]:
    """By hand: each optimizer descends by its true gradient unless that overflows; then one update for all."""
    args = {**seen.case["args"], **(seen.case.get("rank_args") or [{}] * seen.case["world"])[seen.rank]}
    scale, good = args.get("init_scale", 65536.0), 0
    params, steps = [0.0] * args["optimizers"], []
    for of_step in args["grads"]:
        grads = of_step if isinstance(of_step, list) else [of_step] * len(params)
        if any(grad is None for grad in grads):
            break
        finite = [not isinstance(grad, str) for grad in grads]
        params = [param - grad if is_finite else param for param, grad, is_finite in zip(params, grads, finite)]
        good = good + 1 if all(finite) else 0
        if not all(finite):
            scale *= args.get("backoff_factor", 0.5)
        elif good == args.get("growth_interval", 2000):
            scale, good = scale * args.get("growth_factor", 2.0), 0
        steps.append({"params": params, "scale": scale})
    return steps


def fails_in_backward(seen: Seen) -> bool:
    """Lockstep's log ends in a backward that fails, all before it being alike and no weight having moved; Accelerate's
    goes on to the next forward, or to the end.
    """
    log = seen.of_right(("log",))
    if not log or log[-1] != {"v": "backward", "failed": "RuntimeError"}:
        return False
    if seen.path[:1] == ("params",):
        initial = below(seen.case["args"]["models"], (seen.path[1], "init", *seen.path[2:]))
        return initial is not None and not differences(seen, initial, seen.difference.right)
    if seen.path == ("log", "length"):
        return not differences(seen, seen.difference.left[:len(log)], [*log[:-1], {"v": "backward"}])
    return seen.path == ("log", len(log) - 1, "failed") and seen.difference.left == MISSING


def differences(seen: Seen, one, other) -> list:
    """Between two values that would stand at the path of the difference that was seen."""
    return Comparison(is_half_precision(seen.case)).differences(seen.path, one, other)


def evaluates_with_its_own_buffers(seen: Seen) -> bool:
    return seen.rank > 0 and seen.path[:1] == ("log",) and "losses" in seen.path and (
        seen.of_right(seen.path[:2])["v"] == "eval")


PROGRAMS = [
    KnownDifference("ACC-013", "no accumulation steps at all are refused earlier",
                    lambda case: accumulation_steps(case) == 0, refused_as("ValueError")),
    KnownDifference("ACC-014", "adjust_scheduler counts steps without synchronisation against total_steps",
                    lambda case: (accumulation_steps(case) or 1) > 1 and bool(verbs(case, "sched")) and any(
                        scheduler["kind"] == "one_cycle" and scheduler.get("prepare", True)
                        for scheduler in case["args"].get("schedulers", {}).values()),
                    counts_against_total_steps),
    KnownDifference("ACC-026", "optimizers that share a scaler update it once for all",
                    lambda case: case["op"] == "amp.scaler" and case["args"].get("optimizers", 1) > 1,
                    updates_once_for_all),
    KnownDifference("ACC-041", "clamping gradients where there are none is no error",
                    lambda case: any("value" in entry for entry in verbs(case, "clip")), clamps_nothing),
    KnownDifference("AMP-002", "fp16 on CPU is real",
                    lambda case: case["args"].get("accelerator", {}).get("mixed_precision") == "fp16",
                    either(field("native_amp", lambda seen: True), field("scaler", lambda seen: True),
                           field("block_dtype", lambda seen: "float16"))),
    KnownDifference("DDP-005", "parameters without a gradient are told after the backward, before the next forward",
                    lambda case: case["world"] > 1 and any(
                        model["kind"] == "unused" and model.get("branches", 1) > 1
                        for model in case["args"].get("models", {}).values()),
                    fails_in_backward),
    KnownDifference("DDP-008", "buffers are those of rank 0 in training, and each rank's own in evaluation",
                    lambda case: case["world"] > 1 and any(
                        model["kind"] == "batchnorm" for model in case["args"].get("models", {}).values()),
                    evaluates_with_its_own_buffers),
    KnownDifference("RNG-003", "generators can be synchronised without an Accelerator",
                    lambda case: case["op"] == "rng.program" and "accelerator" not in case["args"]
                    and bool(verbs(case, "sync")),
                    goes_on_without_an_accelerator),
]
