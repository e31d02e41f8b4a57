"""Sweeps on a Dask cluster of several processes."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import anysched
import pytest
from rules import ShortestFirst

distributed = pytest.importorskip("distributed", reason="sweeps need distributed")
pytestmark = [
    pytest.mark.cluster,
    # Of Dask's own, when its processes end.
    pytest.mark.filterwarnings("ignore"),
]

EXPERIMENT = {
    "question": "?",
    "machine": {"cpus": 2},
    "workload": [{"kind": "open", "service": "exp(5ms)", "load": 0.7, "tasks": 300}],
    "sweep": {"policy": ["rr", "eevdf", "sjf"], "machine.cpus": [1, 2, 4], "seeds": 40},
}


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def files(result: anysched.Result, folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in result.write(folder)}


def test_a_sweep_under_kills_is_the_run(cluster, tmp_path):
    alone = files(anysched.run(EXPERIMENT), tmp_path / "alone")
    over, killed = threading.Event(), []

    def kill() -> None:
        chance = random.Random(1)
        while not over.wait(0.7):
            workers = list(cluster.workers.values())
            pids = [worker.pid for worker in workers if worker.pid]
            pid = chance.choice(pids)
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    told: list[tuple[int, int]] = []
    thread = threading.Thread(target=kill, daemon=True)

    def progress(back: int, total: int) -> None:
        if not told:
            thread.start()
        told.append((back, total))
        # So that workers are killed while there is something to lose.
        time.sleep(0.05)

    try:
        with distributed.Client(cluster) as client:
            result = anysched.sweep(EXPERIMENT, client, runs_a_unit=4, progress=progress)
    finally:
        over.set()
    thread.join()
    assert killed, "some were killed"
    assert told[-1] == (360, 360) and len(told) == 90, "no unit came back twice"
    assert files(result, tmp_path / "cluster") == alone


def test_a_sweep_goes_on_in_its_folder(cluster, tmp_path):
    class Enough(Exception):
        pass

    def stop(back: int, total: int) -> None:
        if back >= 100:
            raise Enough

    folder = tmp_path / "units"
    address = cluster.scheduler_address
    with pytest.raises(Enough):
        anysched.sweep(EXPERIMENT, address, runs_a_unit=10, folder=folder, progress=stop)
    kept = len(list(folder.glob("*.runs")))
    assert 10 <= kept < 36
    told: list[int] = []
    result = anysched.sweep(
        EXPERIMENT, address, runs_a_unit=10, folder=folder,
        progress=lambda back, total: told.append(back),
    )  # fmt: skip
    assert len(told) == 36 - kept
    assert result.json() == anysched.run(EXPERIMENT).json()
    # Another experiment has other units.
    other = {**EXPERIMENT, "seed": 2}
    assert anysched.sweep(other, address, folder=folder).json() == anysched.run(other).json()


def test_policies_in_python_go_to_the_workers(cluster):
    class Mine(ShortestFirst):
        quantum = "3ms"

    swept = {**EXPERIMENT, "sweep": {"policy": ["sjf", Mine], "seeds": 6}}
    result = anysched.sweep(swept, cluster.scheduler_address, runs_a_unit=2)
    assert result.json() == anysched.run(swept).json()


def test_errors_come_back(cluster):
    class Broken(ShortestFirst):
        def key(self, task):
            raise LookupError("here")

    swept = {**EXPERIMENT, "sweep": {"policy": [Broken]}}
    with pytest.raises(anysched.PolicyError, match="raised LookupError: here"):
        anysched.sweep(swept, cluster.scheduler_address)


def test_a_scheduler_that_is_not_there_is_said():
    with pytest.raises(anysched.UsageError, match="there is no scheduler at tcp://127.0.0.1:9"):
        anysched.sweep(EXPERIMENT, "tcp://127.0.0.1:9", patience=0.1)
