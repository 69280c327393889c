"""train.program: accumulation, schedulers, clipping and whole training runs from given weights."""

def scale_program(draw, world: int, n: int) -> dict:
    """The arguments of a program with one weight, one optimizer and items 1, 2, .. as inputs."""
    return {"models": {"m": {"kind": "scale", "init": {"w": draw.tensor(1)}}},
            "optimizers": {"o": {"kind": "sgd", "models": ["m"], "lr": draw.pick(1.0, 0.5, 0.1)}},
            "loaders": {"train": {"n": n, "item": "x1", **draw.some(0.3, b=2)}}}


def accumulation(draw) -> dict:
    fields = draw.some(0.8, num_steps=lambda: draw.weighted({1: 2, 2: 5, 3: 4, 4: 2, 0: 0.6}))
    return {**fields, **draw.some(0.2, sync_with_dataloader=False, sync_each_batch=True)}


def accumulation_case(draw, world: int) -> dict:
    if draw.chance(0.25):
        return draw.pick(local_gradients_case, two_models_case)(draw, world)
    args = scale_program(draw, world, draw.integer(1, 9))
    args["loaders"]["train"].update(draw.some(0.12, prepare=False, drop_last=True))
    body = [{"v": "forward"}, {"v": "backward", "grads": True}, {"v": "step"}, {"v": "zero_grad"}]
    if draw.chance(0.15):
        body = [body[3], *body[:3]]
    body[-1 if body[-1]["v"] == "zero_grad" else 0].update(draw.some(0.15, set_to_none=False))
    wrapped = [{"v": "accumulate", "body": body}]
    args["accumulation"] = accumulation(draw)
    if draw.chance(0.2):
        args["loaders"]["eval"] = {"n": draw.small(1, 4), "item": "x1"}
        wrapped.append({"v": "eval", "loader": "eval"})
    if draw.chance(0.2):
        wrapped.append({"v": "gather", **draw.some(0.4, metrics=False, what="loss")})
    if draw.chance(0.05):
        args["accelerator"] = {"gradient_accumulation_steps": draw.pick(1, 2)}
    elif draw.chance(0.15):
        args.pop("accumulation")
        args["accelerator"] = {"gradient_accumulation_steps": draw.small(1, 4)}
    loop = {"v": "loop", "loader": "train", "passes": draw.small(1, 2), "body": wrapped,
            **draw.some(0.15, stop_after=lambda: draw.small(1, 4))}
    between = [{"v": "set", "gradient_accumulation_steps": draw.small(1, 3)}] if draw.chance(0.1) else []
    again = [{"v": "loop", "loader": "train", "body": wrapped}] if draw.chance(0.25) else []
    return {"op": "train.program", "args": {**args, "program": [loop, *between, *again, *ending(draw, world)]}}


def ending(draw, world: int) -> list[dict]:
    """Perhaps the parameters; perhaps the failure of some ranks, after which nobody waits for them."""
    failure = {"v": "fail", "ranks": sorted({draw.integer(0, world - 1) for _ in range(2)})}
    return [*([failure] if draw.chance(0.1) else []), *([{"v": "params"}] if draw.chance(0.2) else [])]


def local_gradients_case(draw, world: int) -> dict:
    """no_sync, trigger_sync and sync_gradients by hand."""
    args = scale_program(draw, world, draw.integer(2, 6) * world)
    backward = {"v": "backward", "grads": True}
    inside = [{"v": "next"}, {"v": "forward"}, backward]
    if draw.chance(0.4):
        held = [{"v": "next"}, {"v": "forward", "as": "a"}, {"v": "next"}, {"v": "forward", "as": "b"}]
        program = [{"v": "no_sync", "body": [*held, {**backward, "loss": "a"}]}, {"v": "trigger_sync"},
                   {**backward, "loss": "b"}]
    else:
        program = [{"v": "no_sync", "body": inside}, *inside]
    if draw.chance(0.3):
        program.append({"v": "set", "sync_gradients": False})
    program += [{"v": "step"}, {"v": "zero_grad"}, {"v": "grads"}]
    return {"op": "train.program", "args": {**args, "program": program}}


