"""What the runs of an experiment have shown."""

from __future__ import annotations

import html
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from . import _core, _tables
from ._changes import Changes
from ._tables import Library
from .errors import UsageError

__all__ = ["Aggregate", "Check", "Claim", "Measure", "Result", "Row", "Timeline"]


@dataclass(frozen=True)
class Aggregate:
    """A metric over the seeds of a row, in the unit that its name ends with.

    mean: over seeds, of the run's mean if the metric is a distribution. ci95: half the width of
    the 95 % confidence interval of the mean; None for one seed. sd: None where one number has none.
    """

    mean: float
    ci95: float | None
    sd: float | None
    min: float
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True)
class Row:
    """The runs of one policy with the same values of the axes."""

    policy: str
    clairvoyant: bool
    rehearsed: bool
    in_python: bool
    axes: Mapping[str, str | int | float | bool]
    seeds: int
    metrics: Mapping[str, Aggregate]

    def __getitem__(self, metric: str) -> Aggregate:
        """A metric by name, `turnaround_ns`; KeyError if it was not measured."""
        return self.metrics[metric]


@dataclass(frozen=True)
class Check:
    """One comparison of a claim, in one row. Numbers are None where they were not measured."""

    axes: Mapping[str, str | int | float | bool]
    expression: str
    left: float | None
    right: float | None
    difference: float | None
    ci95: float | None
    verdict: str | None
    seeds_needed: int | None
    note: str | None


@dataclass(frozen=True)
class Measure:
    """What is measured with a claim, in one row."""

    axes: Mapping[str, str | int | float | bool]
    expression: str
    mean: float | None
    ci95: float | None
    unit: str


@dataclass(frozen=True)
class Claim:
    """A claim of the experiment with its verdict; None: what it needs was not measured."""

    id: str
    text: str
    expected: str
    verdict: str | None
    as_expected: bool
    paper: str | None
    reading: str | None
    because: str | None
    details: str | None
    seeds_needed: int | None
    checks: tuple[Check, ...]
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Source:
    """What the runs were made of."""

    text: str
    path: Path
    changes: Changes

    def said(self) -> tuple[str, str]:
        """What makes the runs, and what changes the experiment, as options of the command."""
        changes = self.changes
        options = [("--set", key, value) for key, value in changes["settings"]]
        options += [("--sweep", key, ",".join(values)) for key, values in changes["sweep"]]
        changed = "".join(f" {name} {shlex.quote(f'{key}={value}')}" for name, key, value in options)
        given = {
            "policies": changes["policies"],
            "settings": dict(changes["settings"]),
            "sweep": {key: list(values) for key, values in changes["sweep"]},
            "by": list(changes["by"]),
            "seeds": changes["seeds"],
            "quick": changes["quick"],
        }
        arguments = "".join(f", {name}={value!r}" for name, value in given.items() if value)
        return f"anysched.run({str(self.path)!r}{arguments})", changed


