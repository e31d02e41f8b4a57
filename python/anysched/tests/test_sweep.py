"""Sweeps on a Dask cluster of several processes."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def processes(port: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A scheduler and two workers, as somebody starts them; what is left of them ends here."""
    address, local = f"tcp://127.0.0.1:{port}", ["--host", "127.0.0.1", "--no-dashboard"]
    dask = [sys.executable, "-m", "distributed.cli"]
    scheduler = [f"{dask[2]}.dask_scheduler", "--port", str(port), *local]
    worker = [f"{dask[2]}.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started = [
        subprocess.Popen([*dask[:2], *words], stderr=subprocess.DEVNULL)
        for words in (scheduler, worker, worker)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_scheduler_that_is_lost_and_comes_back(tmp_path):
    port = free_port()
    told: list[int] = []
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(processes(port))

        def restart(back: int, total: int) -> None:
            told.append(back)
            if len(told) == 5:
                for process in first:
                    process.kill()
                    process.wait()
                stack.enter_context(processes(port))

        folder = tmp_path / "units"
        result = anysched.sweep(
            EXPERIMENT, f"tcp://127.0.0.1:{port}", runs_a_unit=4, folder=folder, progress=restart
        )
    assert told == list(range(4, 364, 4)), "no unit came back twice"
    assert len(list(folder.glob("*.runs"))) == 90
    assert result.json() == anysched.run(EXPERIMENT).json()


def by_command(file: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.environ["ANYSCHED"], "run", str(file), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "ANYSCHED_PYTHON": sys.executable, **more},
    )


@pytest.mark.skipif("ANYSCHED" not in os.environ, reason="ANYSCHED names the command to try")
def test_the_command_runs_on_a_cluster(cluster, tmp_path):
    experiment = anysched.Experiment.of(EXPERIMENT)
    file = tmp_path / "swept.toml"
    file.write_text(experiment.text)
    on = f"dask:{cluster.scheduler_address}"
    changed = ["--policy", "rr,sjf", "--set", "rr.quantum=2ms", "--seeds", "5", "--by", "workload"]
    changed += ["--sweep", "workload.0.load=0.5,0.8"]
    alone, there = tmp_path / "alone", tmp_path / "there"
    for folder, options in ((alone, []), (there, ["--on", on])):
        done = by_command(file, *changed, "--out", str(folder), *options)
        assert done.returncode == 0, done.stderr
    written = {path.name: path.read_bytes() for path in alone.iterdir()}
    assert written == {path.name: path.read_bytes() for path in there.iterdir()}
    assert "swept.json" in written and "swept.runs" not in written


@pytest.mark.skipif("ANYSCHED" not in os.environ, reason="ANYSCHED names the command to try")
def test_the_command_says_what_is_missing(cluster, tmp_path):
    file = tmp_path / "swept.toml"
    file.write_text(anysched.Experiment.of(EXPERIMENT).text)
    on = ["--on", f"dask:{cluster.scheduler_address}"]
    nowhere = by_command(file, *on, ANYSCHED_PYTHON="/nonesuch")
    assert nowhere.returncode == 1
    assert "/nonesuch: No such file" in nowhere.stderr and "ANYSCHED_PYTHON" in nowhere.stderr
    elsewhere = by_command(file, *on, "--host", "arceos")
    assert "workers run sim only, not arceos" in elsewhere.stderr
    wrong = by_command(file, "--on", "10.0.0.1:8786")
    assert "dask:tcp://HOST:PORT" in wrong.stderr
