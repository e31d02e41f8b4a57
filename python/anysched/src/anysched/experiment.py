"""Experiments: from a file, a text, a dictionary, or made in Python."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from . import _core
from ._changes import NONE, Changes
from .errors import ExperimentError, UsageError
from .policy import Configured, Policy, RunQueue
from .result import Result, Source
from ._table import Table
from .spec import Experiment as ExperimentSpec

__all__ = ["Experiment", "Given", "PolicyLike", "run"]

PolicyLike: TypeAlias = "str | Mapping[str, Any] | type[Policy] | type[RunQueue] | Configured"
"""A policy: its name, a table with its name and parameters, one of `anysched.policies`, or a class
that is written in Python."""

Scalar: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class Experiment:
    """An experiment, ready to be checked or run.

    text: as a file would have it. path: where that file would be: its stem is the name, and files
    that the experiment names are looked for beside it.
    """

    text: str
    path: Path
    changes: Changes = field(default_factory=NONE.copy)
    classes: Mapping[str, Configured] = field(default_factory=dict)
    """Policies written in Python, by the names under which they are registered."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Experiment:
        """The experiment in a file."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ExperimentError(f"{path}: cannot be read: {error}") from error
        return cls(text, path)

    @classmethod
    def parse(
        cls, text: str, name: str = "experiment", folder: str | os.PathLike[str] = "."
    ) -> Experiment:
        """The experiment that `text` in TOML is. `folder` is where its files are looked for."""
        return cls(text, Path(folder) / f"{name}.toml")

    @classmethod
    def of(
        cls,
        experiment: Mapping[str, Any] | ExperimentSpec,
        name: str = "experiment",
        folder: str | os.PathLike[str] = ".",
    ) -> Experiment:
        """The experiment that a dictionary is, with the keys that a file has. Policies may be
        classes written in Python."""
        table = experiment.to_dict() if isinstance(experiment, Table) else dict(experiment)
        classes: dict[str, Configured] = {}
        text = _core.to_toml(_plain(table, classes))
        return replace(cls.parse(text, name, folder), classes=classes)

    def with_policies(self, *policies: PolicyLike) -> Experiment:
        """With these policies: those that it has by label, others by name, with parameters, or as
        classes written in Python."""
        classes = dict(self.classes)
        plain = [_plain(policy, classes) for policy in policies]
        return replace(self._changed(policies=_core.to_toml_value(plain)), classes=classes)

    def with_settings(self, settings: Mapping[str, Scalar | Sequence[Scalar]]) -> Experiment:
        """With other values: `{"machine.cpus": 8, "rr.quantum": "1ms"}`."""
        written = [(key, _written(value)) for key, value in settings.items()]
        return self._changed(settings=[*self.changes["settings"], *written])

    def with_sweep(self, axes: Mapping[str, Sequence[Scalar]]) -> Experiment:
        """With these values varied: `{"machine.cpus": [1, 2, 4]}`."""
        written = [(key, [_written(value) for value in values]) for key, values in axes.items()]
        return self._changed(sweep=[*self.changes["sweep"], *written])

    def with_rows_by(self, *parts: str) -> Experiment:
        """With rows for each `workload` or `task`."""
        return self._changed(by=list(parts))

    def with_seeds(self, seeds: int) -> Experiment:
        """With another number of seeds."""
        return self._changed(seeds=seeds)

    def quick(self) -> Experiment:
        """As its `[quick]` changes it, for a first look."""
        return self._changed(quick=True)

    def _changed(self, **changes: Any) -> Experiment:
        changed: Any = {**self.changes, **changes}
        return replace(self, changes=changed)

    def plan(self) -> _core.Plan:
        """All of its runs, checked."""
        return _core.Plan(self.text, self.path, self.changes)

    def check(self) -> None:
        """Checks everything without running anything.

        Raises ExperimentError with all that is wrong.
        """
        self.plan()

    def to_dict(self) -> dict[str, Any]:
        """What its text says, without later changes."""
        return tomllib.loads(self.text)

    def run(
        self, *, jobs: int | None = None, progress: Callable[[int, int], object] | None = None
    ) -> Result:
        """Makes all runs, on all cores unless `jobs` says on how many. `progress` is told how
        many are done, of how many."""
        plan = self.plan()
        source = Source(self.text, self.path, self.changes)
        return Result._of(plan, plan.run(jobs, progress), source)


Given: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | ExperimentSpec | Experiment"
"""An experiment: its path, a dictionary, what `anysched.spec` makes, or an `Experiment`."""


def given(experiment: Given) -> Experiment:
    """What functions take as an experiment."""
    match experiment:
        case Experiment():
            return experiment
        case str() | os.PathLike():
            if isinstance(experiment, str) and "\n" in experiment:
                raise UsageError("a path has no lines; for a text there is Experiment.parse")
            return Experiment.load(experiment)
        case _:
            return Experiment.of(experiment)


def run(
    experiment: Given,
    *,
    policies: Iterable[PolicyLike] | None = None,
    settings: Mapping[str, Scalar | Sequence[Scalar]] | None = None,
    sweep: Mapping[str, Sequence[Scalar]] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Runs an experiment, as `anysched run` does.

    experiment: the path of a file, a dictionary with the same keys, or one made with
    `anysched.spec`. The others are what the options of the command are: other policies, values or
    seeds, and on how many cores.
    """
    chosen = given(experiment)
    if quick:
        chosen = chosen.quick()
    if policies is not None:
        chosen = chosen.with_policies(*policies)
    if settings:
        chosen = chosen.with_settings(settings)
    if sweep:
        chosen = chosen.with_sweep(sweep)
    if seeds is not None:
        chosen = chosen.with_seeds(seeds)
    return chosen.run(jobs=jobs, progress=progress)


def _written(value: Scalar | Sequence[Scalar]) -> str:
    return value if isinstance(value, str) else _core.to_toml_value(value)


def _plain(value: Any, classes: dict[str, Configured]) -> Any:
    """`value` as texts, numbers, lists and dictionaries; the classes in it are added to
    `classes`."""
    match value:
        case type() if issubclass(value, (Policy, RunQueue)):
            return _plain(Configured.of(value), classes)
        case Configured():
            entry = value.entry()
            classes[entry["class"]] = value
            return entry
        case Table():
            return _plain(value.to_dict(), classes)
        case Mapping():
            return {key: _plain(item, classes) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, classes) for item in value]
        case os.PathLike():
            return os.fspath(value)
        case _:
            return value
