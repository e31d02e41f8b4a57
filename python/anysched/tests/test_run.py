"""Runs, and what comes back."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pickle
import re
import signal
import threading
import time
from pathlib import Path

import anysched
import pandas
import polars
import pyarrow
import pytest

LOAD = {"kind": "open", "service": "exp(5ms)", "load": 0.7, "tasks": 200}
SMALL = {
    "question": "?",
    "machine": {"cpus": 2},
    "workload": [LOAD],
    "sweep": {"policy": ["fcfs", "rr"], "machine.cpus": [1, 2], "seeds": 3},
}
# It ends when all is over.
ENDLESS = {
    "question": "?",
    "duration": "10000h",
    "machine": {"cpus": 1, "tick": "1ms"},
    "workload": [{"kind": "hog", "tasks": 3}],
    "policy": ["rr"],
}


def columns(table: object) -> dict[str, list[object]]:
    return pyarrow.table(table).to_pydict()


@pytest.mark.parametrize(
    "name, options",
    [
        ("classroom/e1-round-robin.toml", {}),
        ("classroom/e5-deadlines.toml", {}),
        ("m-rsf/e2-batch.toml", {"seeds": 2}),
        ("credit/e3-turnaround.toml", {"seeds": 2, "policies": ["credit", "credit2"]}),
        ("quickstart.toml", {"seeds": 1, "policies": ["rr", "eevdf"]}),
    ],
)
def test_the_same_bytes_as_the_command(experiments, command, tmp_path, name, options):
    result = anysched.run(experiments / name, **options)
    words = ["run", experiments / name]
    if "seeds" in options:
        words += ["--seeds", options["seeds"]]
    if "policies" in options:
        words += ["--policy", ",".join(options["policies"])]
    assert result.json() == command(*words, "--format", "json")
    assert result.csv() == command(*words, "--format", "csv")
    assert result.table() == command(*words)
    command(*words, "--out", tmp_path / "command")
    written = result.write(tmp_path / "python")
    assert len(written) == 4
    for path in written:
        assert path.read_bytes() == (tmp_path / "command" / path.name).read_bytes(), path.name


def test_settings_and_axes_are_those_of_the_command(experiments, command):
    file = experiments / "classroom/e1-round-robin.toml"
    result = anysched.run(
        file, settings={"rr.quantum": "2ms", "machine.cpus": 2}, sweep={"workload.0.tasks": [1, 5]}
    )
    printed = command(
        "run", file, "--set", "rr.quantum=2ms", "--set", "machine.cpus=2",
        "--sweep", "workload.0.tasks=1,5", "--format", "json",
    )  # fmt: skip
    assert result.json() == printed


def test_frames_have_a_line_per_run_in_each_library():
    result = anysched.run(SMALL)
    expected = columns(result)
    assert expected["policy"] == ["fcfs"] * 3 + ["rr"] * 3 + ["fcfs"] * 3 + ["rr"] * 3
    assert expected["machine.cpus"] == [1] * 6 + [2] * 6
    assert expected["seed_index"] == [0, 1, 2] * 4
    frame = result.frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dict(as_series=False) == expected
    of_pandas = result.frame(library="pandas")
    assert isinstance(of_pandas, pandas.DataFrame)
    assert list(of_pandas["makespan_ns"]) == expected["makespan_ns"]
    with pytest.raises(anysched.UsageError, match="polars, pandas and pyarrow"):
        result.frame(library="dplyr")


def test_frames_are_not_copied():
    result = anysched.run(SMALL)
    for column in ("seed", "makespan_ns", "turnaround_ns_p99"):
        address = result._frame.address(column)
        # What polars hands on is its own memory.
        series = result.frame(library="polars")[column].to_arrow()
        assert series.buffers()[1].address == address
        arrow = result.frame(library="pyarrow")[column].chunk(0)
        assert arrow.buffers()[1].address == address
        of_pandas = result.frame(library="pandas")[column].array
        assert of_pandas.__arrow_array__().chunk(0).buffers()[1].address == address


def test_frames_outlive_results():
    frame = anysched.run(SMALL).frame()
    before = frame["makespan_ns"].to_list()
    anysched.run(SMALL, seeds=5)
    assert frame["makespan_ns"].to_list() == before == columns(anysched.run(SMALL))["makespan_ns"]


def test_rows_are_those_of_json():
    result = anysched.run(SMALL)
    rows = json.loads(result.json())["rows"]
    assert [row.policy for row in result] == [row["policy"] for row in rows]
    assert result.rows[3].axes == {"machine.cpus": 2}
    assert result.rows[3]["turnaround_ns"].p99 == rows[3]["metrics"]["turnaround_ns"]["p99"]
    with pytest.raises(KeyError):
        result.rows[0]["nothing"]
    flat = result.frame("rows")
    assert flat["turnaround_ns_mean"][3] == rows[3]["metrics"]["turnaround_ns"]["mean"]


def test_claims_have_their_verdicts(experiments):
    result = anysched.run(experiments / "classroom/e1-round-robin.toml")
    assert [(claim.id, claim.verdict) for claim in result.claims] == [
        ("fcfs", "holds"),
        ("shortest first", "holds under the stated reading"),
        ("rr", "holds"),
    ]
    assert result.claims[0].paper == "17 ms"
    assert result.claims[0].checks[0].left == 17_000_000
    assert "17 ms on average" in result._repr_html_()


def test_pickled_results_are_the_same(tmp_path):
    result = anysched.run(SMALL)
    again = pickle.loads(pickle.dumps(result))
    assert columns(again) == columns(result)
    assert (again.json(), again.csv(), again.table()) == (
        result.json(), result.csv(), result.table(),
    )  # fmt: skip
    assert [row.axes for row in again] == [row.axes for row in result]
    first, second = (one.write(tmp_path / str(id(one))) for one in (result, again))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert columns(again.timeline("rr")) == columns(result.timeline("rr"))


def test_a_damaged_pickle_is_refused():
    restore, (pickled,) = anysched.run(SMALL)._frame.__reduce__()
    name, kind, nullable, length, nulls, buffers = next(c for c in pickled if c[0] == "seed")
    assert columns(restore([(name, kind, nullable, length, nulls, buffers)]))["seed"]
    with pytest.raises(RuntimeError, match="buffer"):
        restore([(name, kind, nullable, length + 1, nulls, buffers)])


def test_errors_say_where_and_what_to_do(tmp_path):
    file = tmp_path / "slip.toml"
    load = '[[workload]]\nkind = "batch"\ntasks = 3\nservice = "1ms"\n'
    file.write_text(f'question = "?"\npolicy = "rr"\n\n[machine]\ncpu = 4\n{load}')
    with pytest.raises(anysched.ExperimentError) as raised:
        anysched.run(file)
    error = raised.value
    assert (error.line, error.column) == (5, 1)
    assert "cpus" in error.remedy
    assert "cpu = 4" in str(error), "the line is shown"
    assert error.plain.startswith(f"{file}:5:1: ")
    assert pickle.loads(pickle.dumps(error)).line == 5
    with pytest.raises(anysched.ExperimentError, match="cannot be read"):
        anysched.run(tmp_path / "none.toml")
    with pytest.raises(TypeError, match="`machine.cpus` is set"):
        anysched.run({"question": "?", "machine": {"cpus": {1}}})


def test_errors_of_dictionaries_show_them_as_a_file(experiments):
    with pytest.raises(anysched.ExperimentError, match="no policy is called `rrr`") as raised:
        anysched.run({**SMALL, "sweep": {"policy": ["rrr"]}})
    assert "rr" in raised.value.remedy


def test_ctrl_c_ends_a_run_and_other_threads_go_on():
    ticks = 0

    def interrupt():
        nonlocal ticks
        time.sleep(0.2)
        # A run that kept Python's lock would never let this loop come to its end.
        while ticks < 100_000:
            ticks += 1
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        anysched.run(ENDLESS)
    thread.join()
    assert ticks == 100_000


def test_progress_is_told_and_may_end_a_run():
    told = []
    anysched.run({**SMALL, "sweep": {"policy": ["fcfs"]}}, progress=lambda *far: told.append(far))
    assert told[-1] == (1, 1)

    def stop(done: int, total: int) -> None:
        raise LookupError(f"{total}")

    endless = {**ENDLESS, "sweep": {"duration": ["1ms", "10000h"]}}
    with pytest.raises(LookupError, match="2"):
        anysched.run(endless, progress=stop, jobs=1)


def test_two_threads_run_at_a_time():
    expected = columns(anysched.run(SMALL))
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(anysched.run(SMALL))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [columns(result) for result in results] == [expected] * 4


def test_a_timeline_is_who_ran_when(experiments):
    result = anysched.run(experiments / "classroom/e1-round-robin.toml")
    runs = result.timeline("rr").frame().filter(polars.col("state") == "runs")
    # By hand: P1 for 4 ms, P2, P3, and then P1 for as long as it takes, in turns of 4 ms.
    stretches = [(r["name"], r["start_ns"] // 10**6, r["end_ns"] // 10**6) for r in runs.to_dicts()]
    merged = stretches[:3] + [("P1", stretches[3][1], stretches[-1][2])]
    assert merged == [("P1", 0, 4), ("P2", 4, 7), ("P3", 7, 10), ("P1", 10, 30)]
    assert {name for name, *_ in stretches[3:]} == {"P1"}
    first = result.timeline("fcfs").frame().filter(polars.col("name") == "P3").to_dicts()
    assert [(r["state"], r["start_ns"], r["end_ns"]) for r in first] == [
        ("waits", 0, 27_000_000),
        ("runs", 27_000_000, 30_000_000),
    ]
    with pytest.raises(anysched.UsageError, match="there are fcfs, rr, sjf"):
        result.timeline("cfs")
    with pytest.raises(anysched.UsageError, match="seed = 1: they go from 0 to 0"):
        result.timeline("rr", seed=1)


def test_charts_have_what_the_rows_have():
    result = anysched.run(SMALL)
    chart = result.plot("turnaround_ns", "machine.cpus").to_dict()
    values = chart["data"]["values"]
    assert [value["mean"] for value in values] == pytest.approx(
        [row["turnaround_ns"].mean / 1e6 for row in result]
    )
    assert {layer["mark"]["type"] for layer in chart["layer"]} == {"line", "rule"}
    bars = result.plot("turnaround_ns").to_dict()
    assert bars["spec"]["layer"][0]["mark"]["type"] == "bar"
    with pytest.raises(anysched.UsageError, match="machine.cpus"):
        result.plot("turnaround_ns", "cpus")
    with pytest.raises(anysched.UsageError, match="was not measured"):
        result.plot("tardiness")
    gantt = result.timeline("rr").plot("0ms", "50ms").to_dict()
    assert all(value["line"] == "CPU 0" for value in gantt["data"]["values"])
    assert max(value["end"] for value in gantt["data"]["values"]) <= 50


def test_a_folder_keeps_results_of_other_experiments(tmp_path: Path):
    anysched.run(SMALL).write(tmp_path)
    with pytest.raises(anysched.UsageError, match="results of another experiment"):
        anysched.run({**SMALL, "question": "another?"}).write(tmp_path)


def test_jobs_change_nothing():
    started = time.monotonic()
    assert columns(anysched.run(SMALL, jobs=1)) == columns(anysched.run(SMALL, jobs=4))
    assert time.monotonic() - started < 60


def unpacked(page: str, name: str) -> bytes:
    """A block of a report."""
    (block,) = re.findall(rf'id="{name}"[^>]*>([^<]*)<', page)
    return gzip.decompress(base64.b64decode(block))


def test_a_result_becomes_a_report(experiments, tmp_path):
    experiment = experiments / "classroom/e1-round-robin.toml"
    result = anysched.run(experiment, policies=["rr", "fcfs"], settings={"machine.cpus": 2})
    page = result.report(tmp_path / "report.html").read_text()
    (told,) = json.loads(unpacked(page, "document"))["experiments"]
    rows = [row for row in told["results"]["rows"] if row["axes"].get("workload", "all") == "all"]
    expected = json.loads(result.json())["rows"]
    assert [row["metrics"] for row in rows] == [row["metrics"] for row in expected]
    assert told["details"]["command"].startswith("anysched.run(")
    assert told["details"]["changes"] == " --set machine.cpus=2"
    assert len(told["details"]["timelines"]) == 2
    before = experiment.read_bytes()
    with pytest.raises(anysched.UsageError, match="e1-round-robin.toml"):
        result.report(experiment)
    assert experiment.read_bytes() == before, "an input is not replaced"
