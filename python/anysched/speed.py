"""What Python costs: `anysched.run` beside the command, and policies written in Python beside Rust.

python speed.py COMMAND [EXPERIMENT] [ROUNDS]

COMMAND is the program `anysched`, built as the wheel was. Both make the same runs by turns, in
processes of their own; what is told is the median of the rounds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import anysched

sys.path.insert(0, str(Path(__file__).parent / "tests"))

ROOT = Path(__file__).resolve().parents[2]
IN_PYTHON = "import sys, anysched; anysched.run(sys.argv[1]).json()"


def seconds(words: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def of_run(command: str, experiment: str, rounds: int) -> None:
    by_command = [command, "run", experiment, "--format", "json"]
    by_python = [sys.executable, "-c", IN_PYTHON, experiment]
    seconds(by_python)
    pairs = [(seconds(by_command), seconds(by_python)) for _ in range(rounds)]
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(python / command for command, python in pairs)
    start = statistics.median(
        seconds([sys.executable, "-c", "import anysched"]) for _ in range(rounds)
    )
    print(f"{experiment}, {rounds} rounds")
    print(f"  the command        {ours:7.3f} s")
    print(f"  a Python process   {theirs:7.3f} s, {100 * (ratio - 1):+.1f} %")
    print(f"  of which starting  {start:7.3f} s, Python and the import")


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
            started = time.perf_counter()
            result = anysched.run(experiment)
            took.append(time.perf_counter() - started)
        return statistics.median(took) / result.rows[0]["dispatches"].mean * 1e9

    print("ns per dispatch, simulation and all")
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
