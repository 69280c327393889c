"""What an entry is, and the ways of explaining that several share."""

from typing import Callable, NamedTuple

from conformance.runner.compare import MISSING, Difference


class Seen(NamedTuple):
    """A difference in its surroundings; what is left is Accelerate's."""

    case: dict
    difference: Difference
    right: list[dict]  # the outcomes, one per rank
    others: list[Difference]  # all differences of the case, this one too

    @property
    def rank(self) -> int:
        return self.difference.path[0]

    @property
    def path(self) -> tuple:
        """Within the rank's result."""
        return self.difference.path[1:]

    @property
    def values(self) -> tuple:
        return self.difference.left, self.difference.right

    def of_right(self, path: tuple):
        """What Lockstep has at a path of the rank's result; None where there is nothing."""
        found = self.right[self.rank].get("ok")
        for part in path:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found


class KnownDifference(NamedTuple):
    clause: str
    reason: str
    applies: Callable[[dict], bool]
    explains: Callable[[Seen], bool]


def refused_as(*kinds: str):
    """Explains that Lockstep refuses the case with an error of one of these kinds."""
    return lambda seen: not seen.path and seen.difference.right in [f"error {kind}" for kind in kinds]


def not_refused(*kinds: str):
    """Explains that Accelerate refuses what Lockstep does, with an error of one of these kinds."""
    return lambda seen: not seen.path and seen.difference.right == "ok" and (
        seen.difference.left in [f"error {kind}" for kind in kinds])


def field(name: str, value):
    """Explains a last field of this name where Lockstep has the value that value(seen) gives."""
    return lambda seen: bool(seen.path) and seen.path[-1] == name and seen.difference.right == value(seen)


def either(*explanations):
    return lambda seen: any(explains(seen) for explains in explanations)


def below(document, path: tuple):
    """What stands at a path, whose "length" or "keys" at the end is the comparison's own; None where nothing does."""
    for part in path:
        if part in ("length", "keys") and not (isinstance(document, dict) and part in document):
            continue
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def flat(entries: list[dict]) -> list[dict]:
    """Entries of a script or verbs of a program, those of their bodies among them."""
    return [found for entry in entries for found in (entry, *flat(entry.get("body", [])))]


def inputs(case: dict) -> list:
    """The input of each rank."""
    return [{**case["args"], **args}.get("input") for args in case.get("rank_args", [{}] * case["world"])]


__all__ = ["MISSING", "KnownDifference", "Seen", "below", "either", "field", "flat", "inputs", "not_refused",
           "refused_as"]
