"""Values of the protocol in both directions: tensors, tuples, named tuples, bytes, sets and what JSON has itself."""

import base64
import collections
import math

import numpy
import torch

from .failures import Unsupported

DTYPES = {str(dtype).removeprefix("torch."): dtype
          for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
                        torch.float8_e5m2, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)}
LONGEST_LIST = 4096  # elements; a larger tensor is written as bytes
RESERVED = {"t", "tuple", "named", "b64", "set", "error", "map"}
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_named_tuples = {}


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def write_float(number: float):
    if math.isfinite(number):
        return float(number)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def read_float(written) -> float:
    """A float of the protocol; an integer is read as one too."""
    if isinstance(written, str):
        if written not in SPECIAL:
            raise Unsupported(f"number {written!r}")
        return SPECIAL[written]
    return float(written)


def encode(value):
    """A value as the JSON document that stands for it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return write_float(value)
    if isinstance(value, torch.Tensor):
        return encode_tensor(value)
    if isinstance(value, tuple):
        return encode_tuple(value)
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return encode_mapping(value)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, (set, frozenset)):
        return {"set": [encode(item) for item in value]}
    raise Unsupported(f"a result of type {type(value).__name__}")


def encode_tuple(value: tuple):
    if hasattr(value, "_fields"):
        fields = {name: encode(item) for name, item in zip(value._fields, value)}
        return {"named": type(value).__name__, "fields": fields}
    return {"tuple": [encode(item) for item in value]}


def encode_mapping(value: dict):
    if all(isinstance(key, str) and key not in RESERVED for key in value):
        return {key: encode(item) for key, item in value.items()}
    return {"map": [[encode(key), encode(item)] for key, item in value.items()]}


def encode_tensor(tensor: torch.Tensor) -> dict:
    tensor = tensor.detach().cpu()
    document = {"t": dtype_name(tensor.dtype), "shape": list(tensor.shape)}
    if tensor.numel() > LONGEST_LIST:
        content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return {**document, "b64": base64.b64encode(content).decode()}
    if tensor.dtype.is_floating_point:
        numbers = tensor.to(torch.float64).reshape(-1).tolist()
        return {**document, "data": [write_float(number) for number in numbers]}
    return {**document, "data": tensor.reshape(-1).tolist()}


def decode(document):
    """The value that a JSON document stands for."""
    if isinstance(document, list):
        return [decode(item) for item in document]
    if not isinstance(document, dict):
        return SPECIAL.get(document, document) if isinstance(document, str) else document
    if "t" in document:
        return decode_tensor(document)
    if "tuple" in document:
        return tuple(decode(item) for item in document["tuple"])
    if "named" in document:
        fields = {name: decode(item) for name, item in document["fields"].items()}
        return named_tuple(document["named"], tuple(fields))(**fields)
    if "b64" in document:
        return base64.b64decode(document["b64"])
    if "set" in document:
        return {decode(item) for item in document["set"]}
    if "map" in document:
        return {decode(key): decode(item) for key, item in document["map"]}
    return {key: decode(item) for key, item in document.items()}


def decode_tensor(document: dict) -> torch.Tensor:
    if document["t"] not in DTYPES:
        raise Unsupported(f"dtype {document['t']!r}")
    dtype, shape = DTYPES[document["t"]], document["shape"]
    if "b64" in document:
        content = numpy.frombuffer(base64.b64decode(document["b64"]), dtype=numpy.uint8).copy()
        return torch.from_numpy(content).view(dtype).reshape(shape)
    if dtype.is_floating_point:
        numbers = [read_float(number) for number in document["data"]]
        return torch.tensor(numbers, dtype=torch.float64).to(dtype).reshape(shape)
    return torch.tensor(document["data"], dtype=dtype).reshape(shape)


def named_tuple(name: str, fields: tuple):
    """A class for named tuples, the same one for the same name and fields; found by name when a rank unpickles one."""
    if (name, fields) not in _named_tuples:
        made = collections.namedtuple(name, fields)
        made.__module__ = __name__
        _named_tuples[name, fields] = made
    globals()[name] = _named_tuples[name, fields]
    return globals()[name]
