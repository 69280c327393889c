"""Operations on values, and what the state does with them."""

from conformance.runner.compare import Comparison, numbers

from .entry import KnownDifference, Seen, below, inputs, not_refused, refused_as


def is_tuple(value) -> bool:
    return isinstance(value, dict) and "tuple" in value


def is_mapping(value) -> bool:
    return isinstance(value, dict) and not value.keys() & {"t", "tuple", "named", "b64", "set"}


def mode_of_environment(case: dict):
    """Of the case that names none itself."""
    args = case["args"]
    return None if "mixed_precision" in args.get("accelerator", {}) else (
        args.get("env", {}).get("ACCELERATE_MIXED_PRECISION"))


def input_there(seen: Seen):
    """What the rank gave in at the place of the difference, whose path begins with the field of the result."""
    return below(inputs(seen.case)[seen.rank], seen.path[1:])


def is_same(one, other) -> bool:
    return not Comparison().differences((), one, other, in_value=True)


def keeps_the_input(name: str):
    """Explains a difference in the field where Lockstep has just what came in."""
    return lambda seen: seen.path[:1] == (name,) and is_same(seen.difference.right, input_there(seen))


def of_reduction(word: str):
    return lambda case: case["op"] == "ops.reduce" and case["args"].get("reduction") == word


def keeps_the_dtype(seen: Seen) -> bool:
    """Padded bool tensors: Accelerate makes integers of them."""
    left, right = seen.values
    given = input_there(seen)
    if not all(isinstance(one, dict) and "t" in one for one in (left, right, given)) or given["t"] != "bool":
        return False
    return right["t"] == "bool" and left["shape"] == right["shape"] and (
        [bool(element) for element in numbers(left)] == list(numbers(right)))


def padded_part(seen: Seen) -> bool:
    """As of a list: equal parts, the last ones filled with the last item."""
    items, world = inputs(seen.case)[seen.rank]["tuple"], seen.case["world"]
    longest = -(-len(items) // world)
    sizes = [len(items) // world + (rank < len(items) % world) for rank in range(world)]
    begin = sum(sizes[:seen.rank])
    part = items[begin:begin + sizes[seen.rank]]
    part += items[-1:] * (longest - len(part))
    return not_refused("TypeError")(seen) and is_same(seen.of_right(("part",)), {"tuple": part}) and is_same(
        seen.of_right(("input_after",)), {"tuple": items})


OPERATIONS = [
    KnownDifference("OPS-006", "only lists are gathered as objects",
                    lambda case: case["op"] == "ops.gather_object" and any(
                        is_mapping(value) or isinstance(value, str) for value in inputs(case)),
                    refused_as("TypeError", "ValueError")),
    KnownDifference("OPS-008", "reduction `none` returns the input", of_reduction("none"), keeps_the_input("value")),
    KnownDifference("OPS-008", "an unknown reduction is refused", of_reduction("median"), refused_as("ValueError")),
    KnownDifference("OPS-014", "padding keeps the dtype",
                    lambda case: case["op"] == "ops.pad_across_processes", keeps_the_dtype),
    KnownDifference("STATE-102", "an empty variable is one that is not set",
                    lambda case: "" in case["args"].get("env", {}).values(), not_refused("ValueError")),
    KnownDifference("STATE-112", "the gradient state has its defaults after a reset",
                    lambda case: any(call["v"] == "reset" and call["of"] == "gradient"
                                     for call in case["args"].get("calls", [])),
                    lambda seen: seen.path[:1] == ("log",) and seen.difference.left == {"error": "AttributeError"}
                    and seen.difference.right == {"num_steps": 1, "remainder": -1}.get(
                        seen.case["args"]["calls"][seen.path[1]].get("name"))),
    KnownDifference("STATE-113", "a mode of the environment that is none is refused",
                    lambda case: mode_of_environment(case) not in (None, "", "no", "fp8", "fp16", "bf16"),
                    refused_as("ValueError")),
    KnownDifference("STATE-138", "tuples are padded as lists are",
                    lambda case: case["op"] == "state.split_between_processes" and is_tuple(case["args"].get("input"))
                    and case["args"].get("apply_padding", False),
                    padded_part),
    KnownDifference("STATE-139", "the caller's mapping is not changed",
                    lambda case: case["op"] == "state.split_between_processes"
                    and is_mapping(case["args"].get("input")),
                    keeps_the_input("input_after")),
]
