"""What a cluster costs: a sweep on workers of this machine beside `anysched.run` on its cores.

python cluster_speed.py [WORKERS] [SEEDS]

The same runs are made by `run`, by `sweep` on so many worker processes, and by `sweep` while one of
them is killed every few seconds. Results have to be the same bytes each time.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time

import anysched
import distributed

SEEDS = 500
"""Of four rows: 2000 runs."""

PAUSE = 5.0
"""Seconds between kills."""


def experiment(seeds: int) -> dict[str, object]:
    load = {"kind": "open", "service": "exp(5ms)", "load": 0.8, "tasks": 20_000}
    return {
        "question": "?",
        "machine": {"cpus": 4},
        "workload": [load],
        "sweep": {"policy": ["rr", "eevdf"], "machine.cpus": [2, 4], "seeds": seeds},
    }


def killer(cluster: distributed.LocalCluster, over: threading.Event, killed: list[int]) -> None:
    chance = random.Random(1)
    while not over.wait(PAUSE):
        # One that starts again has no process yet.
        if pids := [worker.pid for worker in cluster.workers.values() if worker.pid]:
            killed.append(chance.choice(pids))
            os.kill(killed[-1], signal.SIGKILL)


def main(workers: int, seeds: int) -> None:
    swept = experiment(seeds)
    started = time.perf_counter()
    alone = anysched.run(swept)
    local = time.perf_counter() - started
    runs = 4 * seeds
    print(f"{runs} runs on {os.cpu_count()} cores: {local:.1f} s")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # Workers have to have started, and to have read the package.
        anysched.sweep(experiment(workers), client, runs_a_unit=1)
        for kills in (False, True):
            over, killed = threading.Event(), list[int]()
            thread = threading.Thread(target=killer, args=(cluster, over, killed), daemon=True)
            if kills:
                thread.start()
            started = time.perf_counter()
            result = anysched.sweep(swept, client)
            took = time.perf_counter() - started
            over.set()
            if kills:
                thread.join()
            if (result.csv(), result.json()) != (alone.csv(), alone.json()):
                raise SystemExit("the results differ")
            print(
                f"{workers} workers, {len(killed)} killed: {took:.1f} s, "
                f"{100 * local / took:.0f} % of the cores' pace"
            )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 4,
        int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS,
    )
