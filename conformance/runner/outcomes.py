"""What is said of the outcomes of a request, one per rank."""

WORDS = ("ok", "error", "unsupported", "hang", "crash", "protocol")
NO_ANSWER = ("hang", "crash", "protocol")


def word(outcome: dict) -> str:
    """Which of the six it is."""
    return next(word for word in WORDS if word in outcome)


def brief(outcome: dict) -> str:
    """The outcome in a few words, without a result."""
    kind = word(outcome)
    return f"{kind} {outcome[kind]}" if kind in ("error", "unsupported", "crash", "protocol") else kind


def spoils_world(outcomes: list[dict]) -> bool:
    """Whether the world cannot be asked again: somebody hangs, is gone or is confused, or the ranks differ."""
    words = {word(outcome) for outcome in outcomes}
    return len(words) > 1 or bool(words & set(NO_ANSWER))


def is_unsupported(outcomes: list[dict]) -> bool:
    """If any rank does not support it, the case is unsupported."""
    return any("unsupported" in outcome for outcome in outcomes)


def recorded(outcomes: list[dict]) -> dict:
    """The outcomes as the `expect` of a case."""
    kept = [{word(outcome): outcome[word(outcome)]} for outcome in outcomes]
    return {"all": kept[0]} if all(outcome == kept[0] for outcome in kept) else {"ranks": kept}


def of_expect(expect: dict, world: int) -> list[list[dict]]:
    """The outcomes that an `expect` accepts, one list for each alternative."""
    if "accepted" in expect:
        return [outcomes for alternative in expect["accepted"] for outcomes in of_expect(alternative, world)]
    return [expect["ranks"] if "ranks" in expect else [expect["all"]] * world]
