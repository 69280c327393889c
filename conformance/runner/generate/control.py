"""State and process control."""


def state_case(draw, world: int) -> dict:
    return draw.weighted({split: 5, process: 2, control: 6})(draw, world)


def split(draw, world: int) -> dict:
    length = draw.small(0, 9)
    inputs = {
        "list": lambda: [draw.pick(i, f"s{i}") for i in range(length)],
        "tuple": lambda: {"tuple": list(range(length))},
        "tensor": lambda: draw.tensor(max(length, 1), *([2] if draw.chance(0.3) else [])),
        "dict": lambda: {"a": list(range(length)), "b": draw.tensor(length if draw.chance(0.8) else length + 1)},
        "other": lambda: draw.pick("text", 5, {}, 2.5),
    }
    args = {"input": draw.weighted({"list": 5, "tuple": 2, "tensor": 3, "dict": 2, "other": 1})}
    args["input"] = inputs[args["input"]]()
    return {"op": "state.split_between_processes", "args": {**args, **draw.some(0.35, apply_padding=True),
                                                             **draw.some(0.2, via="accelerator")}}


MODES = ("no", "bf16", "BF16")
SWITCHES = ("1", "0", "true", "no", "")


def process(draw, world: int) -> dict:
    """One state, with options given to an Accelerator, by the environment, or by both."""
    of = draw.pick("partial", "accelerator", "gradient")
    args = draw.some(0.8, of=of)
    if of == "accelerator" or draw.chance(0.4):
        args["accelerator"] = draw.some(0.3, mixed_precision=lambda: draw.pick(*MODES),
                                        gradient_accumulation_steps=lambda: draw.small(1, 4))
    env = draw.some(0.3, ACCELERATE_DEBUG_MODE=lambda: draw.pick(*SWITCHES),
                    ACCELERATE_MIXED_PRECISION=lambda: draw.pick(*MODES),
                    ACCELERATE_GRADIENT_ACCUMULATION_STEPS=lambda: str(draw.small(1, 4)))
    return {"op": "state.process", "args": {**args, **({"env": env} if env else {})}}


def control(draw, world: int) -> dict:
    calls = {
        "trigger": lambda: [{"v": "set_trigger", "ranks": sorted({draw.integer(0, world - 1) for _ in range(2)})}],
        "check": lambda: [{"v": "check_trigger"}],
        "barrier": lambda: [{"v": "barrier", **draw.some(0.2, delay_s=0.01)}],
        "print": lambda: [{"v": "print", "text": "x"}],
        "first": lambda: first(draw, world),
        "on": lambda: [{"v": "on", **draw.pick({"where": "main"}, {"where": "last"}, {"where": "local_main"},
                                               {"where": "process", "index": draw.integer(0, 4)},
                                               {"where": "local_process", "index": draw.integer(0, 4)}),
                        **draw.some(0.4, via="accelerator")}],
        "accelerator": lambda: [{"v": "accelerator", "args": draw.pick(
            {}, {"mixed_precision": "bf16"}, {"mixed_precision": "no"}, {"gradient_accumulation_steps": 2})}],
        "read": lambda: [read(draw)],
    }
    program = [call for _ in range(draw.small(1, 5)) for call in calls[draw.pick(*calls)]()]
    if draw.chance(0.3):  # the last thing, since hardly anything can be done without a state
        program += [{"v": "reset", "of": draw.pick("partial", "accelerator", "gradient"),
                     **draw.some(0.3, partial_too=True)}, read(draw), read(draw)]
    return {"op": "state.control", "args": {"calls": program}}


def first(draw, world: int) -> list[dict]:
    """The main rank first. A barrier before it, so that the others have to wait for as long as it sleeps."""
    options = draw.some(0.4, local=True)
    if world == 1:  # on more ranks the others would wait for ever
        options.update(draw.some(0.3, **{"raise": True}))
    return [{"v": "barrier"}, {"v": "first", "sleep_s": 0.1, **options}]


def read(draw) -> dict:
    return {"v": "read", **draw.pick({"name": "num_processes"}, {"name": "is_last_process"}, {"name": "debug"},
                                     {"of": "gradient", "name": "num_steps"}, {"of": "gradient", "name": "remainder"},
                                     {"of": "accelerator", "name": "mixed_precision"})}
