"""Experiments made in Python."""

from __future__ import annotations

import tomllib

import anysched
import pytest
from anysched import loads, policies, spec
from rules import ShortestFirst


def test_a_made_experiment_is_the_file(experiments):
    path = experiments / "classroom/e2-shortest-first.toml"
    says = tomllib.loads(path.read_text())
    times = [(0, "8ms"), ("1ms", "4ms"), ("2ms", "9ms"), ("3ms", "5ms")]
    made = spec.Experiment(
        question=says["question"],
        title=says["title"],
        machine=spec.Machine(cpus=1),
        workload=[
            loads.Batch(name=f"P{number}", tasks=1, at=at or None, service=service)
            for number, (at, service) in enumerate(times, start=1)
        ],
        sweep=spec.Sweep(policy=["sjf", policies.srpt()]),
        report=spec.Report(columns=says["report"]["columns"]),
        claim=[spec.Claim(**claim) for claim in says["claim"]],
    )
    assert anysched.Experiment.of(made).to_dict() == {
        **says, "sweep": {"policy": ["sjf", {"name": "srpt"}]},
    }  # fmt: skip
    result = anysched.run(made)
    assert [claim.verdict for claim in result.claims] == ["holds", "holds"]
    assert [row.metrics for row in result] == [row.metrics for row in anysched.run(path)]


def test_axes_scenarios_and_classes_fit_together():
    made = spec.Experiment(
        question="?",
        machine=spec.Machine(cpus=2, migration=spec.Migration(llc="10us")),
        scenario=[
            spec.Scenario(name=f"load {load}", workload=[
                loads.Open(service="exp(5ms)", load=load, tasks=50),
            ])
            for load in (0.3, 0.6)
        ],
        sweep=spec.Sweep(
            policy=[policies.mlfq_arceos(label="mlfq"), ShortestFirst],
            axes={"machine.cpus": [1, 2]},
            seeds=2,
        ),
    )  # fmt: skip
    result = anysched.run(made)
    assert len(result.rows) == 2 * 2 * 2
    assert result.rows[0].axes == {"scenario": "load 0.3", "machine.cpus": 1}
    assert {row.policy for row in result} == {"mlfq", "ShortestFirst (Python)"}


def test_every_kind_and_policy_has_its_maker():
    assert len(loads.__all__) >= 25 and len(policies.__all__) >= 30
    for name in policies.__all__:
        table = getattr(policies, name)(label="x")
        # Schedulers of virtual machines need more than this machine has, but all have their name.
        assert table["name"].replace("-", "_") == name
    for name in loads.__all__:
        assert getattr(loads, name)().to_dict() == getattr(loads, name)._fixed


def test_a_slip_is_shown_by_python_itself():
    with pytest.raises(TypeError, match="quantun"):
        policies.rr(quantun="1ms")
    with pytest.raises(TypeError, match="cpu"):
        spec.Machine(cpu=1)


def test_changes_are_kept_apart():
    base = anysched.Experiment.of(
        {
            "question": "?",
            "machine": {"cpus": 1},
            "workload": [{"kind": "batch", "tasks": 3, "service": "1ms"}],
            "policy": ["rr", "fcfs"],
        },
        name="mine",
    )
    changed = base.with_policies("rr").with_settings({"workload.0.tasks": 5}).with_seeds(2)
    assert (base.plan().runs, changed.plan().runs) == (2, 2)
    assert base.run().rows[0]["tasks"].mean == 3
    assert changed.run().rows[0]["tasks"].mean == 5
    assert changed.run().experiment == "mine"
    assert changed.plan().spec_hash != base.plan().spec_hash
    with pytest.raises(anysched.UsageError, match="Experiment.parse"):
        anysched.run('question = "?"\n')
