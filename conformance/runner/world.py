"""One world of a subject: a process per rank that speaks the protocol, started once and asked many times."""

import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time

HELLO_TIMEOUT_S = 120
GRACE_S = 5  # beyond a request's own time-out
ENDING_TIMEOUT_S = 10
PR_SET_PDEATHSIG = 1

_prctl = ctypes.CDLL(None).prctl


class WorldFailed(Exception):
    """The ranks did not come up: what the first of them that failed did instead of saying hello."""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def rank_environment(rank: int, size: int, port: int) -> dict:
    variables = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "LOCKSTEP_CONFORMANCE": 1}
    outer = {name: value for name, value in os.environ.items() if not name.startswith("ACCELERATE_")}
    return {"OMP_NUM_THREADS": "1", **outer, **{name: str(value) for name, value in variables.items()}}


class Rank:
    """One process and the lines that it writes."""

    def __init__(self, command: list[str], environment: dict):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=environment, start_new_session=True, preexec_fn=_die_with_parent)
        self.buffer = b""

    def send(self, line: bytes) -> None:
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended, which shows when its answer is read

    def read(self) -> bytes | None:
        """More of its output: the line that is complete with it, b"" if none is yet, None at the end."""
        piece = os.read(self.process.stdout.fileno(), 65536)
        if not piece:
            return None
        self.buffer += piece
        return self.take_line()

    def take_line(self) -> bytes:
        line, end, rest = self.buffer.partition(b"\n")
        if not end:
            return b""
        self.buffer = rest
        return line

    def how_it_ended(self) -> str:
        try:
            code = self.process.wait(ENDING_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "closed its output and went on"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def last_words(self, size: int = 2000) -> str:
        """The end of what it wrote to stderr."""
        end = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, end - size))
        return self.errors.read().decode(errors="replace")

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            try:
                stream.close()
            except OSError:
                pass  # a write to the process that is gone


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class World:
    """All ranks of one size. A request goes to all of them; each has an outcome.

    @throws WorldFailed  if a rank does not say hello in time
    """

    def __init__(self, command: list[str], size: int):
        port = free_port()
        self.size, self.last_id, self.deadline = size, 0, 0.0
        self.ranks = []
        try:
            for rank in range(size):
                self.ranks.append(Rank(command, rank_environment(rank, size, port)))
            self.hellos = self._read_hellos()
        except BaseException:
            self.kill()
            raise

    def send(self, request: dict) -> None:
        """Sends a request without its id; collect() waits for the answers."""
        self.last_id += 1
        line = json.dumps({"id": self.last_id, **request}).encode() + b"\n"
        self.deadline = time.monotonic() + request.get("timeout_s", 10) + GRACE_S
        for rank in self.ranks:
            rank.send(line)

    def collect(self) -> list[dict]:
        """The outcome of each rank."""
        lines = self._read_lines(max(self.deadline, time.monotonic() + 1))  # an answer that waits to be read is no hang
        return [self._outcome(rank, lines[rank]) if rank in lines else {"hang": True} for rank in self.ranks]

    def close(self) -> None:
        """The end of input, then the end of the processes."""
        for rank in self.ranks:
            try:
                rank.process.stdin.close()
            except OSError:
                pass
        deadline = time.monotonic() + ENDING_TIMEOUT_S
        for rank in self.ranks:
            try:
                rank.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self) -> None:
        for rank in self.ranks:
            rank.kill()

    def _read_lines(self, deadline: float) -> dict:
        """The next line of each rank that wrote one in time; None for a rank that ended."""
        lines = {rank: line for rank in self.ranks if (line := rank.take_line())}
        with selectors.DefaultSelector() as selector:
            for rank in self.ranks:
                if rank not in lines:
                    selector.register(rank.process.stdout, selectors.EVENT_READ, rank)
            while selector.get_map() and (events := selector.select(max(0, deadline - time.monotonic()))):
                for key, _ in events:
                    line = key.data.read()
                    if line != b"":
                        lines[key.data] = line
                        selector.unregister(key.fileobj)
        return lines

    def _read_hellos(self) -> list[dict]:
        lines = self._read_lines(time.monotonic() + HELLO_TIMEOUT_S)
        return [self._parse_hello(number, rank, lines) for number, rank in enumerate(self.ranks)]

    def _parse_hello(self, number: int, rank: Rank, lines: dict) -> dict:
        where = f"rank {number} of {self.size}"
        if rank not in lines:
            raise WorldFailed(f"{where} said no hello within {HELLO_TIMEOUT_S} s; its stderr ends in:\n"
                              f"{rank.last_words()}")
        if lines[rank] is None:
            raise WorldFailed(f"{where} ended with {rank.how_it_ended()} before its hello; its stderr ends in:\n"
                              f"{rank.last_words()}")
        try:
            hello = json.loads(lines[rank])
            if hello["hello"] != 1 or "ranks" in hello:
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise WorldFailed(f"{where}: no hello of a subject with one process per rank: {lines[rank]!r}") from None
        return hello

    def _outcome(self, rank: Rank, line: bytes | None) -> dict:
        if line is None:
            return {"crash": rank.how_it_ended(), "stderr": rank.last_words()}
        try:
            answer = json.loads(line)
            if answer["id"] != self.last_id or len(answer.keys() & {"ok", "error", "unsupported"}) != 1:
                raise ValueError
            if "error" in answer:
                return {"error": answer["error"]["kind"], "message": answer["error"].get("message", "")}
        except (ValueError, KeyError, TypeError):
            return {"protocol": line.decode(errors="replace")}
        return {"ok": answer["ok"]} if "ok" in answer else {"unsupported": answer["unsupported"]}
