"""One pass over a loader, as one rank sees it: the PASS of the protocol."""

from accelerate.state import GradientState

from .failures import Unsupported, kind_of
from .loaders import index_list
from .values import encode


def loader_flags(loader) -> list:
    """What the loader says of itself; null for a loader that does not."""
    return [getattr(loader, "end_of_dataloader", None), getattr(loader, "remainder", None)]


def state_flags() -> list:
    """What the gradient state says of the active loader."""
    return [GradientState().end_of_dataloader, GradientState().remainder]


def record_pass(loader, item: str, stop_after: int | None = None, values: bool = False, slices: list | None = None,
                body=None) -> dict:
    """Runs a pass and writes down its steps.

    @param slices  the list in which a custom slice function records its calls; those of this pass are in the result
    @param body    body(t) is run in the loop body of step t, after its flags have been read
    """
    seen = {"batches": [], "end": [], "remainder": [], "state_end": [], "state_remainder": []}
    if values:
        seen["values"] = []
    sliced_before = 0 if slices is None else len(slices)
    try:
        for step, batch in enumerate(loader):
            _record_step(seen, loader, batch, item)
            if body is not None:
                body(step)
            if step + 1 == stop_after:
                break
        seen["after"] = [*loader_flags(loader), *state_flags(), getattr(loader, "iteration", None)]
    except Unsupported:
        raise
    except Exception as error:
        seen["failed"] = kind_of(error)
    if slices is not None:
        seen["slices"] = slices[sliced_before:]
    return seen


def _record_step(seen: dict, loader, batch, item: str) -> None:
    flags = [index_list(batch, item), *loader_flags(loader), *state_flags()]
    for name, value in zip(("batches", "end", "remainder", "state_end", "state_remainder"), flags):
        seen[name].append(value)
    if "values" in seen:
        seen["values"].append(encode(batch))
