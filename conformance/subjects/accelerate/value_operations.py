"""ops.*: collectives on nested values."""

from accelerate import utils
from accelerate.state import PartialState

from .accelerators import make_accelerator
from .arguments import ABSENT, REQUIRED, choose, given_only, read
from .failures import Unsupported
from .values import decode, encode

UTILITIES = {"gather": utils.gather, "gather_object": utils.gather_object, "reduce": utils.reduce,
             "broadcast": utils.broadcast, "broadcast_object_list": utils.broadcast_object_list,
             "pad_across_processes": utils.pad_across_processes}
METHODS = ("gather", "reduce", "pad_across_processes")
# The arguments of each besides the value; one that is not given is left to the framework's default.
FURTHER = {"gather": (), "gather_object": (), "reduce": ("reduction", "scale"), "broadcast": ("from_process",),
           "broadcast_object_list": ("from_process",), "pad_across_processes": ("dim", "pad_index", "pad_first")}


def call(name: str, arguments: dict) -> dict:
    further = choose(FURTHER, name, "operation")
    fields = read(arguments, f"ops.{name}", input=REQUIRED, via="utility", debug=False,
                  **dict.fromkeys(further, ABSENT))
    accelerator = make_accelerator({})
    if fields.via == "utility":
        function = UTILITIES[name]
    elif fields.via == "accelerator" and name in METHODS:
        function = getattr(accelerator, name)
    else:
        raise Unsupported(f"ops.{name} via {fields.via!r}")
    value = decode(fields.input)
    PartialState().debug = fields.debug or PartialState().debug
    result = function(value, **given_only(fields, *further))
    return {"value": encode(result), "input_after": encode(value)}


def operation(name: str):
    return lambda arguments, session: call(name, arguments)


def verify(arguments: dict, session):
    given = dict(arguments)
    return call(given.pop("call", None), {**given, "debug": True})


OPERATIONS = {**{f"ops.{name}": operation(name) for name in FURTHER}, "ops.verify": verify}
