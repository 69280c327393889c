"""amp.scaler and amp.autocast."""

import torch
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.utils import AutocastKwargs

from .accelerators import make_accelerator
from .arguments import REQUIRED, read
from .failures import kind_of
from .models import make_model
from .values import decode, dtype_name, encode, read_float


class ScaledSteps:
    """Prepared optimizers of one parameter each that share a scaler; gradients are given, nothing is differentiated."""

    def __init__(self, fields):
        self.fields, self.accelerator = fields, make_accelerator({})
        self.scaler = torch.amp.GradScaler("cpu", init_scale=fields.init_scale, growth_factor=fields.growth_factor,
                                           backoff_factor=fields.backoff_factor,
                                           growth_interval=fields.growth_interval, enabled=fields.enabled)
        self.parameters = [torch.nn.Parameter(torch.tensor([0.0])) for _ in range(fields.optimizers)]
        self.raw = [torch.optim.SGD([parameter], lr=1.0) for parameter in self.parameters]
        self.optimizers = [AcceleratedOptimizer(optimizer, scaler=self.scaler) for optimizer in self.raw]

    def step(self, gradients: list) -> dict:
        self.scaler.scale(torch.tensor(1.0))  # makes the scale tensor, as the first loss of a training would
        scale = self.scaler.get_scale()
        for parameter, gradient in zip(self.parameters, gradients):
            parameter.grad = None if gradient is None else torch.tensor([read_float(gradient)]) * scale
        if self.fields.unscale:
            for optimizer in self.raw:
                self.scaler.unscale_(optimizer)
        for optimizer in self.optimizers:
            optimizer.step()
        return {"params": [encode(parameter.item()) for parameter in self.parameters],
                "skipped": [optimizer.step_was_skipped for optimizer in self.optimizers],
                "scale": encode(self.scaler.get_scale())}


def scaler(arguments: dict, session):
    fields = read(arguments, "amp.scaler", init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5,
                  growth_interval=2000, enabled=True, optimizers=1, unscale=False, grads=REQUIRED)
    run, steps = ScaledSteps(fields), []
    for gradients in fields.grads:
        try:
            steps.append(run.step(gradients if isinstance(gradients, list) else [gradients] * fields.optimizers))
        except Exception as error:
            steps.append({"failed": kind_of(error)})
            break
    return {"steps": steps}


def read_handler(given: dict, where: str) -> AutocastKwargs | None:
    read(given, where, enabled=True, cache_enabled=None)
    return AutocastKwargs(**given) if given else None


def product_dtype() -> str:
    """What a product of float32 matrices comes out as."""
    matrix = torch.ones(2, 2)
    return dtype_name((matrix @ matrix).dtype)


def autocast(arguments: dict, session):
    fields = read(arguments, "amp.autocast", accelerator={}, model=REQUIRED, input=REQUIRED, handler={}, block={})
    handler, block = read_handler(fields.handler, "handler"), read_handler(fields.block, "block")
    accelerator = make_accelerator(fields.accelerator, handlers=[handler] if handler else None)
    model = accelerator.prepare(make_model(fields.model))
    output = model(decode(fields.input))
    with accelerator.autocast(**({"autocast_handler": block} if block else {})):
        inside = product_dtype()
    return {"output": encode(output), "param_dtype": dtype_name(next(model.parameters()).dtype), "block_dtype": inside,
            "outer_dtype": product_dtype(), "native_amp": accelerator.native_amp,
            "scaler": accelerator.scaler is not None}


OPERATIONS = {"amp.scaler": scaler, "amp.autocast": autocast}
