"""Cases put to two subjects, counted by area; what differs is made small and told."""

import collections
import json
import sys

from .judge import Verdict, judge
from .orders import is_too_small_to_judge
from .outcomes import is_unsupported
from .shrink import shrink

COUNTED = ("same", "known", "unsupported", "different")
MOST_SHRUNK = 10  # of the cases that differ


class Trial:
    """@param schema  what a smaller case has to satisfy to be tried"""

    def __init__(self, left, right, schema, shrinking: bool = True):
        self.left, self.right, self.schema, self.shrinking = left, right, schema, shrinking
        self.counts = collections.defaultdict(collections.Counter)  # by area
        self.clauses = collections.Counter()  # of known differences
        self.reasons = collections.Counter()  # why cases are unsupported

    def run(self, cases) -> None:
        for number, case in enumerate(cases, start=1):
            self.try_case(case)
            if sys.stderr.isatty():
                print(f"\r{number} cases", end="", file=sys.stderr, flush=True)

    def try_case(self, case: dict) -> Verdict:
        verdict = self._judge(case)
        self.counts[case.get("area", case["op"])][verdict.word] += 1
        self.clauses.update(verdict.clauses)
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
        return self.ask_both(case) if any("hang" in outcome for side in answers for outcome in side) else answers

    def _judge(self, case: dict) -> Verdict:
        for subject in (self.left, self.right):
            if not subject.supports(case):
                self.reasons[f"{subject.name}: {case['op']}"] += 1
                return Verdict("unsupported", [], [])
        left, right = self.ask_twice_if_hanging(case)
        for subject, outcomes in ((self.left, left), (self.right, right)):
            if is_unsupported(outcomes):
                reason = next(outcome["unsupported"] for outcome in outcomes if "unsupported" in outcome)
                self.reasons[f"{subject.name}: {case['op']}: {reason}"] += 1
        return judge(case, left, right)

    def _still_differs(self, case: dict) -> bool:
        if is_too_small_to_judge(case) or self.schema.problems(case, "case"):
            return False
        return judge(case, *self.ask_both(case)).word == "different"

    def _tell(self, case: dict, verdict: Verdict) -> None:
        print(f"\ncase {case.get('index', '?')} ({case.get('area', case['op'])}, {case['clause']}) differs, "
              f"{self.left.name} versus {self.right.name}:")
        if self.shrinking and self.different <= MOST_SHRUNK:
            smallest = shrink(case, self._still_differs)
            verdict = judge(smallest, *self.ask_both(smallest))
            case = smallest
        for difference in verdict.differences[:5]:
            print(f"  {difference}")
        print(json.dumps(case), flush=True)

    def print_counts(self) -> None:
        print(f"\n{'area':14}" + "".join(f"{word:>13}" for word in COUNTED))
        for area, count in [*self.counts.items(), ("all", sum(self.counts.values(), collections.Counter()))]:
            print(f"{area:14}" + "".join(f"{count[word]:13}" for word in COUNTED))
        if self.clauses:
            print("known differences: " + ", ".join(f"{clause} {n}" for clause, n in sorted(self.clauses.items())))
        for reason, n in self.reasons.most_common(20):
            print(f"unsupported by {reason}: {n}")
