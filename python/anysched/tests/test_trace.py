"""Traces as data frames."""

from __future__ import annotations

import anysched
import polars
import pytest


def test_a_recorded_build_is_read(traces):
    trace = anysched.read_trace(traces / "cargo-build.txt.gz")
    assert trace.format == "ftrace"
    tasks, steps = trace.tasks(), trace.steps()
    assert tasks["steps"].sum() == len(steps)
    runs = steps.filter(polars.col("does") == "run")
    of_steps = runs.group_by("task").agg(polars.col("ns").sum())
    joined = tasks.filter(polars.col("rounds") == 1).join(of_steps, on="task")
    assert len(joined) > 100
    assert joined["cpu_ns"].to_list() == joined["ns"].to_list()
    assert anysched.read_trace(traces / "cargo-build.txt.gz", "ftrace").tasks().equals(tasks)


def test_a_written_model_runs(traces, tmp_path):
    trace = anysched.read_trace(traces / "request-response.txt.gz")
    trace.write(tmp_path / "model.json")
    experiment = {
        "question": "?",
        "machine": {"cpus": trace.cpus},
        "workload": [{"kind": "model", "file": str(tmp_path / "model.json")}],
        "policy": ["rr"],
    }
    assert anysched.run(experiment).rows[0]["tasks"].mean > 0


def test_files_that_are_no_traces_are_refused(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("hello\n")
    with pytest.raises(anysched.TraceError, match="say which it is: .*swf"):
        anysched.read_trace(path)
    with pytest.raises(anysched.TraceError, match="no format is called `x`"):
        anysched.read_trace(path, "x")
    with pytest.raises(anysched.TraceError, match="cannot be read"):
        anysched.read_trace(tmp_path / "none")
    path.write_text("; Version: 2\n1 2 x\n")
    with pytest.raises(anysched.TraceError, match="x.txt: line 2: 3 fields"):
        anysched.read_trace(path, "swf")
