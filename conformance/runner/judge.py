"""What the comparison of one case comes to: the same, known to differ, different, or not supported."""

from typing import NamedTuple

from conformance.known_differences import KNOWN_DIFFERENCES, KnownDifference, Seen

from .compare import Difference, compare_outcomes
from .outcomes import NO_ANSWER, is_unsupported, word


class Verdict(NamedTuple):
    word: str  # same, known, different, unsupported
    differences: list[Difference]  # those that nothing explains
    known: list[KnownDifference]  # those that explain the others

    @property
    def clauses(self) -> list[str]:
        return list(dict.fromkeys(entry.clause for entry in self.known))


def judge(case: dict, left: list[dict], right: list[dict], one_sided: bool = False) -> Verdict:
    """Compares the outcomes of a case; left is Accelerate's. Nothing excuses a subject on the right without an answer.

    @param one_sided  left may name fewer fields than right
    """
    if is_unsupported(left) or is_unsupported(right):
        return Verdict("unsupported", [], [])
    unexplained, known = [], []
    applying_here = [] if any(word(outcome) in NO_ANSWER for outcome in right) else applying(case)
    found = compare_outcomes(case, left, right, one_sided)
    for difference in found:
        seen = Seen(case, difference, right, found)
        reason = next((entry for entry in applying_here if entry.explains(seen)), None)
        if reason is None:
            unexplained.append(difference)
        elif reason not in known:
            known.append(reason)
    return Verdict("different" if unexplained else "known" if known else "same", unexplained, known)


def applying(case: dict) -> list[KnownDifference]:
    """The known differences that the case may show."""
    return [entry for entry in KNOWN_DIFFERENCES if entry.applies(case)]
