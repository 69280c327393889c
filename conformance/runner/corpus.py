"""Cases with the answers of one subject, a JSON document per line: {"clause", .., "expect", "known"}."""

import json
import os
import pathlib

from conformance.known_differences import KNOWN_DIFFERENCES

from .judge import applying, judge
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
    write(path, lines)
    return len(lines)


def record_examples(left, right, cases, path: pathlib.Path) -> int:
    """Writes for each known difference the shortest case that shows it and no other, with both sides' outcomes.

    @return how many of them were found
    """
    shortest = {}
    for case in cases:
        answers = left.ask(case), right.ask(case)
        known = judge(case, *answers).known
        line = json.dumps({"case": case, "left": answers[0], "right": answers[1]}) + "\n"
        for number in [KNOWN_DIFFERENCES.index(entry) for entry in known]:
            rank = len(known), len(line)
            if number not in shortest or rank < shortest[number][0]:
                shortest[number] = rank, line
    write(path, [line for _, (_, line) in sorted(shortest.items())])
    return len(shortest)


def write(path: pathlib.Path, lines: list[str]) -> None:
    """Whole or not at all."""
    aside = path.with_name(path.name + ".new")
    with aside.open("w") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


class Recorded:
    """A corpus as the subject that gave its answers; it is asked in the order of the file."""

    name = "the corpus"

    def __init__(self, path: pathlib.Path):
        self.cases = [json.loads(line) for line in path.read_text().splitlines()]

    def send(self, case: dict) -> None:
        pass

    def collect(self, case: dict) -> list[dict]:
        return self.alternatives(case)[0]

    def alternatives(self, case: dict) -> list[list[dict]]:
        return of_expect(case["expect"], case["world"])

    def ask(self, case: dict) -> list[dict]:
        return self.collect(case)

    def supports(self, case: dict) -> bool:
        return True