def two_models_case(draw, world: int) -> dict:
    """Two models with an optimizer each; often only one of them is passed to accumulate."""
    args = scale_program(draw, world, draw.integer(2, 7))
    args["models"]["other"] = {"kind": "scale", "init": {"w": draw.tensor(1)}}
    args["optimizers"]["p"] = {"kind": "sgd", "models": ["other"], "lr": 0.5}
    body = [{"v": "forward", "as": "a"}, {"v": "forward", "model": "other", "as": "b"},
            {"v": "backward", "loss": "a", "grads": True}, {"v": "backward", "loss": "b", "grads": True},
            {"v": "step"}, {"v": "step", "optimizer": "p"}, {"v": "zero_grad"}, {"v": "zero_grad", "optimizer": "p"}]
    wrapped = {"v": "accumulate", "body": body, **draw.some(0.5, models=lambda: draw.pick(["m"], ["other"]))}
    args["accumulation"] = {"num_steps": draw.integer(2, 3)}
    return {"op": "train.program", "args": {**args, "program": [{"v": "loop", "body": [wrapped]}]}}


def scheduler(draw) -> dict:
    makers = {
        "inverse": lambda: {},
        "step": lambda: {"step_size": draw.small(1, 4), "gamma": draw.pick(0.1, 0.5, 0.9)},
        "linear": lambda: {"start_factor": draw.pick(1.0, 0.5), "end_factor": draw.pick(0.1, 1.0),
                           "total_iters": draw.small(1, 20)},
        "cosine": lambda: {"t_max": draw.small(2, 20)},
        "one_cycle": lambda: {"max_lr": draw.pick(0.5, 1.0), "total_steps": draw.small(3, 20)},
    }
    kind = draw.pick(*makers)
    return {"optimizer": "o", "kind": kind, **makers[kind]()}


def scheduler_case(draw, world: int) -> dict:
    args = scale_program(draw, world, draw.integer(2, 8))
    args["schedulers"] = {"s": scheduler(draw)}
    config = draw.some(0.3, split_batches=True)
    if config:
        args["config"] = config
        args["loaders"]["train"]["b"] = world
    args["accelerator"] = draw.some(0.2, step_scheduler_with_optimizer=False)
    args.update(draw.some(0.5, accumulation={"num_steps": draw.small(1, 3)}))
    args["schedulers"]["s"].update(draw.some(0.1, prepare=False))
    body = [{"v": "forward"}, {"v": "backward"}, {"v": "step"}, {"v": "sched"}, {"v": "zero_grad"}]
    loop = {"v": "loop", "passes": draw.small(1, 3), "body": [{"v": "accumulate", "body": body}]}
    return {"op": "train.program", "args": {**args, "program": [loop]}}


def network(draw) -> tuple[dict, int, int]:
    """A model, and the widths of its input and output."""
    kind = draw.weighted({"mlp": 6, "tied": 2, "batchnorm": 1, "unused": 0.7})
    if kind == "mlp":
        widths = [draw.integer(1, 4) for _ in range(draw.integer(2, 4))]
        init = {}
        for j in range(len(widths) - 1):
            init[f"{j}.weight"] = draw.tensor(widths[j + 1], widths[j], largest=1.0)
            init[f"{j}.bias"] = draw.tensor(widths[j + 1], largest=0.5)
        return {"kind": "mlp", "widths": widths, "init": init}, widths[0], widths[-1]
    d = draw.integer(1, 4)
    if kind == "tied":
        return {"kind": "tied", "d": d, "init": {"w": draw.tensor(d, d, largest=1.0)}}, d, d
    if kind == "unused":
        branches = draw.small(1, 3)
        return {"kind": "unused", "branches": branches,
                "init": {f"b{k}.w": draw.tensor(1) for k in range(branches)}}, d, d
    return {"kind": "batchnorm", "d": d, "init": {"weight": draw.tensor(d), "bias": draw.tensor(d)}}, d, d


