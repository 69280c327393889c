"""Cases as a function of (seed, index): case 1234 of seed 7 is the same today and in a year, whatever ran before it.

Each area in turn makes a case, so that of any number of cases every area gets its share. An area is a function of a
Draw that returns the fields of the case; the rest (world size, clause, seed, time-out) is filled in here.
"""

from . import control, dispatched, generators, loaders, numeric, operations, programs, shards
from .draw import Draw

TIMEOUT_S = 10  # cases are small; an answer that takes longer is one that waits for ever

# area -> the clause at its heart, and what makes its cases
AREAS = {
    "shards": ("DATA-020", shards.batch_shard),
    "streams": ("DATA-050", shards.stream_case),
    "loaders": ("DATA-065", loaders.case),
    "dispatch": ("DATA-081", dispatched.case),
    "iterable": ("DATA-050", loaders.iterable_case),
    "resume": ("DATA-105", loaders.resume_case),
    "gather": ("OPS-002", operations.gather_case),
    "objects": ("OPS-005", operations.object_case),
    "reduce": ("OPS-007", operations.reduce_case),
    "pad": ("OPS-012", operations.pad_case),
    "metrics": ("OPS-030", dispatched.metrics_case),
    "accumulation": ("ACC-001", programs.accumulation_case),
    "schedulers": ("ACC-031", programs.scheduler_case),
    "scaler": ("ACC-023", numeric.scaler_case),
    "clip": ("ACC-040", programs.clip_case),
    "training": ("ACC-006", programs.training_case),
    "bf16": ("AMP-003", programs.bf16_case),
    "autocast": ("AMP-003", numeric.autocast_case),
    "state": ("STATE-135", control.state_case),
    "rng": ("RNG-003", generators.case),
}


def generate(seed: int, index: int) -> dict:
    """Case number `index` of a seed; its area is the index modulo the number of areas."""
    area = list(AREAS)[index % len(AREAS)]
    clause, make = AREAS[area]
    draw = Draw(f"{seed}:{index}")
    world = draw.weighted({1: 2, 2: 4, 3: 2, 4: 1})
    return {"clause": clause, "area": area, "index": index, "world": world, "seed": draw.integer(0, 1000),
            "timeout_s": TIMEOUT_S, **make(draw, world)}


def cases(seed: int, number: int, area: str | None = None):
    """The first cases of a seed, of one area if it is given."""
    if area is None:
        indices = range(number)
    else:
        first = list(AREAS).index(area)
        indices = range(first, first + number * len(AREAS), len(AREAS))
    return (generate(seed, index) for index in indices)
