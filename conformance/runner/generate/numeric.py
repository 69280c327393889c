"""Loss scaling and autocast: amp.scaler, amp.autocast."""

from .programs import network


def scaler_case(draw, world: int) -> dict:
    args = draw.some(0.4, init_scale=lambda: draw.pick(4.0, 8.0, 1024.0), growth_interval=lambda: draw.small(1, 3))
    args.update(draw.some(0.15, growth_factor=lambda: draw.pick(1.5, 4.0), backoff_factor=lambda: draw.pick(0.25, 0.1),
                          unscale=True, enabled=False))
    optimizers = draw.weighted({1: 8, 2: 2})
    if optimizers > 1:
        args["optimizers"] = optimizers

    def gradient():
        return draw.weighted({1.0: 6, 0.5: 2, -2.0: 2, "Infinity": 2, "NaN": 1, None: 0.2})

    steps = draw.small(1, 7)
    args["grads"] = [gradient() if optimizers == 1 or draw.chance(0.5) else [gradient() for _ in range(optimizers)]
                     for _ in range(steps)]
    return {"op": "amp.scaler", "args": args}


def autocast_case(draw, world: int) -> dict:
    model, inputs, _ = network(draw)
    mode = draw.weighted({"bf16": 6, "no": 2, "fp16": 1, "BF16": 0.4})
    args = {"accelerator": {"mixed_precision": mode}, "model": model, "input": draw.tensor(draw.integer(2, 3), inputs)}
    options = {"enabled": lambda: draw.chance(0.4), "cache_enabled": lambda: draw.chance(0.5)}
    for name in ("handler", "block"):
        if draw.chance(0.4):
            args[name] = draw.some(0.6, **options)
    return {"op": "amp.autocast", "args": args}
