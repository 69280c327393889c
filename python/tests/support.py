"""Runs scripts under the simulator, as a user does, for the tests."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = os.environ.get("LOCKSTEP_PROGRAM") or shutil.which("lockstep")
SCRIPTS = pathlib.Path(__file__).parent / "scripts"
PACKAGE = pathlib.Path(PROGRAM).resolve().parents[1] / "python"
# torch leaves files behind: torchrun always, others when they are ended.
_TORCH_FOLDER = tempfile.TemporaryDirectory(prefix="torch-")


@dataclasses.dataclass
class Run:
    code: int
    output: str  # of the ranks, labelled
    verdict: dict

    def rank(self, number):
        """What the verdict says of a rank."""
        return next(rank for rank in self.verdict["ranks"] if rank["rank"] == number)


def environment(**changes):
    variables = {name: value for name, value in os.environ.items() if name not in ("LOCKSTEP_SIM", "LOCKSTEP_SIM_SPEC")}
    variables.update(OMP_NUM_THREADS="1", TMPDIR=_TORCH_FOLDER.name, CUDA_VISIBLE_DEVICES="")
    variables.update(changes)
    return variables


def simulate(command, ranks=2, options=(), **changes):
    """`lockstep sim` of a command; without ranks it is started once and starts them itself."""
    number = [] if ranks is None else ["-n", str(ranks)]
    done = subprocess.run([PROGRAM, "sim", "--json", *number, *options, "--", *map(str, command)], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, env=environment(**changes), timeout=240)
    try:
        verdict = json.loads(done.stdout)
    except ValueError as error:
        raise AssertionError(f"no verdict on stdout ({error}): {done.stdout}\n{done.stderr}") from error
    return Run(done.returncode, done.stderr, verdict)


def plain(command, **changes):
    """A command without us; its output and errors as one text."""
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=environment(**changes), timeout=240)


def torchrun(ranks, script):
    """A command that starts a script on so many ranks, without us."""
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), str(script)]


class ScriptTest(unittest.TestCase):
    """A test with a folder for scripts, which is gone after it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def script(self, text, name="train.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text).lstrip())
        return path

    def run_script(self, text, ranks=2, options=(), **changes):
        return simulate([sys.executable, self.script(text)], ranks, options, **changes)
