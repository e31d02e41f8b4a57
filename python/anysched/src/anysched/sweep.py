"""Experiments with many runs, on the workers of a Dask cluster."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core
from ._changes import Changes
from .errors import Error, UsageError
from .experiment import Experiment, Given, given
from .result import Result, Source

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["sweep"]

_log = logging.getLogger("anysched")

_UNITS_A_WORKER = 16
"""So many units each worker gets at least, so that little is lost with one."""

_LAST = 4
"""The last units, so large a part of all runs, are smaller by as much: none waits long for them."""

_Sizes = tuple[int, int]
"""Runs of most units, and of the last."""

_MOST_LOSSES = 100
"""So often units are handed out again, before something is wrong with them."""

_PATIENCE = 60.0
"""For so many seconds a scheduler that is gone is waited for."""


def sweep(
    experiment: Given,
    client: Client | str,
    *,
    runs_a_unit: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
    patience: float = _PATIENCE,
) -> Result:
    """Runs an experiment on a Dask cluster; the result is, to the byte, that of `run`.

    The runs are handed out in units, whose names derive from what they compute: one that is
    computed twice, because a worker was lost, counts once, and one that the cluster still has is
    not computed again. When the scheduler is lost, the units that are not back are handed out again
    once there is one.

    client: a client, or the address of a scheduler. runs_a_unit: how many runs a unit has; chosen
    by how many there are. folder: where units are kept as they come back; a sweep that is begun
    again there goes on with what is missing. progress: is told how many runs are back, of how many.
    patience: for how many seconds a scheduler that is gone is waited for.

    Workers need this version of the package, and the files that the experiment names at the same
    paths.
    """
    chosen = given(experiment)
    plan = chosen.plan()
    cluster = _Cluster(client, patience)
    total = plan.runs
    units = _units(plan, [range(total)], runs_a_unit or cluster.units_of(total))
    store = _Store(None if folder is None else Path(folder))
    parts = {unit: part for unit in units if (part := store.get(unit)) is not None}
    back = sum(len(unit) for unit in parts)
    missing = [unit for unit in units if unit not in parts]
    with cluster:
        for unit, part in cluster.compute(_Job(chosen, plan.spec_hash), missing):
            store.put(unit, part)
            parts[unit] = part
            back += len(unit)
            if progress is not None:
                progress(back, total)
    results = plan.collect([parts[unit] for unit in units])
    return Result._of(plan, results, Source(chosen.text, chosen.path, chosen.changes))


def stream(
    experiment: Experiment, client: Client | str, spec_hash: str, missing: Sequence[range]
) -> Iterator[bytes]:
    """Makes these runs of an experiment on a cluster, and yields them as they come back, in lines.

    spec_hash: of the experiment as the caller reads it.
    """
    plan = experiment.plan()
    if plan.spec_hash != spec_hash:
        raise UsageError(
            "the package reads another experiment than the command; both have to be of one version"
        )
    cluster = _Cluster(client, _PATIENCE)
    units = _units(plan, missing, cluster.units_of(sum(map(len, missing))))
    with cluster:
        for _, part in cluster.compute(_Job(experiment, spec_hash), units):
            yield part


def _units(plan: _core.Plan, ranges: Sequence[range], size: int | _Sizes) -> list[_Unit]:
    """All these runs, in order. size: of all units, or of most and of the last."""
    most, last = (size, size) if isinstance(size, int) else size
    left = sum(map(len, ranges))
    smaller = left // _LAST
    units = []
    for runs in ranges:
        start = runs.start
        while start < runs.stop:
            stop = min(start + (most if left > smaller else last), runs.stop)
            units.append(_Unit.of(plan, start, stop))
            left -= stop - start
            start = stop
    return units


class _Unit:
    """Runs of an experiment, and the name of what they show."""

    def __init__(self, start: int, stop: int, name: str) -> None:
        self.start, self.stop, self.name = start, stop, name

    @classmethod
    def of(cls, plan: _core.Plan, start: int, stop: int) -> _Unit:
        what = (_program(), plan.experiment, plan.spec_hash, plan.seed, plan.seeds, start, stop)
        return cls(start, stop, hashlib.sha256(repr(what).encode()).hexdigest())

    def __len__(self) -> int:
        return self.stop - self.start

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unit) and self.name == other.name


@cache
def _program() -> str:
    """Which build of the package this is: another one may decide otherwise."""
    assert _core.__file__ is not None
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()


class _Job:
    """What all units have in common."""

    def __init__(self, experiment: Experiment, spec_hash: str) -> None:
        self.text, self.path = experiment.text, str(experiment.path.absolute())
        self.changes, self.classes = experiment.changes, dict(experiment.classes)
        self.spec_hash = spec_hash
        self.program = _program()

    def plan(self) -> _core.Plan:
        for name, configured in self.classes.items():
            configured.register(name)
        return _plan(self.text, self.path, repr(self.changes), _Held(self.changes))


class _Held:
    """An argument that a cache does not look at."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)


