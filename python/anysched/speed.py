"""What Python costs: `anysched.run` beside the command, and policies written in Python beside Rust.

python speed.py COMMAND [EXPERIMENT] [ROUNDS]

COMMAND is the program `anysched`, built as the wheel was. Both make the same runs by turns, in
processes of their own; what is told is the median of the rounds.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import anysched

sys.path.insert(0, str(Path(__file__).parent / "tests"))

ROOT = Path(__file__).resolve().parents[2]
IN_PYTHON = "import sys, anysched; anysched.run(sys.argv[1]).json()"


def seconds(words: list[str]) -> tuple[float, float]:
    """How long a command takes, and how much CPU time it uses."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_run(command: str, experiment: str, rounds: int) -> None:
    by_command = [command, "run", experiment, "--format", "json"]
    by_python = [sys.executable, "-c", IN_PYTHON, experiment]
    starting = [sys.executable, "-c", "import anysched"]
    seconds(by_python)
    made = [[seconds(words) for words in (by_command, by_python, starting)] for _ in range(rounds)]
    print(f"{experiment}, {rounds} rounds")
    for place, what in enumerate(("s", "s of CPU time")):
        command_s, python_s, start_s = (
            statistics.median(row[side][place] for row in made) for side in range(3)
        )
        more = statistics.median(row[1][place] / row[0][place] - 1 for row in made)
        print(
            f"  the command {command_s:.3f} {what}; a Python process {python_s:.3f}, "
            f"{100 * more:+.1f} %, of which {start_s:.3f} start Python and the package"
        )


def of_policies(rounds: int) -> None:
    from rules import RoundRobin, ShortestFirst

    def per_dispatch(policy: object) -> float:
        experiment = {
            "question": "?",
            "machine": {"cpus": 1},
            "workload": [{"kind": "open", "service": "exp(5ms)", "load": 0.9, "tasks": 20_000}],
            "policy": [policy],
        }
        took = []
        for _ in range(rounds):
            started = time.process_time()
            result = anysched.run(experiment)
            took.append(time.process_time() - started)
        return statistics.median(took) / result.rows[0]["dispatches"].mean * 1e9

    print("ns of CPU time per dispatch, simulation and all")
    for name, native, python in (
        ("rr", {"name": "rr", "quantum": "1ms"}, RoundRobin.using(quantum="1ms")),
        ("sjf", "sjf", ShortestFirst),
    ):
        rust, ours = per_dispatch(native), per_dispatch(python)
        print(f"  {name:4} in Rust {rust:7.0f}, in Python {ours:7.0f}, {ours / rust:.0f} times")


if __name__ == "__main__":
    command = sys.argv[1]
    chosen = sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "experiments" / "quickstart.toml")
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    of_run(command, chosen, count)
    of_policies(count)
