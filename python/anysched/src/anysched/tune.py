"""Searches for parameters by Optuna."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import UsageError
from .experiment import Experiment, Given, given
from .policy import ns
from .result import Result, Row

if TYPE_CHECKING:
    import optuna

__all__ = ["Space", "tune"]

Space: TypeAlias = tuple[float, float] | tuple[str, str] | Sequence[str | int | float | bool]
"""What a value is searched in: from a number or a time to another (a tuple of two; times with
their units), or one of several (a list)."""

_LOG_FROM = 10
"""A range whose end is so many times its beginning is searched by its logarithm."""


def tune(
    experiment: Given,
    spaces: Mapping[str, Space],
    *,
    minimize: str | Sequence[str],
    policy: str | None = None,
    trials: int = 50,
    seed: int = 1,
    sampler: optuna.samplers.BaseSampler | None = None,
    pruner: optuna.pruners.BasePruner | None = None,
    prune_by: int | None = None,
    run: Callable[[Experiment], Result] | None = None,
) -> optuna.Study:
    """Searches the values with which a policy does best on an experiment.

    experiment: with one policy, or `policy` names one of its labels. spaces: what is searched, by
    key as in `settings`: `{"quantum": ("100us", "100ms"), "machine.cpus": [2, 4]}`. minimize: a
    column of runs, `turnaround_ns_mean`, or several, as a mean and a tail, of which the trade-offs
    are searched. trials: how many values are tried. seed: of the search. sampler: Optuna's; by
    default TPE. pruner: gives up trials that do badly with the first `prune_by` seeds; only with
    one column. run: how an experiment is run, for example on a cluster:
    `lambda experiment: anysched.sweep(experiment, client)`.

    Returns Optuna's study: `best_trial`, or `best_trials` of several columns. What a trial has
    tried is in its `user_attrs["settings"]`, as the experiment takes it; in its `params` times are
    numbers of ns.
    """
    try:
        import optuna
    except ImportError as error:
        raise UsageError("there is no Optuna here; pip install optuna") from error
    chosen = given(experiment)
    if policy is not None:
        chosen = chosen.with_policies(policy)
    labels = chosen.plan().policies
    if len(labels) != 1:
        known = ", ".join(labels)
        raise UsageError(f"one policy is tuned at a time: say which, policy=…, of {known}")
    columns = [minimize] if isinstance(minimize, str) else list(minimize)
    make = run or Experiment.run
    seeds = chosen.plan().seeds
    if pruner is not None and (len(columns) > 1 or prune_by is None or not 0 < prune_by < seeds):
        raise UsageError(
            f"a pruner needs one column, and prune_by, fewer seeds than the {seeds} of the "
            "experiment"
        )

    def objective(trial: optuna.Trial) -> list[float]:
        values = {key: _suggest(trial, key, space) for key, space in spaces.items()}
        trial.set_user_attr("settings", values)
        tried = chosen.with_settings(values)
        if pruner is not None and prune_by is not None:
            trial.report(_means(make(tried.with_seeds(prune_by)), columns)[0], step=0)
            if trial.should_prune():
                raise optuna.TrialPruned
        return _means(make(tried), columns)

    study = optuna.create_study(
        directions=["minimize"] * len(columns),
        sampler=sampler or optuna.samplers.TPESampler(seed=seed),
        pruner=pruner,
    )
    study.optimize(objective, n_trials=trials)
    return study


def _means(result: Result, columns: Sequence[str]) -> list[float]:
    """Each column, over seeds, and over rows if there are several."""
    means = []
    for column in columns:
        numbers = [_value(row, column) for row in result.rows]
        means.append(sum(numbers) / len(numbers))
    return means


def _value(row: Row, column: str) -> float:
    """A column of a row: a metric that is one number, or a metric with what of it."""
    metric, _, stat = column.rpartition("_")
    if column in row.metrics:
        metric, stat = column, "mean"
    number: float | None = getattr(row.metrics.get(metric), stat, None)
    if number is None:
        known = ", ".join(row.metrics)
        raise UsageError(
            f'"{column}" was not measured: a column is a metric, with _mean, _p99 or such if it is '
            f"a distribution; there are {known}"
        )
    return number


def _suggest(trial: optuna.Trial, key: str, space: Space) -> Any:
    if not isinstance(space, tuple):
        return trial.suggest_categorical(key, list(space))
    low, high = space
    if isinstance(low, str) and isinstance(high, str):
        first, last = ns(low), ns(high)
        return f"{trial.suggest_int(key, first, last, log=_is_wide(first, last))}ns"
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(key, low, high, log=_is_wide(low, high))
    return trial.suggest_float(key, low, high, log=_is_wide(low, high))


def _is_wide(low: Any, high: Any) -> bool:
    return bool(low > 0 and high >= _LOG_FROM * low)
