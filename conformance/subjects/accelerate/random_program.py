"""rng.program: seeding, drawing and synchronising generators."""

import random

import numpy
import torch
from accelerate.utils import set_seed, synchronize_rng_states

from .accelerators import make_accelerator
from .arguments import REQUIRED, choose, read
from .failures import Unsupported, kind_of
from .loaders import make_generator

LIMIT = 2**31  # numbers drawn are below it


class Generators:
    """The generators of a program by name, and its verbs; each returns the fields of its entry."""

    def __init__(self):
        self.named = {}
        self.verbs = {"seed": self._seed, "generator": self._generator, "draw": self._draw, "sync": self._sync,
                      "initial_seed": self._initial_seed}

    def run(self, program: list) -> list:
        log = []
        for given in program:
            verb = choose(self.verbs, given.get("v"), "verb")
            log.append({"v": given["v"]})
            try:
                log[-1].update(verb(given) or {})
            except Unsupported:
                raise
            except Exception as error:
                log[-1]["failed"] = kind_of(error)
                break
        return log

    def _seed(self, given):
        fields = read(given, "seed", v=None, seed=REQUIRED, device_specific=False, deterministic=False)
        set_seed(fields.seed, device_specific=fields.device_specific, deterministic=fields.deterministic)

    def _generator(self, given):
        fields = read(given, "generator", v=None, name=REQUIRED, seed=REQUIRED)
        self.named[fields.name] = make_generator(fields.seed)

    def _draw(self, given):
        fields = read(given, "draw", v=None, source="torch", count=4)
        if fields.source == "python":
            return {"values": [random.getrandbits(31) for _ in range(fields.count)]}
        if fields.source == "numpy":
            return {"values": numpy.random.randint(0, LIMIT, fields.count).tolist()}
        generator = None if fields.source == "torch" else choose(self.named, fields.source, "source")
        return {"values": torch.randint(0, LIMIT, [fields.count], generator=generator).tolist()}

    def _sync(self, given):
        fields = read(given, "sync", v=None, types=REQUIRED, generator=None)
        generator = None if fields.generator is None else choose(self.named, fields.generator, "generator")
        synchronize_rng_states(fields.types, generator)

    def _initial_seed(self, given):
        source = read(given, "initial_seed", v=None, source="torch").source
        generator = torch.default_generator if source == "torch" else choose(self.named, source, "source")
        return {"seed": generator.initial_seed()}


def program(arguments: dict, session):
    fields = read(arguments, "rng.program", accelerator=None, program=REQUIRED)
    accelerator = None if fields.accelerator is None else make_accelerator(fields.accelerator)
    log = Generators().run(fields.program)
    del accelerator
    return {"log": log}


OPERATIONS = {"rng.program": program}
