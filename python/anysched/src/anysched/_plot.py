"""Charts by Altair."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .policy import ns

if TYPE_CHECKING:
    from .result import Result, Timeline

_MOST = 5_000
"""So many stretches a notebook draws at ease."""


def _altair() -> Any:
    if not find_spec("altair"):
        raise UsageError("charts are drawn by Altair, which is not here; pip install altair")
    import altair

    return altair


def _unit(metric: str) -> tuple[float, str]:
    if metric.endswith("_ns"):
        return 1e-6, f"{metric.removesuffix('_ns').replace('_', ' ')} (ms)"
    return 1.0, metric.replace("_", " ")


def metric(result: Result, metric: str, x: str | None) -> Any:
    alt = _altair()
    factor, title = _unit(metric)
    known = sorted({name for row in result.rows for name in row.metrics})
    if metric not in known:
        raise UsageError(f'"{metric}" was not measured: there are {", ".join(known)}')
    axes = list(result.rows[0].axes)
    if x is not None and x not in axes:
        raise UsageError(f'no axis "{x}": there are {", ".join(axes) or "none"}')
    values: list[dict[str, Any]] = []
    for row in result.rows:
        if (of := row.metrics.get(metric)) is None:
            continue
        margin = of.ci95 or 0.0
        others = [f"{axis} = {value}" for axis, value in row.axes.items() if axis != x]
        values.append(
            {
                "policy": row.policy,
                "x": None if x is None else row.axes[x],
                "group": ", ".join(others),
                "mean": of.mean * factor,
                "low": (of.mean - margin) * factor,
                "high": (of.mean + margin) * factor,
            }
        )
    chart = alt.Chart(alt.Data(values=values))
    tooltip = ["policy:N", "group:N", "mean:Q", "low:Q", "high:Q"]
    y = alt.Y("mean:Q", title=title)
    if x is None:
        order = list(dict.fromkeys(row.policy for row in result.rows))
        place = alt.X("policy:N", title=None, sort=order)
        marks = chart.mark_bar().encode(x=place, y=y, tooltip=tooltip)
        bars = chart.mark_rule().encode(x=place, y=alt.Y("low:Q", title=title), y2="high:Q")
    else:
        numbers = all(isinstance(value["x"], (int, float)) for value in values)
        place = alt.X(f"x:{'Q' if numbers else 'O'}", title=x, sort=None)
        color = alt.Color("policy:N", title=None)
        marks = chart.mark_line(point=True).encode(x=place, y=y, color=color, tooltip=tooltip)
        bars = chart.mark_rule().encode(
            x=place, y=alt.Y("low:Q", title=title), y2="high:Q", color=color
        )
    layered = (marks + bars).properties(title=result.title or result.experiment)
    groups = {value["group"] for value in values}
    return layered if len(groups) < 2 else layered.facet(facet="group:N", columns=2)


def timeline(timeline: Timeline, start: str | int, end: str | int | None, by: str) -> Any:
    alt = _altair()
    if by not in ("cpu", "task"):
        raise UsageError(f'by="{by}": there are "cpu" and "task"')
    first, last = ns(start), None if end is None else ns(end)
    rows = timeline.frame()
    columns = {name: list(rows[name]) for name in ("name", "state", "cpu", "start_ns", "end_ns")}
    values = [
        {
            "task": name,
            "state": state,
            "line": f"CPU {cpu}" if by == "cpu" else name,
            "start": max(begin, first) / 1e6,
            "end": (stop if last is None else min(stop, last)) / 1e6,
        }
        for name, state, cpu, begin, stop in zip(*columns.values(), strict=True)
        if stop > first
        and (last is None or begin < last)
        and (state == "runs" or (by == "task" and state == "waits"))
    ]
    if len(values) > _MOST:
        raise UsageError(
            f"{len(values)} stretches are more than a chart shows: give a `start` and an `end`, "
            'as in plot("1s", "1.1s")'
        )
    shades = {"domain": ["runs", "waits"], "range": [1, 0.2]}
    chart = alt.Chart(alt.Data(values=values)).mark_bar(height=14)
    return chart.encode(
        x=alt.X("start:Q", title="time (ms)"),
        x2="end:Q",
        y=alt.Y("line:N", title=None),
        color=alt.Color("task:N", title=None),
        opacity=alt.Opacity("state:N", scale=shades, legend=None),
        tooltip=["task:N", "state:N", "start:Q", "end:Q"],
    ).properties(title=f"{timeline.policy} {timeline.group}".strip())