class Result:
    """What the runs of an experiment have shown. It can be pickled."""

    def __init__(
        self,
        forms: dict[str, str],
        parquet: bytes,
        frame: _core.Frame,
        in_python: frozenset[str],
        inputs: tuple[Path, ...],
        warnings: tuple[str, ...],
        source: Source,
    ) -> None:
        self._forms = forms
        self._saved_parquet: bytes | None = parquet
        self._frame = frame
        self._in_python = in_python
        self._inputs = inputs
        self.warnings = warnings
        self._source = source
        self._live: _core.Results | None = None

    @classmethod
    def _of(cls, plan: _core.Plan, results: _core.Results, source: Source) -> Self:
        forms = {"json": results.json(), "table": results.table()}
        in_python = frozenset(label for label, name, *_ in results.policies() if name == "python")
        result = cls(
            forms,
            b"",
            results.frame(),
            in_python,
            tuple(plan.inputs),
            tuple(plan.warnings),
            source,
        )
        # Asked only if it is wanted.
        result._saved_parquet = None
        result._live = results
        return result

    def __getstate__(self) -> dict[str, Any]:
        forms = {**self._forms, "csv": self.csv()}
        state = {k: v for k, v in self.__dict__.items() if k not in ("_document", "rows", "claims")}
        return {**state, "_forms": forms, "_saved_parquet": self._parquet(), "_live": None}

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._forms["json"])
        return document

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return str(self._document["experiment"])

    @property
    def question(self) -> str:
        """What it is to find out."""
        return str(self._document["question"])

    @property
    def title(self) -> str | None:
        """Its title, if it has one."""
        title: str | None = self._document.get("title")
        return title

    @property
    def spec_hash(self) -> str:
        """The hash of the experiment and of the files that it names."""
        return str(self._document["spec_hash"])

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each policy and combination of axis values."""
        return [
            Row(
                policy=row["policy"],
                clairvoyant=row["clairvoyant"],
                rehearsed=row["rehearsed"],
                in_python=row["policy"] in self._in_python,
                axes=row["axes"],
                seeds=row["seeds"],
                metrics={name: Aggregate(**of) for name, of in row["metrics"].items()},
            )
            for row in self._document["rows"]
        ]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims with their verdicts."""
        lists = ("checks", "measures")
        names = [name for name in Claim.__dataclass_fields__ if name not in lists]
        return [
            Claim(
                **{name: claim[name] for name in names},
                checks=tuple(Check(**check) for check in claim["checks"]),
                measures=tuple(Measure(**measure) for measure in claim["measures"]),
            )
            for claim in self._document["claims"]
        ]

    def frame(
        self, of: Literal["runs", "rows"] = "runs", library: Library | None = None
    ) -> Any:
        """A data frame of polars, or of pandas if polars is not here.

        of: a line for each run, as in Parquet, or for each row, with `mean` and `ci95` of each
        metric. That of runs takes over the memory of this result: nothing is copied.
        """
        if of == "runs":
            return _tables.frame(self._frame, library)
        if of != "rows":
            raise UsageError(f'of="{of}": there are "runs" and "rows"')
        return _tables.of_dicts([_flat(row) for row in self.rows], library)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)

    def json(self) -> str:
        """As `anysched run --format json` prints it."""
        return self._forms["json"]

    def csv(self) -> str:
        """As `anysched run --format csv` prints it."""
        if self._live is not None:
            return self._live.csv()
        return self._forms["csv"]

    def table(self) -> str:
        """As `anysched run` prints it."""
        return self._forms["table"]

    def _parquet(self) -> bytes:
        if self._live is not None:
            return self._live.parquet()
        assert self._saved_parquet is not None
        return self._saved_parquet

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes it into a folder as `anysched run --out` does, all files or none; their paths."""
        forms = [
            ("txt", self.table().encode()),
            ("json", self.json().encode()),
            ("csv", self.csv().encode()),
            ("parquet", self._parquet()),
        ]
        written = _core.write_results(
            folder, self.experiment, self.question, self._inputs, forms
        )
        return [Path(path) for path in written]

    def report(self, path: str | os.PathLike[str], *, events: int = 1_000_000) -> Path:
        """Writes the page that `anysched run --report` writes: answers, tables, plots, timelines.

        The runs are made again for it, since each load is measured apart. events: how many all
        timelines have at most.
        """
        text, source, changes = self._source.text, self._source.path, self._source.changes
        _core.write_report(path, text, source, changes, self._source.said(), events)
        return Path(path)

    def timeline(self, policy: str | int = 0, group: int = 0, seed: int = 0) -> Timeline:
        """What each task did in one run, which is made again.

        policy: by label or position; group: the position of a combination of axis values; seed:
        the number of one, from 0.
        """
        plan = _core.Plan(self._source.text, self._source.path, self._source.changes)
        labels = plan.policies
        if isinstance(policy, str):
            if policy not in labels:
                raise UsageError(f'no policy is called "{policy}": there are {", ".join(labels)}')
            policy = labels.index(policy)
        frame = plan.timeline(group, policy, seed)
        return Timeline(frame, labels[policy], plan.groups[group])

    def plot(self, metric: str = "turnaround_ns", x: str | None = None) -> Any:
        """An Altair chart of a metric with its confidence intervals: a line for each policy over
        the axis `x`, or a bar for each policy."""
        from . import _plot

        return _plot.metric(self, metric, x)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Result of {self.experiment}: {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        title = html.escape(self.title or self.experiment)
        parts = [f"<h4>{title}</h4><p>{html.escape(self.question)}</p>"]
        parts.append(f"<pre>{html.escape(self.table())}</pre>")
        if self.claims:
            cells = "".join(
                f"<tr><td>{html.escape(claim.id)}</td>"
                f'<td style="text-align:left">{html.escape(claim.text)}</td>'
                f"<td>{html.escape(claim.verdict or 'not measured')}"
                f"{'' if claim.as_expected else ' (not as expected)'}</td></tr>"
                for claim in self.claims
            )
            head = "<tr><th>claim</th><th>what is claimed</th><th>verdict</th></tr>"
            parts.append(f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>")
        return "\n".join(parts)


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "policy": row.policy,
        **row.axes,
        "seeds": row.seeds,
        "clairvoyant": row.clairvoyant,
        "in_python": row.in_python,
    }
    for name, of in row.metrics.items():
        flat[f"{name}_mean"] = float(of.mean)
        flat[f"{name}_ci95"] = None if of.ci95 is None else float(of.ci95)
    return flat


class Timeline:
    """What each task did in one run, on the machine itself."""

    def __init__(self, frame: _core.Frame, policy: str, group: str) -> None:
        self._frame = frame
        self.policy = policy
        self.group = group

    def frame(self, library: Library | None = None) -> Any:
        """A line for each stretch in which a task `runs`, `waits` or `sleeps`: `task`, `name`,
        `state`, `cpu`, `start_ns`, `end_ns`, and how it `ended`."""
        return _tables.frame(self._frame, library)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._frame)

    def plot(self, start: str | int = 0, end: str | int | None = None, by: str = "cpu") -> Any:
        """An Altair chart of who runs when, a line for each CPU, or, `by="task"`, for each
        task."""
        from . import _plot

        return _plot.timeline(self, start, end, by)

    def __repr__(self) -> str:
        of = f" ({self.group})" if self.group else ""
        return f"<Timeline of {self.policy}{of}: {len(self)} stretches>"
