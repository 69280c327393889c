"""The command line of ci/oracle."""

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import sys
import time

from .corpus import Recorded, record
from .generate import AREAS, cases
from .schema import Schema
from .subject import Subject
from .trial import Trial
from .world import WorldFailed

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACCELERATE = [sys.executable, "-m", "conformance.subjects.accelerate"]
LOCKSTEP = f"{ROOT}/build/release/bin/lockstep conformance serve"
SAME, DIFFERENT, USAGE, UNDECIDED, BROKEN = 0, 1, 2, 3, 4


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ci/oracle", description="The same generated cases on Accelerate and on Lockstep, their answers compared.",
        epilog="Exit code: 0 no difference, 1 differences, 2 usage, 3 nothing was compared, 4 a subject did not start.")
    parser.add_argument("--cases", type=int, default=2000, help="how many (default %(default)s; with --record 300)")
    parser.add_argument("--seed", type=int, default=1, help="case I of seed S is always the same (default %(default)s)")
    parser.add_argument("--area", choices=AREAS, help="cases of one area only")
    parser.add_argument("--replay", type=pathlib.Path, metavar="FILE", help="cases of a file, one JSON document a line")
    parser.add_argument("--subject", default=os.environ.get("LOCKSTEP_SUBJECT", LOCKSTEP), metavar="COMMAND",
                        help="what is compared with Accelerate; 'accelerate' is Accelerate itself (default: Lockstep)")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE", help="write cases with Accelerate's answers")
    parser.add_argument("--corpus", type=pathlib.Path, metavar="FILE",
                        help="compare the subject with a recorded file; Accelerate is not started")
    options = parser.parse_args(arguments)
    if sum(bool(chosen) for chosen in (options.replay, options.record, options.corpus)) > 1:
        parser.error("--replay, --record and --corpus exclude each other")
    if options.record and "--cases" not in " ".join(arguments):
        options.cases = 300
    return options


def subject(name: str, command: str) -> Subject:
    return Subject(name, ACCELERATE if command == "accelerate" else shlex.split(command))


def read_cases(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def run_trial(options, left, right, chosen) -> int:
    trial = Trial(left, right, Schema.of_protocol(), shrinking=not options.corpus)
    began = time.monotonic()
    trial.run(chosen)
    trial.print_counts()
    print(f"{time.monotonic() - began:.0f} s")
    if trial.different:
        return DIFFERENT
    return SAME if trial.compared else UNDECIDED


def run(options) -> int:
    with contextlib.ExitStack() as ending:
        if options.record:
            accelerate = ending.enter_context(subject("accelerate", "accelerate"))
            chosen = cases(options.seed, options.cases, options.area)
            number = record(accelerate, chosen, options.record, Schema.of_protocol())
            print(f"{number} cases in {options.record}")
            return SAME
        other = ending.enter_context(subject("subject", options.subject))
        if options.corpus:
            corpus = Recorded(options.corpus)
            return run_trial(options, corpus, other, corpus.cases)
        accelerate = ending.enter_context(subject("accelerate", "accelerate"))
        chosen = read_cases(options.replay) if options.replay else cases(options.seed, options.cases, options.area)
        return run_trial(options, accelerate, other, chosen)


def main(arguments: list[str]) -> int:
    try:
        return run(parse(arguments))
    except WorldFailed as failure:
        print(f"oracle: {failure}", file=sys.stderr)
        return BROKEN
