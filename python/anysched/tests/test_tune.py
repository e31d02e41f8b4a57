"""Searches by Optuna."""

from __future__ import annotations

import anysched
import pytest

optuna = pytest.importorskip("optuna", reason="searches need optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

# A switch takes 100 us: with short quanta little else is done.
EXPERIMENT = {
    "question": "?",
    "machine": {"cpus": 1, "context_switch": "100us"},
    "workload": [
        {"kind": "open", "service": "hyperexp(5ms, cv2=6)", "load": 0.7, "tasks": 300},
    ],
    "sweep": {"policy": ["rr", "fcfs"], "seeds": 3},
}
QUANTUM = {"quantum": ("150us", "1s")}


def mean(quantum: str) -> float:
    result = anysched.run(EXPERIMENT, policies=["rr"], settings={"quantum": quantum})
    return result.rows[0]["turnaround_ns"].mean


def test_a_quantum_is_found_and_the_search_repeats():
    def search() -> optuna.Study:
        return anysched.tune(
            EXPERIMENT, QUANTUM, policy="rr", minimize="turnaround_ns_mean", trials=15
        )

    study = search()
    assert study.best_value == mean(f"{study.best_params['quantum']}ns")
    assert study.best_value < min(mean("150us"), mean("1s"))
    assert [trial.value for trial in study.trials] == [trial.value for trial in search().trials]


def test_trade_offs_of_mean_and_tail():
    study = anysched.tune(
        EXPERIMENT, QUANTUM, policy="rr",
        minimize=["turnaround_ns_mean", "context_switches"], trials=10,
    )  # fmt: skip
    front = sorted(tuple(trial.values) for trial in study.best_trials)
    assert all(a[1] > b[1] for a, b in zip(front, front[1:], strict=False)), front


def test_pruned_trials_have_made_fewer_runs():
    runs = []

    def run(experiment: anysched.Experiment) -> anysched.Result:
        runs.append(experiment.plan().seeds)
        return experiment.run()

    study = anysched.tune(
        EXPERIMENT, QUANTUM, policy="rr", minimize="turnaround_ns_mean", trials=12, prune_by=1,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3), run=run,
    )  # fmt: skip
    pruned = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    assert pruned and runs.count(1) == 12 and runs.count(3) == 12 - len(pruned)


def test_choices_and_numbers_are_searched():
    study = anysched.tune(
        EXPERIMENT,
        {"machine.cpus": (1, 4), "quantum": ["1ms", "2ms"], "workload.0.load": (0.5, 0.9)},
        policy="rr", minimize="turnaround_ns_p99", trials=4,
    )  # fmt: skip
    for trial in study.trials:
        assert trial.params["machine.cpus"] in range(1, 5)
        assert trial.params["quantum"] in ("1ms", "2ms")
        assert 0.5 <= trial.params["workload.0.load"] <= 0.9


def test_slips_are_said():
    with pytest.raises(anysched.UsageError, match="of rr, fcfs"):
        anysched.tune(EXPERIMENT, QUANTUM, minimize="turnaround_ns_mean")
    with pytest.raises(anysched.UsageError, match="was not measured: a column is a metric"):
        anysched.tune(EXPERIMENT, QUANTUM, policy="rr", minimize="tardiness_ns_p99", trials=1)
    with pytest.raises(anysched.ExperimentError, match="quantun"):
        anysched.tune(
            EXPERIMENT, {"quantun": [1]}, policy="rr", minimize="turnaround_ns_mean", trials=1
        )