@lru_cache(maxsize=4)
def _plan(text: str, path: str, changes: str, held: _Held) -> _core.Plan:
    return _core.Plan(text, path, held.changes)


def _compute(job: _Job, start: int, stop: int) -> bytes:
    """Makes the runs of a unit, on a worker."""
    if _program() != job.program:
        raise UsageError(
            "a worker has another build of anysched than the client; install the same wheel on both"
        )
    plan = job.plan()
    if plan.spec_hash != job.spec_hash:
        raise UsageError(
            "a worker reads another experiment than the client: the files that it names are not "
            "the same there"
        )
    return plan.part(start, stop)


class _Store:
    """Units that are back, in a folder if there is one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, unit: _Unit) -> bytes | None:
        if self.folder is None:
            return None
        try:
            return (self.folder / f"{unit.name}.runs").read_bytes()
        except FileNotFoundError:
            return None

    def put(self, unit: _Unit, part: bytes) -> None:
        if self.folder is None:
            return
        # Under another name first: a file of this name is whole.
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(part)
        os.replace(file.name, self.folder / f"{unit.name}.runs")


class _Cluster:
    """A cluster, which may lose its workers and its scheduler."""

    def __init__(self, client: Client | str, patience: float) -> None:
        try:
            import distributed
        except ImportError as error:
            raise UsageError("there is no Dask here; pip install distributed") from error
        self._distributed = distributed
        self._patience = patience
        self._losses = 0
        self._address = client if isinstance(client, str) else client.scheduler.address
        self._own: Client | None = None
        self._given = None if isinstance(client, str) else client

    def _client(self) -> Client:
        """The client that was given, while it is connected, and else one of our own."""
        if self._given is not None and self._given.status == "running":
            return self._given
        if self._own is None or self._own.status != "running":
            self._own = self._connect()
        return self._own

    def _connect(self) -> Client:
        ends = time.monotonic() + self._patience
        while True:
            try:
                return self._distributed.Client(
                    self._address, set_as_default=False, timeout="5s"
                )
            except OSError as error:
                if time.monotonic() > ends:
                    raise UsageError(
                        f"there is no scheduler at {self._address} after {self._patience:g} s: "
                        f"{error}"
                    ) from error
                time.sleep(0.5)

    def __enter__(self) -> _Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves the cluster, unless a client was given. What is under way there is given up."""
        if self._own is not None:
            self._own.close()

    def units_of(self, runs: int) -> _Sizes:
        """How many runs most units have, and the last."""
        threads: dict[str, int] = self._client().nthreads()
        most = max(1, runs // (_UNITS_A_WORKER * max(1, sum(threads.values()))))
        return most, max(1, most // _LAST)

    def compute(self, job: _Job, units: Iterable[_Unit]) -> Iterator[tuple[_Unit, bytes]]:
        """The units as they come back."""
        missing = list(units)
        while missing:
            for unit, part in self._until_loss(job, list(missing)):
                missing.remove(unit)
                yield unit, part

    def _until_loss(self, job: _Job, units: list[_Unit]) -> Iterator[tuple[_Unit, bytes]]:
        """Those that come back before workers or the scheduler are lost, if they are."""
        lost = (
            self._distributed.client.FutureCancelledError,
            self._distributed.scheduler.KilledWorker,
            OSError,
            TimeoutError,
        )
        try:
            client = self._client()
            # Each has the job with it: one that only one worker held would be lost with that.
            futures = {}
            for unit in units:
                key = f"anysched-{unit.name}"
                futures[client.submit(_compute, job, unit.start, unit.stop, key=key)] = unit
            for future in self._distributed.as_completed(futures, loop=client.loop):
                yield futures[future], future.result()
                future.release()
        except Error:
            raise
        except lost as error:
            self._losses += 1
            if self._losses > _MOST_LOSSES:
                raise
            _log.warning("lost workers or the scheduler (%s); the rest is handed out again", error)
            time.sleep(0.5)
