"""State, process control and generators of random numbers."""


def state_case(draw, world: int) -> dict:
    return draw.weighted({split: 6, process: 1, control: 4})(draw, world)


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


def process(draw, world: int) -> dict:
    args = draw.pick({}, {"of": "gradient"}, {"of": "accelerator", "accelerator": {}},
                     {"of": "accelerator", "accelerator": {"mixed_precision": "bf16"}},
                     {"of": "gradient", "accelerator": {"gradient_accumulation_steps": 3}},
                     {"of": "partial", "env": {"ACCELERATE_DEBUG_MODE": "true"}},
                     {"of": "accelerator", "env": {"ACCELERATE_MIXED_PRECISION": "bf16"}})
    return {"op": "state.process", "args": args}


def control(draw, world: int) -> dict:
    calls = {
        "trigger": lambda: {"v": "set_trigger", "ranks": sorted({draw.integer(0, world - 1) for _ in range(2)})},
        "check": lambda: {"v": "check_trigger"},
        "barrier": lambda: {"v": "barrier"},
        "print": lambda: {"v": "print", "text": "x"},
        "on": lambda: {"v": "on", **draw.pick({"where": "main"}, {"where": "last"}, {"where": "local_main"},
                                              {"where": "process", "index": draw.integer(0, 4)},
                                              {"where": "local_process", "index": draw.integer(0, 4)}),
                       **draw.some(0.4, via="accelerator")},
        "first": lambda: {"v": "first", "sleep_s": 0.2, **draw.some(0.4, local=True)},
        "accelerator": lambda: {"v": "accelerator", "args": draw.pick(
            {}, {"mixed_precision": "bf16"}, {"mixed_precision": "no"}, {"gradient_accumulation_steps": 2})},
        "read": lambda: {"v": "read", **draw.pick({"name": "num_processes"}, {"name": "is_last_process"},
                                                  {"of": "gradient", "name": "num_steps"},
                                                  {"of": "accelerator", "name": "mixed_precision"})},
    }
    chosen = [calls[draw.pick(*calls)]() for _ in range(draw.small(1, 5))]
    if draw.chance(0.2):
        chosen += draw.pick([{"v": "reset", "of": "partial"}, {"v": "read", "name": "num_processes"}],
                            [{"v": "reset", "of": "accelerator", **draw.some(0.5, partial_too=True)},
                             {"v": "read", "of": "accelerator", "name": "mixed_precision"}],
                            [{"v": "reset", "of": "gradient"}, {"v": "read", "of": "gradient", "name": "num_steps"}])
    return {"op": "state.control", "args": {"calls": chosen}}


def rng_case(draw, world: int) -> dict:
    """Ranks with seeds of their own, generators, and what they draw before and after synchronising."""
    sources = draw.pick(("torch",), ("torch", "g"))
    program = []
    if "g" in sources:
        program.append({"v": "generator", "name": "g", "seed": draw.integer(0, 99)})
    if draw.chance(0.6):
        program.append({"v": "seed", "seed": draw.integer(0, 99), **draw.some(0.4, device_specific=True)})
    for _ in range(draw.small(1, 4)):
        program.append(draw.weighted({"draw": 5, "sync": 3, "initial": 2}))
        if program[-1] == "draw":
            program[-1] = {"v": "draw", **draw.some(0.8, source=draw.pick(*sources)), "count": draw.small(1, 4)}
        elif program[-1] == "sync":
            program[-1] = sync(draw, sources)
        else:
            program[-1] = {"v": "initial_seed", "source": draw.pick(*(s for s in sources if s in ("torch", "g")))}
    args = {"program": program, **draw.some(0.85, accelerator={})}
    ranks = [{"rank_seed": draw.integer(0, 99)} for _ in range(world)] if draw.chance(0.5) else None
    return {"op": "rng.program", "args": args, **({"rank_args": ranks} if ranks else {})}


def sync(draw, sources) -> dict:
    if "g" in sources and draw.chance(0.6):
        return {"v": "sync", "types": ["generator"], "generator": "g"}
    return {"v": "sync", "types": [draw.weighted({"torch": 6, "generator": 1, "dice": 1})]}