def optimizer(draw) -> dict:
    kind = draw.pick("sgd", "sgd", "adam", "adamw")
    fields = {"kind": kind, "models": ["m"], "lr": draw.pick(0.1, 0.05, 0.01)}
    fields.update(draw.some(0.3, weight_decay=lambda: draw.pick(0.01, 0.1)))
    if kind == "sgd":
        return {**fields, **draw.some(0.4, momentum=lambda: draw.pick(0.5, 0.9))}
    return {**fields, **draw.some(0.3, betas=[0.8, 0.9], eps=1e-6)}


def regression(draw, world: int) -> dict:
    """The arguments of a run that fits random targets: every rank has full batches of two rows and more."""
    model, inputs, outputs = network(draw)
    b = draw.integer(2, 3)
    n = b * world * draw.small(1, 3)
    data = {"x": draw.tensor(n, inputs), "t": draw.tensor(n, outputs)}
    return {"models": {"m": model}, "optimizers": {"o": optimizer(draw)},
            "loaders": {"train": {"n": n, "b": b, "item": "xy", "data": data}}}


def clip_verb(draw) -> dict:
    if draw.chance(0.3):
        return {"v": "clip", "value": draw.pick(0.01, 0.1, 1.0)}
    return {"v": "clip", "max_norm": draw.pick(0.01, 0.1, 0.5, 1.0, 100.0),
            **draw.some(0.5, norm_type=lambda: draw.pick(1.0, 2.0, 3.0, "Infinity"))}


def clip_case(draw, world: int) -> dict:
    args = regression(draw, world)
    args.update(draw.some(0.3, accumulation={"num_steps": 2}))
    body = [{"v": "forward", "loss": "mse"}, {"v": "backward"}, clip_verb(draw), {"v": "grads"}, {"v": "step"},
            {"v": "zero_grad"}]
    if draw.chance(0.08):
        body.insert(0, clip_verb(draw))  # before there are gradients
    choose_branch(draw, world, args["models"]["m"], body)
    return {"op": "train.program", "args": {**args, "program": [
        {"v": "loop", "stop_after": draw.small(1, 3), "body": [{"v": "accumulate", "body": body}]}]}}


def choose_branch(draw, world: int, model: dict, body: list) -> None:
    """Lets a model with branches take the last of them; on more ranks mostly one without unused ones."""
    if model["kind"] != "unused":
        return
    if world > 1 and draw.chance(0.7):
        model.update(branches=1, init={"b0.w": model["init"]["b0.w"]})
    forward = next(entry for entry in body if entry["v"] == "forward")
    forward.update(draw.some(0.7, branch=model["branches"] - 1))


def bf16_case(draw, world: int) -> dict:
    case = training_case(draw, world)
    case["args"]["accelerator"] = {"mixed_precision": "bf16"}
    return case


def training_case(draw, world: int) -> dict:
    args = regression(draw, world)
    args.update(draw.some(0.4, accumulation={"num_steps": draw.small(1, 3)}, schedulers={"s": scheduler(draw)}))
    if draw.chance(0.3):
        args["loaders"]["train"]["shuffle"] = True
        args["config"] = {"use_seedable_sampler": True, "data_seed": draw.integer(0, 99)}
    body = [{"v": "forward", "loss": draw.pick("mse", "mse", "mean")}, {"v": "backward"}]
    body += [clip_verb(draw)] if draw.chance(0.25) else []
    body += [{"v": "step"}, *([{"v": "sched"}] if "schedulers" in args else []), {"v": "zero_grad"}]
    choose_branch(draw, world, args["models"]["m"], body)
    loop = {"v": "loop", "loader": "train", "passes": draw.small(1, 3), "body": [{"v": "accumulate", "body": body}]}
    evaluation = [{"v": "eval", "loader": "train", "loss": "mse"}] if draw.chance(0.3) else []
    return {"op": "train.program", "args": {**args, "program": [loop, *evaluation, *ending(draw, world)]}}
