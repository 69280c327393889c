"""The models, optimizers and schedulers that a request names; initial weights come with it."""

import torch
from torch import nn
from torch.optim import lr_scheduler

from .arguments import ABSENT, REQUIRED, choose, given_only, read
from .failures import Unsupported
from .values import decode


class Scale(nn.Module):
    """y = w * x"""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.w * x


class Mlp(nn.Module):
    """Linear layers named 0, 1, .. with ReLU between them."""

    def __init__(self, widths: list[int]):
        super().__init__()
        self.depth = len(widths) - 1
        for j in range(self.depth):
            self.add_module(str(j), nn.Linear(widths[j], widths[j + 1]))

    def forward(self, x):
        for j in range(self.depth):
            x = self.get_submodule(str(j))(x if j == 0 else torch.relu(x))
        return x


class Unused(nn.Module):
    """Branches b0, b1, .. each a Scale, of which a forward uses one."""

    def __init__(self, branches: int):
        super().__init__()
        for k in range(branches):
            self.add_module(f"b{k}", Scale())

    def forward(self, x, branch: int = 0):
        return self.get_submodule(f"b{branch}")(x)


class Tied(nn.Module):
    """y = relu(x wT) wT, one parameter used twice"""

    def __init__(self, d: int):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(d, d))

    def forward(self, x):
        return torch.relu(x @ self.w.T) @ self.w.T


MODELS = {
    "scale": (Scale, ()),
    "mlp": (Mlp, ("widths",)),
    "unused": (Unused, ("branches",)),
    "tied": (Tied, ("d",)),
    "batchnorm": (nn.BatchNorm1d, ("d",)),
}


def make_model(given: dict) -> nn.Module:
    """A MODEL with the weights of its `init`, which names every parameter."""
    make, sizes = choose(MODELS, given.get("kind"), "model")
    fields = read(given, "model", kind=REQUIRED, init=REQUIRED, prepare=True, **dict.fromkeys(sizes, REQUIRED))
    model = make(*[getattr(fields, size) for size in sizes])
    parameters = dict(model.named_parameters())
    if parameters.keys() != fields.init.keys():
        raise Unsupported(f"init names {sorted(fields.init)}, the model has {sorted(parameters)}")
    for name, parameter in parameters.items():
        parameter.data = decode(fields.init[name])
    return model


OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def make_optimizer(given: dict, models: dict[str, nn.Module]) -> torch.optim.Optimizer:
    fields = read(given, "optimizer", kind=REQUIRED, models=REQUIRED, lr=REQUIRED, momentum=ABSENT, weight_decay=0.0,
                  betas=ABSENT, eps=ABSENT, prepare=True)
    parameters = [parameter for name in fields.models for parameter in choose(models, name, "model").parameters()]
    options = given_only(fields, "lr", "momentum", "weight_decay", "betas", "eps")
    if "betas" in options:
        options["betas"] = tuple(options["betas"])
    return choose(OPTIMIZERS, fields.kind, "optimizer")(parameters, **options)


SCHEDULERS = {
    "inverse": (lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k)), {}),
    "step": (lr_scheduler.StepLR, {"step_size": "step_size", "gamma": "gamma"}),
    "linear": (lr_scheduler.LinearLR,
               {"start_factor": "start_factor", "end_factor": "end_factor", "total_iters": "total_iters"}),
    "cosine": (lr_scheduler.CosineAnnealingLR, {"t_max": "T_max"}),
    "one_cycle": (lr_scheduler.OneCycleLR, {"max_lr": "max_lr", "total_steps": "total_steps"}),
}


def make_scheduler(given: dict, optimizers: dict):
    make, names = choose(SCHEDULERS, given.get("kind"), "scheduler")
    fields = read(given, "scheduler", kind=REQUIRED, optimizer=REQUIRED, prepare=True, **dict.fromkeys(names, ABSENT))
    options = {names[name]: value for name, value in given_only(fields, *names).items()}
    return make(choose(optimizers, fields.optimizer, "optimizer"), **options)
