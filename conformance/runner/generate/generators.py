"""rng.program: ranks with seeds of their own, generators, and what they draw before and after synchronising."""


def case(draw, world: int) -> dict:
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
            program[-1] = {"v": "initial_seed", "source": draw.pick(*sources)}
    args = {"program": program, **draw.some(0.85, accelerator={})}
    ranks = [{"rank_seed": draw.integer(0, 99)} for _ in range(world)] if draw.chance(0.5) else None
    return {"op": "rng.program", "args": args, **({"rank_args": ranks} if ranks else {})}


def sync(draw, sources) -> dict:
    if "g" in sources and draw.chance(0.6):
        return {"v": "sync", "types": ["generator"], "generator": "g"}
    return {"v": "sync", "types": [draw.weighted({"torch": 6, "generator": 1, "dice": 1})]}
