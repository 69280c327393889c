"""A world of ranks that speak the conformance protocol, as a test needs it."""
import json
import os
import queue
import socket
import subprocess
import threading

START_TAKES_AT_MOST_S = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Rank:
    """One process of the subject; its lines are read as they come."""

    def __init__(self, command: list[str], variables: dict[str, str]):
        outer = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKSTEP_", "ACCELERATE_"))}
        self.process = subprocess.Popen(command, env={**outer, **variables}, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines: queue.Queue = queue.Queue()
        self.errors: list[str] = []
        self.readers = [threading.Thread(target=self._read_lines), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read_lines(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def _read_errors(self):
        self.errors.extend(self.process.stderr)

    def send(self, line: str):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def receive(self, timeout_s: float) -> dict | None:
        """The next line; None if none comes in time."""
        try:
            return json.loads(self.lines.get(timeout=timeout_s))
        except queue.Empty:
            return None

    def end(self, kill: bool) -> int:
        self.process.kill() if kill else self.process.stdin.close()
        code = self.process.wait(timeout=60)
        for reader in self.readers:
            reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return code


class World:
    """Ranks of one subject. Leaving the block ends their input, or kills them after a failure."""

    def __init__(self, command: list[str], size: int):
        common = {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": str(free_port()), "LOCKSTEP_CONFORMANCE": "1", "OMP_NUM_THREADS": "1"}
        self.ranks = [Rank(command, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(size)]
        self.exit_codes: list[int] = []
        self.next_id = 1

    def __enter__(self):
        self.hellos = [rank.receive(START_TAKES_AT_MOST_S) for rank in self.ranks]
        return self

    def __exit__(self, kind, value, trace):
        self.close(kill=kind is not None)

    def close(self, kill: bool = False):
        self.exit_codes = [rank.end(kill) for rank in self.ranks]

    def ask(self, op: str, args: dict | None = None, rank_args: list[dict] | None = None, wait_s: float = 15,
            **more) -> list[dict | None]:
        """Every rank's answer, without the id; None where none came in `wait_s` seconds."""
        request = {"id": self.next_id, "op": op, "args": args or {}, **more}
        if rank_args is not None:
            request["rank_args"] = rank_args
        self.next_id += 1
        for rank in self.ranks:
            rank.send(json.dumps(request))
        answers = [rank.receive(wait_s) for rank in self.ranks]
        for answer in filter(None, answers):
            assert answer.pop("id") == request["id"], answer
        return answers

    def results(self, op: str, args: dict | None = None, rank_args: list[dict] | None = None, **more) -> list:
        """Every rank's RESULT, where all of them are to have one."""
        answers = self.ask(op, args, rank_args, **more)
        assert all(answer and "ok" in answer for answer in answers), answers
        return [answer["ok"] for answer in answers]
