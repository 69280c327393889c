"""How a rank's process ends, told to the other ranks: well, by an exception, or with an exit code."""

import atexit
import multiprocessing
import multiprocessing.util
import os
import sys

from lockstep import _watching

_watched_pid = None


def watch(rank):
    """Called when this process becomes a rank; a forked child is another one, and starts anew."""
    global _watched_pid
    if _watched_pid == os.getpid():
        return
    is_first = _watched_pid is None  # a forked child has the parent's hooks already
    _watched_pid = os.getpid()
    core = _watching.core()
    core.set_memory_rank(rank)
    if is_first:
        _tell_of_exceptions()
    if multiprocessing.parent_process() is not None:
        # Such a process catches every exception and leaves by os._exit; what comes by on the way are its finalizers.
        multiprocessing.util.Finalize(None, _end_of_multiprocessing, exitpriority=1000)
        return
    # Groups are destroyed while the interpreter ends; whether it ends well is known only after that.
    if is_first:
        atexit.register(_end_of_interpreter)
        core.end_ranks_at_exit()


def _tell_of_exceptions():
    previous = sys.excepthook

    def print_and_tell(kind, value, traceback):
        previous(kind, value, traceback)
        if os.getpid() == _watched_pid:
            _fail(kind, value, traceback)

    sys.excepthook = print_and_tell


def _end_of_interpreter():
    if os.getpid() != _watched_pid:
        return
    core = _watching.core()
    try:
        if not hasattr(sys, "last_value"):  # otherwise it ends by an exception, which says more
            _watching.require_reduced_gradients()
    except _watching.UnreducedGradients as error:
        print(f"lockstep: {error}", file=sys.stderr, flush=True)
        core.fail_rank(type(error).__name__, str(error), "", False)
    _print_memory()
    core.hold_ranks()
    core.wait_until_idle()


def _end_of_multiprocessing():
    if os.getpid() != _watched_pid:
        return
    _print_memory()
    error = sys.exc_info()[1]
    if error is None or (isinstance(error, SystemExit) and not error.code):
        _watching.core().end_ranks(0)
        return
    if isinstance(error, SystemExit) and error.__context__ is not None:
        error = error.__context__  # torch.multiprocessing keeps the exception for the parent and exits with 1
    if isinstance(error, SystemExit):
        _watching.core().end_ranks(error.code if isinstance(error.code, int) else 1)
    else:
        _fail(type(error), error, error.__traceback__)


def _print_memory():
    """What this rank held, where that is counted."""
    summary = _watching.core().memory_summary()
    if summary:
        print(summary, file=sys.stderr, flush=True)


def _fail(kind, value, traceback):
    message = str(value) + _watching.advice_on(value)
    _watching.core().fail_rank(kind.__name__, message, _site_of(traceback), _is_of_network(value))


def _is_of_network(error):
    import torch.distributed as dist

    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error))


def _site_of(traceback):
    """Of the frames of a traceback the innermost one of the user's own code."""
    core = _watching.core()
    best, best_owner = "", -1
    while traceback is not None:
        code = traceback.tb_frame.f_code
        owner = core.owner_of_code(code)
        if owner >= best_owner:
            name = getattr(code, "co_qualname", code.co_name)
            best, best_owner = f"{code.co_filename}:{traceback.tb_lineno}:{name}", owner
        traceback = traceback.tb_next
    return best
