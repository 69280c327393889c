"""Lockstep for Python: what a script may say of itself to the simulator.

No script needs any of this: `lockstep sim -n 4 -- python train.py` runs it as it is. Where a process is not under the
simulator, each function here does nothing.
"""

from lockstep import _watching

__all__ = ["check_divergence", "is_watched", "name", "step"]


def is_watched():
    """Whether this process's collectives are checked."""
    return _watching.core() is not None


def step(number=None):
    """Marks the beginning of a training step, for reports. Without a number it is the next one.

    Not needed where a torch.optim optimizer steps: its steps are counted.
    """
    core = _watching.core()
    if core is not None:
        core.set_step(core.step() + 1 if number is None else number)


def name(tensor, text):
    """Gives a tensor a name for reports, for as long as its memory lives.

    Calls that swap two tensors of equal shape are then told apart.
    """
    core = _watching.core()
    if core is not None:
        core.name_tensor(tensor, text)


def check_divergence(state, group=None):
    """Checks that a state dict is bit-equal on all ranks; a collective call, which all ranks of the group must make.

    Raises DivergenceError on all ranks, naming the first entry that differs and the ranks that have other values.
    """
    if _watching.core() is not None:
        from lockstep import _divergence

        _divergence.check(state, group)
