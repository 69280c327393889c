"""state.process, state.split_between_processes and state.control."""

import contextlib
import io
import time

from accelerate.state import AcceleratorState, GradientState, PartialState

from .accelerators import make_accelerator
from .arguments import REQUIRED, choose, read
from .failures import attempt
from .values import decode, encode

PARTIAL = ("num_processes", "process_index", "local_process_index", "is_main_process", "is_local_main_process",
           "is_last_process", "use_distributed", "distributed_type", "backend", "device", "debug", "initialized")
GRADIENT = ("sync_gradients", "num_steps", "adjust_scheduler", "sync_with_dataloader", "end_of_dataloader", "remainder",
            "in_dataloader")
ATTRIBUTES = {"partial": PARTIAL, "accelerator": (*PARTIAL, "mixed_precision"), "gradient": GRADIENT}
STATES = {"partial": lambda: PartialState(cpu=True), "accelerator": AcceleratorState, "gradient": GradientState}
WRITTEN = {"distributed_type": lambda kind: kind.value, "device": lambda device: device.type}


def read_attribute(state, name: str):
    return WRITTEN.get(name, lambda value: value)(getattr(state, name))


def attributes(of: str) -> dict:
    """What the state of this kind says, all of it."""
    names, state = choose(ATTRIBUTES, of, "state"), STATES[of]()
    return {name: read_attribute(state, name) for name in names}


def process(arguments: dict, session):
    fields = read(arguments, "state.process", of="partial", accelerator=None)
    if fields.of == "accelerator" or fields.accelerator is not None:
        make_accelerator(fields.accelerator or {})
    return attributes(fields.of)


def split(arguments: dict, session):
    fields = read(arguments, "state.split_between_processes", input=REQUIRED, apply_padding=False, via="state")
    value = decode(fields.input)
    makers = {"state": lambda: PartialState(cpu=True), "accelerator": lambda: make_accelerator({})}
    with choose(makers, fields.via, "via")().split_between_processes(value, apply_padding=fields.apply_padding) as part:
        return {"part": encode(part), "input_after": encode(value)}


class Control:
    """The calls of state.control, each by its verb."""

    def __init__(self, session, accelerator: dict):
        self.rank = session.rank
        self.accelerator, self.partial = make_accelerator(accelerator), PartialState(cpu=True)
        self.kept = []
        self.verbs = {"barrier": self._barrier, "first": self._first, "on": self._on, "set_trigger": self._set_trigger,
                      "check_trigger": self._check_trigger, "print": self._print, "accelerator": self._accelerator,
                      "reset": self._reset, "read": self._read}

    def call(self, given: dict):
        verb = choose(self.verbs, given.get("v"), "call")
        return attempt(lambda: verb(given))

    def _barrier(self, given):
        time.sleep(read(given, "barrier", v=None, delay_s=0).delay_s)
        self.accelerator.wait_for_everyone()
        return {"waited": True}

    def _first(self, given):
        fields = read(given, "first", v=None, local=False, sleep_s=0.2, **{"raise": False})
        state = PartialState(cpu=True)
        main = state.is_local_main_process if fields.local else state.is_main_process
        began = time.monotonic()
        with (state.local_main_process_first if fields.local else state.main_process_first)():
            entered = time.monotonic() - began
            if main and getattr(fields, "raise"):
                raise RuntimeError("the main rank was asked to fail")
            if main:
                time.sleep(fields.sleep_s)
        return {"entered_s": entered}

    def _on(self, given):
        fields = read(given, "on", v=None, where=REQUIRED, index=None, via="state")
        owner = choose({"state": PartialState(cpu=True), "accelerator": self.accelerator}, fields.via, "via")
        ran = []

        def function():
            ran.append(True)

        decorate = {
            "main": lambda: owner.on_main_process(function),
            "local_main": lambda: owner.on_local_main_process(function),
            "last": lambda: owner.on_last_process(function),
            "process": lambda: owner.on_process(function, process_index=fields.index),
            "local_process": lambda: owner.on_local_process(function, local_process_index=fields.index),
        }
        choose(decorate, fields.where, "where")()()
        return {"ran": bool(ran)}

    def _set_trigger(self, given):
        if self.rank in read(given, "set_trigger", v=None, ranks=REQUIRED).ranks:
            self.accelerator.set_trigger()

    def _check_trigger(self, given):
        read(given, "check_trigger", v=None)
        return self.accelerator.check_trigger()

    def _print(self, given):
        text = read(given, "print", v=None, text=REQUIRED).text
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.accelerator.print(text)
        return {"printed": text in printed.getvalue()}

    def _accelerator(self, given):
        self.kept.append(make_accelerator(read(given, "accelerator", v=None, args={}).args))
        return attributes("accelerator")

    def _reset(self, given):
        fields = read(given, "reset", v=None, of=REQUIRED, partial_too=False)
        resets = {"partial": PartialState._reset_state, "gradient": GradientState._reset_state,
                  "accelerator": lambda: AcceleratorState._reset_state(fields.partial_too)}
        choose(resets, fields.of, "state")()

    def _read(self, given):
        fields = read(given, "read", v=None, of="partial", name=REQUIRED)
        objects = {"partial": self.partial, "accelerator": self.accelerator.state,
                   "gradient": self.accelerator.gradient_state}
        return read_attribute(choose(objects, fields.of, "state"), fields.name)


def control(arguments: dict, session):
    fields = read(arguments, "state.control", accelerator={}, calls=REQUIRED)
    made = Control(session, fields.accelerator)
    return {"log": [made.call(given) for given in fields.calls]}


OPERATIONS = {"state.process": process, "state.split_between_processes": split, "state.control": control}
