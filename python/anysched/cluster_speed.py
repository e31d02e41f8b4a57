"""What a cluster costs: a sweep on workers of this machine beside `anysched.run` on its cores.

python cluster_speed.py [WORKERS] [SEEDS]

The same runs are made by `sweep` on so many worker processes: as Dask starts them, without what Dask
measures of them for its dashboard, and so while one of them is killed now and then. Before and
after each, `run` makes them on all cores; what is told is the pace beside the mean of these two.
Results have to be the same bytes each time.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import anysched
import dask
import distributed

SEEDS = 500
"""Of four rows: 2000 runs."""

PAUSE = 15.0
"""Mean seconds between kills."""

QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
}
"""Of what Dask measures of its workers, it looks at the stacks of all threads every 10 ms."""


def experiment(seeds: int) -> dict[str, object]:
    load = {"kind": "open", "service": "exp(5ms)", "load": 0.8, "tasks": 40_000}
    return {
        "question": "?",
        "machine": {"cpus": 4},
        "workload": [load],
        "sweep": {"policy": ["rr", "eevdf"], "machine.cpus": [2, 4], "seeds": seeds},
    }


def killer(cluster: distributed.LocalCluster, over: threading.Event, killed: list[int]) -> None:
    chance = random.Random(1)
    while not over.wait(chance.expovariate(1 / PAUSE)):
        # One that starts again has no process yet.
        if pids := [worker.pid for worker in cluster.workers.values() if worker.pid]:
            killed.append(chance.choice(pids))
            os.kill(killed[-1], signal.SIGKILL)


def seconds(work: Callable[[], anysched.Result]) -> tuple[float, anysched.Result]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def forms(result: anysched.Result) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return {path.name: path.read_bytes() for path in result.write(folder)}


def on_cluster(
    swept: dict[str, object], workers: int, kills: bool
) -> tuple[float, int, anysched.Result]:
    """How long a sweep takes, how many workers are lost meanwhile, and what it gives."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # Workers have to have started, and to have read the package.
        anysched.sweep(experiment(workers), client, runs_a_unit=1)
        over, killed = threading.Event(), list[int]()
        thread = threading.Thread(target=killer, args=(cluster, over, killed), daemon=True)
        if kills:
            thread.start()
        took, result = seconds(lambda: anysched.sweep(swept, client))
        over.set()
        if kills:
            thread.join()
        return took, len(killed), result


def main(workers: int, seeds: int) -> None:
    swept = experiment(seeds)
    before, alone = seconds(lambda: anysched.run(swept))
    print(f"{4 * seeds} runs on {os.cpu_count()} cores: {before:.1f} s")
    for what, settings, kills in (
        ("as Dask starts them", {}, False),
        ("without Dask's monitors", QUIET, False),
        ("without Dask's monitors", QUIET, True),
    ):
        with dask.config.set(settings):
            took, killed, result = on_cluster(swept, workers, kills)
        if forms(result) != forms(alone):
            raise SystemExit("the results differ")
        after, _ = seconds(lambda: anysched.run(swept))
        pace = 100 * (before + after) / 2 / took
        print(
            f"{workers} workers {what}, {killed} killed: {took:.1f} s, {pace:.0f} % of the pace of "
            f"the cores ({before:.1f} s before, {after:.1f} s after)"
        )
        before = after


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 4,
        int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS,
    )
