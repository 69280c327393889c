"""Cases with the answers of one subject, a JSON document per line: {"clause", .., "expect", "known"}."""

import json
import pathlib

from .judge import applying
from .outcomes import is_unsupported, of_expect, recorded


def record(subject, cases, path: pathlib.Path, schema) -> int:
    """Writes each case with the subject's outcomes as its `expect`; the number of cases written.

    @throws ValueError  if a case is not what the schema says, or the subject does not answer it
    """
    lines = []
    for case in cases:
        outcomes = subject.ask(case)
        if is_unsupported(outcomes):
            raise ValueError(f"case {case['index']} is not supported: {outcomes}")
        expect = recorded(outcomes)
        known = [entry.clause for entry in applying(case)]
        document = {**case, "expect": expect, **({"known": known} if known else {})}
        if problems := schema.problems(document, "case"):
            raise ValueError(f"case {case['index']}: {problems[0]}")
        lines.append(json.dumps(document) + "\n")
    path.write_text("".join(lines))
    return len(lines)


class Recorded:
    """A corpus as the subject that gave its answers; it is asked in the order of the file."""

    name = "the corpus"

    def __init__(self, path: pathlib.Path):
        self.cases = [json.loads(line) for line in path.read_text().splitlines()]

    def send(self, case: dict) -> None:
        pass

    def collect(self, case: dict) -> list[dict]:
        return of_expect(case["expect"], case["world"])

    def ask(self, case: dict) -> list[dict]:
        return self.collect(case)

    def supports(self, case: dict) -> bool:
        return True
