"""How long a 2-rank training step takes, against PyTorch's DDP and against Accelerate in Python: step_time.py PROGRAM
[ROUNDS]. PROGRAM is training_step. The three run one after the other in every round, so that a drift of the machine hits
all alike. Ends with 1 if the upper end of a ratio's 95 % interval is above its limit (docs/benchmarks.md)."""

import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys

STEPS, RANKS = 200, 2
LIMITS = {"ddp": 0.85, "accelerate": 0.35}
SCRIPT = pathlib.Path(__file__).with_name("mlp_step.py")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def seconds_per_step(command):
    """Of all ranks the slowest one's."""
    port = str(free_port())
    ranks = []
    for rank in range(RANKS):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS}
        environment = os.environ | {name: str(value) for name, value in place.items()}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "1"}
        ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise RuntimeError(f"{' '.join(map(str, command))} failed")
    return max(float(output.split()[-1]) for output in outputs)


def interval(ratios):
    """Of the geometric mean, with 95 % confidence: Student's t for 20 rounds and more is 2.09 or less."""
    logs = [math.log(ratio) for ratio in ratios]
    middle, half = statistics.mean(logs), 2.09 * statistics.stdev(logs) / math.sqrt(len(logs))
    return [math.exp(value) for value in (middle - half, middle, middle + half)]


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    ours = [program, "--loop", "accelerator", "--steps", str(STEPS)]
    theirs = {name: [sys.executable, SCRIPT, name, str(STEPS)] for name in LIMITS}
    times = {name: [] for name in ("lockstep", *LIMITS)}
    for _ in range(rounds):
        times["lockstep"].append(seconds_per_step(ours))
        for name, command in theirs.items():
            times[name].append(seconds_per_step(command))
    is_well = True
    print(f"lockstep: {statistics.median(times['lockstep']) * 1e3:.2f} ms per step")
    for name, limit in LIMITS.items():
        low, middle, high = interval([own / other for own, other in zip(times["lockstep"], times[name])])
        print(f"{name}: {statistics.median(times[name]) * 1e3:.2f} ms per step; lockstep takes {middle:.3f} of it, "
              f"95 % interval {low:.3f} to {high:.3f}, limit {limit}")
        is_well = is_well and high <= limit
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
