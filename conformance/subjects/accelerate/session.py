"""The conversation of one rank: hello, requests one by one, a reset before each, answers."""

import datetime
import gc
import json
import os
import random

import accelerate
import numpy
import torch
import torch._dynamo  # noqa: F401  seconds long, and otherwise imported in the middle of a case by its first optimizer
from accelerate.state import AcceleratorState, GradientState

from .arguments import read
from .failures import Unsupported, kind_of

# Longer than any request waits, so that a rank that waits for its peers is seen as one that hangs.
GROUP_TIMEOUT = datetime.timedelta(hours=1)
FEATURES = ["ddp", "amp.bf16", "rng.python", "rng.numpy"]
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Session:
    """Answers requests until the end of input.

    @param operations  name -> function(arguments, session) that returns the RESULT
    """

    def __init__(self, requests, answers, operations: dict):
        self.requests, self.answers, self.operations = requests, answers, operations
        self.rank, self.world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.environment, self.seed = {}, 0

    def serve(self) -> None:
        self._join_group()
        self._say({"hello": 1, "name": "accelerate", "version": accelerate.__version__,
                   "capabilities": [*self.operations, *FEATURES]})
        for line in self.requests:
            self._say(self._answer_line(line))

    def reset(self) -> None:
        """Everything but the group is as in a new process, with the environment and seed of the case in hand."""
        gc.collect()  # objects of the last case that hold each other
        gc.freeze()  # what is left are modules and their caches, which need not be looked at again
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        os.environ.clear()
        os.environ.update({**self._own_environment, **self.environment})
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
        torch.set_grad_enabled(True)
        if torch.are_deterministic_algorithms_enabled():  # not asked in vain, since the setter imports a compiler
            torch.use_deterministic_algorithms(False)
        torch.set_default_dtype(torch.float32)
        random.seed(self.seed)
        numpy.random.seed(self.seed % 2**32)
        torch.default_generator.manual_seed(self.seed)  # torch.manual_seed also queues seeds for absent devices

    def _join_group(self) -> None:
        if self.world_size > 1:
            torch.distributed.init_process_group("gloo", timeout=GROUP_TIMEOUT)
        else:
            for name in RANK_VARIABLES:  # Accelerate would make a group of one
                os.environ.pop(name, None)
        self._own_environment = dict(os.environ)

    def _answer_line(self, line: str) -> dict:
        try:
            request = json.loads(line)
        except ValueError:
            return {"id": None, "unsupported": "a request that is no JSON"}
        if not isinstance(request, dict):
            return {"id": None, "unsupported": "a request that is no object"}
        try:
            return {"id": request.get("id"), "ok": self._answer(request)}
        except Unsupported as reason:
            return {"id": request.get("id"), "unsupported": str(reason)}
        except Exception as error:
            return {"id": request.get("id"), "error": {"kind": kind_of(error), "message": str(error)}}

    def _answer(self, request: dict):
        request = read(request, "request", id=None, op=None, args={}, rank_args=None, seed=0, timeout_s=10)
        if request.op not in self.operations:
            raise Unsupported(f"operation {request.op!r}")
        arguments = dict(request.args)
        if request.rank_args is not None:
            arguments.update(request.rank_args[self.rank])
        if arguments.pop("device", "cpu") != "cpu":
            raise Unsupported("a device other than cpu")
        self.environment = arguments.pop("env", {})
        self.seed = arguments.pop("rank_seed", request.seed)
        self.reset()
        return self.operations[request.op](arguments, self)

    def _say(self, document: dict) -> None:
        self.answers.write(json.dumps(document, allow_nan=False) + "\n")
        self.answers.flush()
