"""The command line of ci/oracle."""

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import sys
import time

from .corpus import Recorded, record, record_examples
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
        epilog="Exit code: 0 no difference; 1 differences, or the subject does not support a case or hung in it; "
               "2 usage; 3 nothing was compared; 4 a subject did not start.")
    parser.add_argument("--cases", type=int, help="how many (default 2000; with --record 300)")
    parser.add_argument("--seed", type=int, help="case I of seed S is always the same (default 1)")
    parser.add_argument("--area", choices=AREAS, help="cases of one area only")
    parser.add_argument("--replay", type=pathlib.Path, metavar="FILE", help="cases of a file, one JSON document a line")
    parser.add_argument("--subject", metavar="COMMAND",
                        help="what is compared with Accelerate; 'accelerate' is Accelerate itself (default: Lockstep)")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE", help="write cases with Accelerate's answers")
    parser.add_argument("--examples", type=pathlib.Path, metavar="FILE",
                        help="write the shortest case of each known difference, with both answers")
    parser.add_argument("--corpus", type=pathlib.Path, metavar="FILE",
                        help="compare the subject with a recorded file; Accelerate is not started")
    options = parser.parse_args(arguments)
    refuse_without_effect(parser, options)
    options.cases = options.cases if options.cases is not None else 300 if options.record else 2000
    options.seed = 1 if options.seed is None else options.seed
    options.subject = options.subject or os.environ.get("LOCKSTEP_SUBJECT", LOCKSTEP)
    return options


def refuse_without_effect(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    ways = [way for way in ("replay", "record", "examples", "corpus") if getattr(options, way)]
    if len(ways) > 1:
        parser.error(f"--{ways[0]} and --{ways[1]} exclude each other")
    unused = {"replay": ("cases", "seed", "area"), "corpus": ("cases", "seed", "area"), "record": ("subject",)}
    for name in unused.get(ways[0] if ways else "", ()):
        if getattr(options, name) is not None:
            parser.error(f"--{name} has no effect with --{ways[0]}")
    if options.cases is not None and options.cases < 1:
        parser.error("--cases is at least 1")


def subject(name: str, command: str) -> Subject:
    return Subject(name, ACCELERATE if command == "accelerate" else shlex.split(command))


def read_cases(path: pathlib.Path) -> list[dict]:
    """@throws ValueError  if one is not what the schema says"""
    read = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    for number, case in enumerate(read, start=1):
        if problems := Schema.of_protocol().problems(case, "case"):
            raise ValueError(f"{path}, case {number}: {problems[0]}")
    return read


def run_trial(options, left, right, chosen) -> int:
    trial = Trial(left, right, Schema.of_protocol(), shrinking=not options.corpus)
    began = time.monotonic()
    trial.run(chosen)
    trial.print_counts()
    print(f"{time.monotonic() - began:.0f} s")
    if trial.different or trial.refused or trial.hung_once[right.name]:
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
        chosen = read_cases(options.replay) if options.replay else cases(options.seed, options.cases, options.area)
        accelerate = ending.enter_context(subject("accelerate", "accelerate"))
        if options.examples:
            print(f"{record_examples(accelerate, other, chosen, options.examples)} known differences")
            return SAME
        return run_trial(options, accelerate, other, chosen)


def main(arguments: list[str]) -> int:
    try:
        return run(parse(arguments))
    except WorldFailed as failure:
        print(f"oracle: {failure}", file=sys.stderr)
        return BROKEN
    except (OSError, ValueError) as failure:
        print(f"oracle: {failure}", file=sys.stderr)
        return USAGE
