"""The verbs of train.program. Each is verb(training, given, entry): it does what `given` asks and fills in its entry of
the log; the body of a container follows it in the log."""

import torch

from .arguments import ABSENT, REQUIRED, choose, read
from .failures import Unsupported
from .values import decode, encode

LOSSES = {
    "sum": lambda output, batch: output.sum(),
    "mean": lambda output, batch: output.mean(),
    "mse": lambda output, batch: ((output - batch["t"]) ** 2).mean(),
}


def next_batch(training, given, entry):
    fields = read(given, "next", v=None, loader=None)
    name, loader = training.one(training.loaders, fields.loader, "loader")
    if name not in training.iterators:
        training.iterators[name] = iter(loader)
    batch = next(training.iterators[name], None)
    if batch is None:
        del training.iterators[name]
    else:
        training.batch, training.batch_loader = batch, name
    state = training.accelerator.gradient_state
    entry.update(batch=None if batch is None else training.ids(), end=state.end_of_dataloader,
                 remainder=state.remainder)


def loop(training, given, entry):
    fields = read(given, "loop", v=None, loader=None, passes=1, stop_after=None, body=REQUIRED)
    name, _ = training.one(training.loaders, fields.loader, "loader")
    for _ in range(fields.passes):
        bodies = 0
        while bodies != fields.stop_after:
            training.run([{"v": "next", "loader": name}])
            if name not in training.iterators:
                break
            training.run(fields.body)
            bodies += 1
        training.iterators.pop(name, None)  # leaves the loop early, if it is not exhausted


def accumulate(training, given, entry):
    fields = read(given, "accumulate", v=None, models=None, body=REQUIRED)
    names = training.models if fields.models is None else fields.models
    with training.accelerator.accumulate(*[choose(training.models, name, "model") for name in names]):
        entry.update(sync=training.accelerator.sync_gradients, step=training.accelerator.step)
        training.run(fields.body)


def no_sync(training, given, entry):
    fields = read(given, "no_sync", v=None, model=None, body=REQUIRED)
    with training.accelerator.no_sync(training.one(training.models, fields.model, "model")[1]):
        training.run(fields.body)


def trigger_sync(training, given, entry):
    fields = read(given, "trigger_sync", v=None, model=None)
    model = training.one(training.models, fields.model, "model")[1]
    training.until_backward.enter_context(training.accelerator.trigger_sync_in_backward(model))


def forward(training, given, entry):
    fields = read(given, "forward", v=None, model=None, input=None, branch=None, loss="sum", **{"as": "loss"})
    model = training.one(training.models, fields.model, "model")[1]
    loss = evaluate(training, model, fields)
    training.losses[getattr(fields, "as")] = loss
    entry["loss"] = encode(loss.item())


def evaluate(training, model, fields):
    """The loss of the last batch, or of a given input."""
    if fields.input is not None:
        x = decode(fields.input)
    else:
        x = training.batch["x"] if isinstance(training.batch, dict) else training.batch
    output = model(x) if fields.branch is None else model(x, fields.branch)
    return choose(LOSSES, fields.loss, "loss")(output, training.batch)


def backward(training, given, entry):
    fields = read(given, "backward", v=None, loss="loss", grads=False)
    training.accelerator.backward(choose(training.losses, fields.loss, "loss"))
    training.until_backward.close()
    if fields.grads:
        entry["grads"] = {f"{model}.{name}": gradient(parameter) for model, net in training.nets.items()
                          for name, parameter in net.named_parameters()}


def gradient(parameter):
    return None if parameter.grad is None else encode(parameter.grad)


def clip(training, given, entry):
    fields = read(given, "clip", v=None, model=None, max_norm=None, norm_type=2.0, value=None)
    parameters = training.one(training.models, fields.model, "model")[1].parameters()
    if (fields.max_norm is None) == (fields.value is None):
        raise Unsupported("clip: one of max_norm and value is required")
    if fields.value is not None:
        training.accelerator.clip_grad_value_(parameters, fields.value)
        entry["norm"] = None
    else:
        norm_type = float(fields.norm_type)  # also "Infinity"
        entry["norm"] = encode(float(training.accelerator.clip_grad_norm_(parameters, fields.max_norm, norm_type)))


def step(training, given, entry):
    fields = read(given, "step", v=None, optimizer=None)
    name, optimizer = training.one(training.optimizers, fields.optimizer, "optimizer")
    before = training.inner_steps[name]
    optimizer.step()
    entry.update(stepped=training.inner_steps[name] > before, skipped=getattr(optimizer, "step_was_skipped", False))


def zero_grad(training, given, entry):
    fields = read(given, "zero_grad", v=None, optimizer=None, set_to_none=ABSENT)
    _, optimizer = training.one(training.optimizers, fields.optimizer, "optimizer")
    optimizer.zero_grad(**({} if fields.set_to_none is ABSENT else {"set_to_none": fields.set_to_none}))


def sched(training, given, entry):
    fields = read(given, "sched", v=None, scheduler=None)
    name, scheduler = training.one(training.schedulers, fields.scheduler, "scheduler")
    scheduler.step()
    raw = training.raw_schedulers[name]
    entry.update(lr=[encode(float(group["lr"])) for group in raw.optimizer.param_groups], position=raw.last_epoch)


def gather(training, given, entry):
    fields = read(given, "gather", v=None, what="batch", metrics=True)
    values = {"batch": lambda: torch.tensor(training.ids()), "loss": lambda: training.losses["loss"].detach()}
    value = choose(values, fields.what, "what")()
    collect = training.accelerator.gather_for_metrics if fields.metrics else training.accelerator.gather
    entry["value"] = encode(collect(value))


def evaluation(training, given, entry):
    fields = read(given, "eval", v=None, loader=None, model=None, loss="sum")
    name, loader = training.one(training.loaders, fields.loader, "loader")
    _, model = training.one(training.models, fields.model, "model")
    kept = training.batch, training.batch_loader, model.training
    fields.input = fields.branch = None
    entry.update(losses=[], batches=[])
    model.eval()
    with torch.no_grad():
        for training.batch in loader:
            training.batch_loader = name
            entry["losses"].append(encode(evaluate(training, model, fields).item()))
            entry["batches"].append(training.ids())
    training.batch, training.batch_loader, mode = kept
    model.train(mode)


def named_tensors(training, given, entry, key, written):
    name, _ = training.one(training.models, read(given, key, v=None, model=None).model, "model")
    entry[key] = {parameter: written(tensor) for parameter, tensor in training.nets[name].named_parameters()}


def set_value(training, given, entry):
    fields = read(given, "set", v=None, sync_gradients=ABSENT, gradient_accumulation_steps=ABSENT)
    for name in ("sync_gradients", "gradient_accumulation_steps"):
        if getattr(fields, name) is not ABSENT:
            setattr(training.accelerator, name, getattr(fields, name))


def fail(training, given, entry):
    if training.rank in read(given, "fail", v=None, ranks=REQUIRED).ranks:
        raise RuntimeError("this rank was asked to fail")


VERBS = {
    "next": next_batch, "loop": loop, "accumulate": accumulate, "no_sync": no_sync, "trigger_sync": trigger_sync,
    "forward": forward, "backward": backward, "clip": clip, "step": step, "zero_grad": zero_grad, "sched": sched,
    "gather": gather, "eval": evaluation, "set": set_value, "fail": fail,
    "params": lambda training, given, entry: named_tensors(training, given, entry, "params", encode),
    "grads": lambda training, given, entry: named_tensors(training, given, entry, "grads", gradient),
}
