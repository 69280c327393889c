"""When two answers are the same, by the rules of the protocol, and where they are not."""

import base64
import math
import struct
from typing import NamedTuple

from .orders import canonical
from .outcomes import brief, word

# dtype or "float" (of Python) -> relative and absolute difference allowed; other types are compared exactly
TOLERANCE = {"float64": (1e-10, 1e-12), "float32": (1e-5, 1e-6), "float": (1e-5, 1e-6), "float16": (1e-2, 1e-3),
             "bfloat16": (1e-2, 1e-3), "float8_e4m3fn": (1e-2, 1e-3), "float8_e5m2": (1e-2, 1e-3)}
HALF_PRECISION = (1e-2, 1e-3)  # of what follows from products in bfloat16 or float16, in a run that has such
PRODUCTS = {"loss", "losses", "params", "grads", "norm", "output", "value"}  # fields that do

MISSING = "(missing)"
VALUES = {"value", "input_after", "part", "gathered", "plain", "values"}  # fields that hold a VALUE, not our own record
OPTIONAL = {"epochs_seen", "entered_s"}  # may be missing
WAITED_S = (0.1, 0.05)  # who waited at least so long on one side waited at least so long on the other
SPECIAL = {"NaN", "Infinity", "-Infinity"}
FORMATS = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
           "uint8": "B", "bool": "?"}


class Difference(NamedTuple):
    """Where two answers differ: path starts with the rank."""

    path: tuple
    left: object
    right: object

    def __str__(self):
        where = "rank " + " ".join(str(part) for part in self.path)
        return f"{where}: {shorten(self.left)} versus {shorten(self.right)}"


def shorten(value, longest: int = 200) -> str:
    text = str(value)
    return text if len(text) <= longest else text[:longest] + " .."


def compare_outcomes(case: dict, left: list[dict], right: list[dict], one_sided: bool = False) -> list[Difference]:
    """The differences between two subjects' outcomes of a case, rank by rank.

    @param one_sided  left may name fewer fields than right
    """
    comparison = Comparison(is_half_precision(case), one_sided)
    found, comparable = [], []
    for rank, (one, other) in enumerate(zip(left, right, strict=True)):
        if same_outcome(one, other):
            comparable.append(rank)
        else:
            found.append(Difference((rank,), brief(one), brief(other)))
    results = [(rank, left[rank]["ok"], right[rank]["ok"]) for rank in comparable if "ok" in left[rank]]
    if results:
        ranks, ones, others = zip(*results)
        for rank, one, other in zip(ranks, canonical(case, ones), canonical(case, others)):
            found += comparison.differences((rank,), one, other)
    return found


def same_outcome(one: dict, other: dict) -> bool:
    """Whether the words are the same and, of errors, the kinds."""
    return word(one) == word(other) and one.get("error") == other.get("error")


def is_half_precision(case: dict) -> bool:
    return case["args"].get("accelerator", {}).get("mixed_precision") in ("bf16", "fp16")


class Comparison:
    """Walks through two results together."""

    def __init__(self, half_precision: bool = False, one_sided: bool = False):
        self.half_precision, self.one_sided = half_precision, one_sided

    def differences(self, path: tuple, one, other, in_value: bool = False) -> list[Difference]:
        if isinstance(one, dict) and isinstance(other, dict):
            return self._objects(path, one, other, in_value)
        if isinstance(one, list) and isinstance(other, list):
            return self._lists(path, one, other, in_value)
        return [] if self._same_scalar(path, one, other, in_value) else [Difference(path, one, other)]

    def _objects(self, path, one, other, in_value):
        if "t" in one and "t" in other:
            return [] if self._same_tensor(path, one, other) else [Difference(path, one, other)]
        if one.keys() == {"set"} == other.keys():
            one, other = ({"set": sorted(given["set"], key=str)} for given in (one, other))
        if one.keys() == {"error"} == other.keys():
            return [] if one == other else [Difference(path, one, other)]
        if in_value and list(one) != list(other):
            return [Difference((*path, "keys"), list(one), list(other))]
        found = []
        for name in dict.fromkeys([*one, *other]):
            if (name not in one or name not in other) and self._may_be_missing(name, one, other):
                continue
            mine, yours = one.get(name, MISSING), other.get(name, MISSING)
            if name == "entered_s" and not in_value:
                found += [] if waited_alike(mine, yours) else [Difference((*path, name), mine, yours)]
            else:
                found += self.differences((*path, name), mine, yours, in_value or name in VALUES)
        return found

    def _may_be_missing(self, name, one, other):
        both_failed = name == "after" and "failed" in one and "failed" in other
        return name in OPTIONAL or both_failed or (self.one_sided and name not in one)

    def _lists(self, path, one, other, in_value):
        if len(one) != len(other):
            return [Difference((*path, "length"), one, other)]
        return [difference for i, (mine, yours) in enumerate(zip(one, other))
                for difference in self.differences((*path, i), mine, yours, in_value)]

    def _same_scalar(self, path, one, other, in_value):
        if is_number(one) and is_number(other):
            if isinstance(one, int) and isinstance(other, int):
                return one == other
            return (not in_value or type(one) is type(other)) and close(one, other, self._tolerance(path, "float"))
        return type(one) is type(other) and one == other

    def _same_tensor(self, path, one, other):
        if one["t"] != other["t"] or one["shape"] != other["shape"]:
            return False
        mine, yours = numbers(one), numbers(other)
        if one["t"] not in TOLERANCE or isinstance(mine, bytes) or isinstance(yours, bytes):
            return mine == yours
        tolerance = self._tolerance(path, one["t"])
        return len(mine) == len(yours) and all(close(a, b, tolerance) for a, b in zip(mine, yours))

    def _tolerance(self, path, dtype):
        return HALF_PRECISION if self.half_precision and not PRODUCTS.isdisjoint(path) else TOLERANCE[dtype]


def close(a, b, tolerance) -> bool:
    if a in SPECIAL or b in SPECIAL:
        return a == b
    relative, absolute = tolerance
    return abs(a - b) <= relative * max(abs(a), abs(b)) + absolute


def waited_alike(one, other) -> bool:
    """Of times only lower bounds are judged."""
    if not is_number(one) or not is_number(other):
        return one == other
    long, short = WAITED_S
    return not (max(one, other) >= long and min(one, other) < short)


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def numbers(tensor: dict):
    """The elements of a tensor, special ones as their strings; bytes where its dtype is none of Python's."""
    if "data" in tensor:
        return tensor["data"]
    content, code = base64.b64decode(tensor["b64"]), FORMATS.get(tensor["t"])
    if code is None:
        return content
    elements = struct.unpack(f"<{math.prod(tensor['shape'])}{code}", content)
    return [element if not isinstance(element, float) or math.isfinite(element) else special(element)
            for element in elements]


def special(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
