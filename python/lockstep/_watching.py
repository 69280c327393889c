"""Puts the checked classes in the place of torch's own, in this process."""

import faulthandler
import functools
import importlib
import signal
import site
import sys
import sysconfig
import threading
import weakref
from pathlib import Path

_core = None
_ddp_models = weakref.WeakSet()


def core():
    """The extension module, once start() has loaded it; None when this process is not watched."""
    return _core


def start():
    """Loads the extension, and lets torch make checked groups from now on.

    Where it cannot be built or loaded, the program runs as it would without Lockstep, and one line says why.
    """
    global _core
    from lockstep import _build, _environment

    try:
        extension = _build.load()
        extension.configure(**_environment.settings())
    except Exception as error:
        print(f"lockstep: nothing is checked in this process: {error}", file=sys.stderr, flush=True)
        return
    _core = extension
    _count_memory()
    extension.set_library_folders(_library_folders(), _framework_folders())
    _replace_classes()
    _count_detail_as_info()
    _name_buckets_of_ddp()
    _count_steps()
    _watch_threads()
    _print_stacks_on_signal()


def _library_folders():
    folders = {path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(getattr(site, "getsitepackages", list)())
    folders.add(site.getusersitepackages())
    return sorted({spelling for folder in folders for spelling in (folder, str(Path(folder).resolve()))})


def _framework_folders():
    import torch

    folders = {Path(torch.__file__).parent, Path(__file__).parent}
    return sorted({str(spelling) for folder in folders for spelling in (folder, folder.resolve())})


def _replace_classes():
    modules = [importlib.import_module(name) for name in (
        "torch.distributed", "torch.distributed.distributed_c10d", "torch.distributed.rendezvous")]
    for name in ("ProcessGroupGloo", "TCPStore", "FileStore"):
        for module in modules:
            if hasattr(module, name):
                setattr(module, name, getattr(_core, name))


def _count_detail_as_info():
    """TORCH_DISTRIBUTED_DEBUG=DETAIL checks less than we do, by another group that would be in the way."""
    import torch.distributed as dist

    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        dist.set_debug_level(dist.DebugLevel.INFO)
        print("lockstep: TORCH_DISTRIBUTED_DEBUG=DETAIL counts as INFO here: its checks are among Lockstep's",
              file=sys.stderr, flush=True)


def _count_memory():
    """With `--device-memory`: this process has a pretend device. If it becomes a rank it says at its end what it held."""
    from lockstep import _environment

    given = _environment.spec()
    limit = given.get("device_memory_bytes")
    if limit is not None or given.get("memory"):
        _core.count_memory(limit)


def _name_buckets_of_ddp():
    from torch.nn.parallel import DistributedDataParallel

    construct = DistributedDataParallel.__init__

    @functools.wraps(construct)
    def construct_and_name(self, *args, **kwargs):
        construct(self, *args, **kwargs)
        _ddp_models.add(self)
        reducer = getattr(self, "reducer", None)
        if reducer is not None:
            named = [(name, parameter) for name, parameter in self.module.named_parameters()
                     if parameter.requires_grad and name not in self.parameters_to_ignore]
            _core.name_buckets(reducer, [parameter for _, parameter in named], [name for name, _ in named])

    DistributedDataParallel.__init__ = construct_and_name


class UnreducedGradients(RuntimeError):
    """Gradients were left without the average over the ranks."""


def require_reduced_gradients():
    """Raises UnreducedGradients if DDP's last backward pass has not averaged all gradients; torch says so only at the
    next forward, after the optimizer has used them."""
    names = _core.parameters_without_gradient()
    if names:
        raise UnreducedGradients(
            f"backward ended without a gradient for {', '.join(names)}, so its bucket was not reduced, and the other "
            "gradients in it are this rank's own: use the same parameters in the forward pass of every rank, or pass "
            "find_unused_parameters=True to DistributedDataParallel")


def advice_on(error):
    """What to do about an error of torch's that does not say so; empty when there is nothing to add."""
    if "modified by an inplace operation" in str(error) and any(
            model.broadcast_buffers and any(True for _ in model.module.buffers()) for model in _ddp_models):
        return ("; DistributedDataParallel broadcasts the buffers (running statistics) before each forward, which changes "
                "what an earlier forward has saved: make one forward per backward, or pass broadcast_buffers=False")
    return ""


def _count_steps():
    """Calls are stamped with the number of optimizer steps before them: of several optimizers, the busiest one's."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    counts = weakref.WeakKeyDictionary()

    def count(optimizer, args, kwargs):
        counts[optimizer] = counts.get(optimizer, 0) + 1
        if counts[optimizer] > _core.step():
            _core.set_step(counts[optimizer])

    register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: require_reduced_gradients())
    register_optimizer_step_post_hook(count)


# Packages whose threads look after something of their own: bars, files, batches. Other threads may yet make the call that
# the ranks wait for, and are waited for.
_QUIET_PACKAGES = ("tqdm", "torch.utils.data", "tensorboard", "tensorboardX", "wandb", "mlflow", "comet_ml")


def _watch_threads():
    def look():
        def is_quiet(thread):
            home = getattr(getattr(thread, "_target", None), "__module__", None) or type(thread).__module__
            return any(home == package or home.startswith(package + ".") for package in _QUIET_PACKAGES)

        # A thread that is just beginning has no id yet; it is seen when the next one begins or ends.
        quiet = [thread.native_id for thread in threading.enumerate() if thread.native_id is not None and is_quiet(thread)]
        _core.add_backend_threads(quiet)

    _core.observe_threads(threading._active, look)


def _print_stacks_on_signal():
    """For `--on-verdict stacks`: printing needs no interpreter lock, so it works whatever the threads are at."""
    try:
        faulthandler.register(signal.SIGRTMAX - 1, file=sys.__stderr__, all_threads=True)
    except (AttributeError, OSError, RuntimeError, ValueError):  # no stderr, or none with a descriptor
        pass
