"""A subject: one command, and a living world of each size that was asked for."""

from .outcomes import spoils_world
from .world import World, WorldFailed

STARTS = 3  # a port that was free may be taken before the ranks meet there
FIELDS_OF_REQUEST = ("op", "args", "rank_args", "seed", "timeout_s")


class Subject:
    """Answers cases. A world that a case has spoilt is replaced before the next one.

    @throws WorldFailed  from send(), if a world does not start
    """

    def __init__(self, name: str, command: list[str]):
        self.name, self.command, self.worlds = name, command, {}
        self.starts = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for world in self.worlds.values():
            world.close()
        self.worlds = {}

    def send(self, case: dict) -> None:
        """Sends the case to a world of its size; one case at a time."""
        if case["world"] not in self.worlds:
            self.worlds[case["world"]] = self._start(case["world"])
        self.worlds[case["world"]].send({name: case[name] for name in FIELDS_OF_REQUEST if name in case})

    def collect(self, case: dict) -> list[dict]:
        """The outcomes of the case that was sent, one per rank."""
        outcomes = self.worlds[case["world"]].collect()
        if spoils_world(outcomes):
            self.worlds.pop(case["world"]).kill()
        return outcomes

    def alternatives(self, case: dict) -> list[list[dict]]:
        """None: what it answers is the one thing to compare with."""
        return []

    def ask(self, case: dict) -> list[dict]:
        self.send(case)
        return self.collect(case)

    def supports(self, case: dict) -> bool:
        """Whether the operation is among the capabilities; what is not listed is not asked."""
        if case["world"] not in self.worlds:
            self.worlds[case["world"]] = self._start(case["world"])
        return case["op"] in self.worlds[case["world"]].hellos[0]["capabilities"]

    def _start(self, size: int) -> World:
        for attempt in range(1, STARTS + 1):
            self.starts += 1
            try:
                return World(self.command, size)
            except WorldFailed as failure:
                if attempt == STARTS:
                    raise WorldFailed(f"{self.name}: {failure}") from None
