"""train.program: models, optimizers, schedulers and loaders prepared in one call, then a program of verbs."""

import contextlib

import torch

from .accelerators import make_accelerator
from .arguments import read
from .failures import Unsupported, kind_of
from .loaders import index_list, make_loader, read_loader
from .models import make_model, make_optimizer, make_scheduler
from .values import encode
from .train_verbs import VERBS

GROUPS = ("models", "optimizers", "schedulers", "loaders")


class Training:
    """The objects of a program, raw and prepared, and where the program stands."""

    def __init__(self, fields, session):
        self.rank, self.log = session.rank, []
        self.accelerator = make_accelerator(fields.accelerator, fields.config, fields.accumulation)
        self.items = {name: read_loader(given).item for name, given in fields.loaders.items()}
        self.nets = {name: make_model(given) for name, given in fields.models.items()}
        optimizers = {name: make_optimizer(given, self.nets) for name, given in fields.optimizers.items()}
        schedulers = {name: make_scheduler(given, optimizers) for name, given in fields.schedulers.items()}
        loaders = {name: make_loader(read_loader(given)) for name, given in fields.loaders.items()}
        self.raw_optimizers, self.raw_schedulers = optimizers, schedulers
        self.inner_steps = dict.fromkeys(optimizers, 0)
        for name, optimizer in optimizers.items():
            optimizer.register_step_post_hook(lambda *_, name=name: self._count_step(name))
        self.models, self.optimizers, self.schedulers, self.loaders = self._prepare(
            fields, dict(zip(GROUPS, (self.nets, optimizers, schedulers, loaders))))
        self.iterators, self.losses, self.batch, self.batch_loader = {}, {}, None, None
        self.until_backward = contextlib.ExitStack()

    def _count_step(self, name: str) -> None:
        self.inner_steps[name] += 1

    def _prepare(self, fields, objects: dict) -> list[dict]:
        wanted = [(group, name) for group in GROUPS for name in objects[group]
                  if getattr(fields, group)[name].get("prepare", True)]
        if wanted:
            made = self.accelerator.prepare(*[objects[group][name] for group, name in wanted])
            for (group, name), prepared in zip(wanted, made if len(wanted) > 1 else [made]):
                objects[group] = {**objects[group], name: prepared}
        return [objects[group] for group in GROUPS]

    def one(self, objects: dict, name: str | None, what: str):
        """The name and object that a verb means: the one named, or the first."""
        if not objects or (name is not None and name not in objects):
            raise Unsupported(f"{what} {name!r}")
        name = next(iter(objects)) if name is None else name
        return name, objects[name]

    def ids(self) -> list[int]:
        """The index list of the last batch."""
        return index_list(self.batch, self.items[self.batch_loader])

    def run(self, program: list) -> None:
        for given in program:
            self._run_verb(given)

    def _run_verb(self, given: dict) -> None:
        if given.get("v") not in VERBS:
            raise Unsupported(f"verb {given.get('v')!r}")
        entry = {"v": given["v"]}
        self.log.append(entry)
        try:
            VERBS[given["v"]](self, given, entry)
        except (Unsupported, ProgramEnded):
            raise
        except Exception as error:
            entry["failed"] = kind_of(error)
            raise ProgramEnded from error

    def parameters(self) -> dict:
        """All parameters of each model, by names without the prefixes of wrappers."""
        return {model: {name: encode(parameter) for name, parameter in net.named_parameters()}
                for model, net in self.nets.items()}


class ProgramEnded(Exception):
    """A verb has failed, and its entry says so."""


def program(arguments: dict, session):
    fields = read(arguments, "train.program", models={}, optimizers={}, schedulers={}, loaders={}, config={},
                  accelerator={}, accumulation=None, program=[])
    training = Training(fields, session)
    with torch.enable_grad(), training.until_backward, contextlib.suppress(ProgramEnded):
        training.run(fields.program)
    return {"log": training.log, "params": training.parameters()}


OPERATIONS = {"train.program": program}
