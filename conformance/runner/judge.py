"""What the comparison of one case comes to: the same, known to differ, different, or not supported."""

from typing import NamedTuple

from conformance.known_differences import KNOWN_DIFFERENCES

from .compare import Difference, compare_outcomes
from .outcomes import is_unsupported


class Verdict(NamedTuple):
    word: str  # same, known, different, unsupported
    differences: list[Difference]  # those that nothing explains
    clauses: list[str]  # of the known differences that explain the others


def judge(case: dict, left: list[dict], right: list[dict]) -> Verdict:
    """Compares the outcomes of a case; left is Accelerate's."""
    if is_unsupported(left) or is_unsupported(right):
        return Verdict("unsupported", [], [])
    unexplained, clauses = [], {}
    known = applying(case)
    for difference in compare_outcomes(case, left, right):
        reasons = [entry.clause for entry in known if entry.explains(difference)]
        if reasons:
            clauses[reasons[0]] = True
        else:
            unexplained.append(difference)
    word = "different" if unexplained else "known" if clauses else "same"
    return Verdict(word, unexplained, list(clauses))


def applying(case: dict) -> list:
    """The known differences that the case may show."""
    return [entry for entry in KNOWN_DIFFERENCES if entry.applies(case)]
