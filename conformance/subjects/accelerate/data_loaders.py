"""data.loader, data.dispatcher, data.skip_first_batches and data.resume: whole prepared loaders on the real world."""

from accelerate.data_loader import skip_first_batches
from accelerate.state import GradientState
from accelerate.utils import slice_tensors

from .accelerators import make_accelerator
from .arguments import REQUIRED, check_names, choose, read
from .failures import Unsupported, attempt
from .loaders import make_loader, read_loader
from .passes import record_pass, state_flags


class Loaders:
    """The Accelerator of a case and its loaders by name, prepared in the order given."""

    def __init__(self, given: dict, accelerator: dict, config: dict, values: bool = False, record_slices: bool = False):
        self.accelerator = make_accelerator(accelerator, config)
        self.values, self.slices = values, [] if record_slices else None
        self.items, self.loaders, self.datasets, self.kept = {}, {}, {}, []
        for name, loader in given.items():
            self._add(name, read_loader(loader))

    def _add(self, name: str, fields) -> None:
        loader = make_loader(fields)
        self.items[name], self.datasets[name] = fields.item, loader.dataset
        if fields.prepare and self.slices is not None:
            loader = self.accelerator.prepare_data_loader(loader, slice_fn_for_dispatch=self._slice)
            loader._is_accelerate_prepared = True  # as prepare() leaves it, which takes no function
        elif fields.prepare:
            loader = self.accelerator.prepare(loader)
        self.loaders[name] = loader

    def _slice(self, batch, rows: slice, process_index: int, num_processes: int):
        self.slices.append([rows.start, rows.stop, process_index, num_processes])
        return slice_tensors(batch, rows, process_index, num_processes)

    def __getitem__(self, name: str):
        return choose(self.loaders, name, "loader")

    def prepare(self, name: str) -> bool:
        """Prepares a loader, perhaps once more; whether that gave the same object."""
        before, self.loaders[name] = self[name], self.accelerator.prepare(self[name])
        return self.loaders[name] is before

    def skipped(self, name: str, number: int):
        """The loader without its first batches; it lives as long as the case, as the others do."""
        self.kept.append(skip_first_batches(self[name], number))
        return self.kept[-1]

    def record(self, name: str, loader=None, **options) -> dict:
        """A pass over a loader, or over another one with its items."""
        return record_pass(self[name] if loader is None else loader, self.items[name], values=self.values,
                           slices=self.slices, **options)

    def summary(self, name: str) -> dict:
        loader, dataset = self[name], self.datasets[name]
        prepared = hasattr(type(loader), "end_of_dataloader")

        def own(attribute):
            return attempt(lambda: getattr(loader, attribute)) if prepared else None

        return {"len": attempt(lambda: len(loader)), "total_batch_size": own("total_batch_size"),
                "total_dataset_length": own("total_dataset_length"), "iteration": own("iteration"),
                "reads": dataset.reads, "epochs_seen": dataset.epochs_seen}


class Script:
    """Runs the script of a data.loader request; each entry of it gives one entry of the log."""

    def __init__(self, loaders: Loaders):
        self.loaders = loaders
        self.verbs = {"pass": self._pass, "set_epoch": self._set_epoch, "prepare": self._prepare,
                      "even_batches": self._even_batches}

    def run(self, entries: list) -> list:
        return [choose(self.verbs, entry.get("v"), "verb")(entry) for entry in entries]

    def _pass(self, entry: dict) -> dict:
        fields = read(entry, "pass", v=None, loader="main", set_epoch=None, skip=None, stop_after=None, nested={})
        if fields.stop_after is not None and fields.stop_after < 1:
            raise Unsupported("pass: stop_after is at least 1")
        if fields.set_epoch is not None:
            self.loaders[fields.loader].set_epoch(fields.set_epoch)
        loader = None if fields.skip is None else self.loaders.skipped(fields.loader, fields.skip)
        nested, again = {}, {}

        def body(step):
            if str(step) in fields.nested:
                nested[str(step)] = self.run(fields.nested[str(step)])
                again[str(step)] = state_flags()

        result = self.loaders.record(fields.loader, loader, stop_after=fields.stop_after, body=body)
        return {**result, "nested": nested, "again": again} if fields.nested else result

    def _set_epoch(self, entry: dict) -> None:
        fields = read(entry, "set_epoch", v=None, loader="main", epoch=REQUIRED)
        self.loaders[fields.loader].set_epoch(fields.epoch)

    def _prepare(self, entry: dict) -> dict:
        fields = read(entry, "prepare", v=None, loader="main")
        return {"same": self.loaders.prepare(fields.loader)}

    def _even_batches(self, entry: dict) -> dict:
        fields = read(entry, "even_batches", v=None, value=REQUIRED, body=REQUIRED)
        with self.loaders.accelerator.join_uneven_inputs([], even_batches=fields.value):
            return {"body": self.run(fields.body)}


def run_script(fields, config: dict) -> dict:
    if (fields.loader is None) == (fields.loaders is None):
        raise Unsupported("one of loader and loaders is required")
    given = {"main": fields.loader} if fields.loaders is None else fields.loaders
    loaders = Loaders(given, fields.accelerator, config, fields.values, fields.record_slices)
    log = Script(loaders).run(fields.script)
    active = [loader for loader in GradientState().dataloader_references if loader is not None]
    return {"loaders": {name: loaders.summary(name) for name in given}, "log": log, "active": len(active)}


def loader(arguments: dict, session):
    check_names(arguments, "data.loader", ("loader", "loaders", "config", "accelerator", "values", "script"))
    fields = read_script(arguments)
    return run_script(fields, fields.config)


def dispatcher(arguments: dict, session):
    fields = read_script(arguments)
    return run_script(fields, {"dispatch_batches": True, **fields.config})


def read_script(arguments: dict):
    return read(arguments, "arguments", loader=None, loaders=None, config={}, accelerator={}, values=False,
                record_slices=False, script=[{"v": "pass"}])


def skip(arguments: dict, session):
    fields = read(arguments, "data.skip_first_batches", loader=REQUIRED, config={}, accelerator={}, skip=REQUIRED,
                  passes=1, first=0)
    loaders = Loaders({"main": fields.loader}, fields.accelerator, fields.config)
    for _ in range(fields.first):
        loaders.record("main")
    skipped = loaders.skipped("main", fields.skip)
    return {"len": attempt(lambda: len(skipped)),
            "passes": [loaders.record("main", skipped) for _ in range(fields.passes)],
            "original": loaders.record("main")}


def resume(arguments: dict, session):
    """Only by skipping: the loaders that write their state come from a package that is not installed here."""
    fields = read(arguments, "data.resume", loader=REQUIRED, config={}, accelerator={}, via="skip", epoch=0,
                  consume=REQUIRED)
    if fields.via != "skip":
        raise Unsupported(f"data.resume via {fields.via!r}")
    if fields.consume < 1:
        raise Unsupported("data.resume: consume is at least 1")

    def begin():
        loaders = Loaders({"main": fields.loader}, fields.accelerator, fields.config)
        if hasattr(loaders["main"], "set_epoch"):
            loaders["main"].set_epoch(fields.epoch)
        return loaders

    before = begin().record("main", stop_after=fields.consume)
    session.reset()
    loaders = begin()
    resumed = loaders.record("main", loaders.skipped("main", fields.consume))
    return {"before": before, "finished": None, "resumed": resumed, "next": loaders.record("main")}


OPERATIONS = {"data.loader": loader, "data.dispatcher": dispatcher, "data.skip_first_batches": skip,
              "data.resume": resume}
