"""ops.gather_for_metrics over passes of a prepared loader."""

import torch

from .arguments import REQUIRED, choose, read
from .data_loaders import Loaders
from .loaders import index_list
from .values import encode

# What is gathered of a step whose batch has these indices.
GATHERED = {
    "batch": lambda ids: torch.tensor(ids, dtype=torch.int64),
    "dict": lambda ids: {"a": torch.tensor(ids, dtype=torch.int64), "b": [torch.tensor(ids, dtype=torch.int64) * 2]},
    "mean": lambda ids: torch.tensor(ids, dtype=torch.float32).mean(),
    "objects": lambda ids: ids,
    "strings": lambda ids: [f"s{i}" for i in ids],
}


def gather_for_metrics(arguments: dict, session):
    fields = read(arguments, "ops.gather_for_metrics", loader=REQUIRED, config={}, accelerator={}, what="batch",
                  use_gather_object=False, plain=False, passes=1, stop_after=None, after=False)
    value_of = choose(GATHERED, fields.what, "what")
    loaders = Loaders({"main": fields.loader}, fields.accelerator, fields.config)
    value = None

    def one_pass():
        nonlocal value
        entry = {"gathered": [], **({"plain": []} if fields.plain else {})}
        for step, batch in enumerate(loaders["main"]):
            value = value_of(index_list(batch, loaders.items["main"]))
            gathered = loaders.accelerator.gather_for_metrics(value, use_gather_object=fields.use_gather_object)
            entry["gathered"].append(encode(gathered))
            if fields.plain:
                entry["plain"].append(encode(loaders.accelerator.gather(value)))
            if step + 1 == fields.stop_after:
                break
        return entry

    result = {"passes": [one_pass() for _ in range(fields.passes)]}
    if fields.after:
        again = loaders.accelerator.gather_for_metrics(value, use_gather_object=fields.use_gather_object)
        result["after"] = encode(again)
    return result


OPERATIONS = {"ops.gather_for_metrics": gather_for_metrics}
