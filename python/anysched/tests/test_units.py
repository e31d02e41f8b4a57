"""How sweeps part runs, without a cluster."""

from __future__ import annotations

from anysched.experiment import given
from anysched.sweep import _units

EXPERIMENT = {
    "question": "?",
    "machine": {"cpus": 1},
    "workload": [{"kind": "batch", "tasks": 3, "service": "exp(2ms)"}],
    "sweep": {"policy": ["rr", "sjf"], "seeds": 50},
}


def parts(ranges: list[range], size: int | tuple[int, int]) -> list[tuple[int, int]]:
    units = _units(given(EXPERIMENT).plan(), ranges, size)
    assert len({unit.name for unit in units}) == len(units)
    return [(unit.start, unit.stop) for unit in units]


def test_units_have_all_runs_once():
    ranges = [range(3, 41), range(50, 51), range(60, 100)]
    for size in [1, 7, 100, (8, 2), (30, 7)]:
        runs = [run for start, stop in parts(ranges, size) for run in range(start, stop)]
        assert runs == [run for part in ranges for run in part]


def test_the_last_units_are_smaller():
    assert parts([range(80)], 30) == [(0, 30), (30, 60), (60, 80)]
    found = parts([range(80)], (20, 5))
    assert found == [(0, 20), (20, 40), (40, 60), (60, 65), (65, 70), (70, 75), (75, 80)]
