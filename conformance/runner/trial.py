"""Cases put to two subjects, counted by area; what differs is made small and told."""

import collections
import json
import sys

from conformance.known_differences import KNOWN_DIFFERENCES

from .compare import Difference
from .judge import Verdict, judge
from .orders import is_too_small_to_judge
from .outcomes import is_unsupported
from .shrink import shrink

COUNTED = ("same", "known", "unsupported", "different")
MOST_SHRUNK = 10  # of the cases that differ


HANGING_TIMEOUT_S = 2  # of the smaller cases of one that hangs
BEST_FIRST = ("same", "known", "unsupported", "different")


class Trial:
    """@param schema  what a smaller case has to satisfy to be tried, and what the right side's answers have to"""

    def __init__(self, left, right, schema, shrinking: bool = True):
        self.left, self.right, self.schema, self.shrinking = left, right, schema, shrinking
        self.counts = collections.defaultdict(collections.Counter)  # by area
        self.known = collections.Counter()  # known differences that showed
        self.reasons = collections.Counter()  # why cases are unsupported
        self.refused = 0  # cases that the left side answers and the right one does not support
        self.hung_once = collections.Counter()  # by side: hangs that were not seen again

    def run(self, cases) -> None:
        for number, case in enumerate(cases, start=1):
            self.try_case(case)
            if sys.stderr.isatty():
                print(f"\r{number} cases", end="", file=sys.stderr, flush=True)

    def try_case(self, case: dict) -> Verdict:
        verdict = self._judge(case)
        self.counts[case.get("area", case["op"])][verdict.word] += 1
        self.known.update(verdict.known)
        if verdict.word == "different":
            self._tell(case, verdict)
        return verdict

    @property
    def different(self) -> int:
        return sum(count["different"] for count in self.counts.values())

    @property
    def compared(self) -> int:
        return sum(count[word] for count in self.counts.values() for word in ("same", "known", "different"))

    def ask_both(self, case: dict) -> tuple[list[dict], list[dict]]:
        """Both at once, so that they share the cores."""
        self.left.send(case)
        self.right.send(case)
        return self.left.collect(case), self.right.collect(case)

    def ask_twice_if_hanging(self, case: dict) -> tuple[list[dict], list[dict]]:
        """On a busy machine an answer may come too late; a rank that really waits does so again."""
        answers = self.ask_both(case)
        hanging = [number for number, outcomes in enumerate(answers) if hangs(outcomes)]
        if not hanging:
            return answers
        again = self.ask_both(case)
        for number in hanging:
            if not hangs(again[number]):
                self.hung_once[(self.left, self.right)[number].name] += 1
        return again

    def _judge(self, case: dict) -> Verdict:
        supported = [subject.supports(case) for subject in (self.left, self.right)]
        if not all(supported):
            for subject, is_there in zip((self.left, self.right), supported):
                if not is_there:
                    self.reasons[f"{subject.name}: {case['op']}"] += 1
            self.refused += supported[0]
            return Verdict("unsupported", [], [])
        left, right = self.ask_twice_if_hanging(case)
        for subject, outcomes in ((self.left, left), (self.right, right)):
            if is_unsupported(outcomes):
                reason = next(outcome["unsupported"] for outcome in outcomes if "unsupported" in outcome)
                self.reasons[f"{subject.name}: {case['op']}: {reason}"] += 1
        self.refused += is_unsupported(right) and not is_unsupported(left)
        return self._no_answers_of_the_protocol(case, right) or self._verdict(case, left, right)

    def _no_answers_of_the_protocol(self, case: dict, right: list[dict]) -> Verdict | None:
        """The verdict on a result that has another form than the schema says."""
        for rank, outcome in enumerate(right):
            problems = self.schema.problems(outcome["ok"], f"result.{case['op']}") if "ok" in outcome else []
            if problems:
                return Verdict("different", [Difference((rank,), "a result of the protocol", problems[0])], [])
        return None

    def _verdict(self, case: dict, left: list[dict], right: list[dict]) -> Verdict:
        """By the alternative of a recorded case that comes nearest; by what was answered otherwise."""
        recorded = self.left.alternatives(case)
        verdicts = [judge(case, outcomes, right, one_sided=bool(recorded)) for outcomes in recorded or [left]]
        return min(verdicts, key=lambda verdict: BEST_FIRST.index(verdict.word))

    def _still_differs(self, case: dict) -> bool:
        if is_too_small_to_judge(case) or self.schema.problems(case, "case"):
            return False
        return self._verdict(case, *self.ask_both(case)).word == "different"

    def _tell(self, case: dict, verdict: Verdict) -> None:
        print(f"\ncase {case.get('index', '?')} ({case.get('area', case['op'])}, {case['clause']}) differs, "
              f"{self.left.name} versus {self.right.name}:")
        is_smallest = True
        if self.shrinking and self.different <= MOST_SHRUNK:
            if any(difference.right == "hang" for difference in verdict.differences):
                case = {**case, "timeout_s": HANGING_TIMEOUT_S}
            case, is_smallest = shrink(case, self._still_differs)
            verdict = self._verdict(case, *self.ask_both(case))
        for difference in verdict.differences[:5]:
            print(f"  {difference}")
        if not is_smallest:
            print("  (perhaps not the smallest case: there was no time to try all smaller ones)")
        print(json.dumps(case), flush=True)

    def print_counts(self) -> None:
        print(f"\n{'area':14}" + "".join(f"{word:>13}" for word in COUNTED))
        for area, count in [*self.counts.items(), ("all", sum(self.counts.values(), collections.Counter()))]:
            print(f"{area:14}" + "".join(f"{count[word]:13}" for word in COUNTED))
        if self.known:
            print("known differences: " + ", ".join(f"{entry.clause} ({entry.reason}) {n}" for entry, n in sorted(
                self.known.items(), key=lambda item: item[0].clause)))
        if idle := [entry.clause for entry in KNOWN_DIFFERENCES if entry not in self.known]:
            print("known differences that did not show: " + ", ".join(idle))
        for reason, n in self.reasons.most_common(20):
            print(f"unsupported by {reason}: {n}")
        for name, n in self.hung_once.items():
            print(f"{name} hung once, and not when asked again: {n}")


def hangs(outcomes: list[dict]) -> bool:
    return any("hang" in outcome for outcome in outcomes)
