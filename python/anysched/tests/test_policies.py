"""Policies written in Python."""

from __future__ import annotations

import anysched
import pyarrow
import pytest
from rules import FirstCome, RoundRobin, ShortestFirst, ShortestRemaining

OPEN = {"kind": "open", "service": "hyperexp(4ms, cv2=4)", "load": 0.8, "tasks": 300}
SLEEPERS = {"kind": "interactive", "tasks": 3, "run": "exp(1ms)", "sleep": "exp(5ms)"}
PINNED = {"kind": "open", "service": "exp(3ms)", "load": 0.2, "affinity": "1", "tasks": 50}
HOGS = {"kind": "hog", "tasks": 2, "nice": 5}
COSTS = {"context_switch": "1500ns", "pick": "200ns", "tick": "1ms", "migration": {"llc": "10us"}}


def experiment(cpus: int, *loads: dict[str, object], **machine: object) -> dict[str, object]:
    machine = {"cpus": cpus, **machine}
    return {"question": "?", "duration": "1s", "machine": machine, "workload": list(loads)}


HOGS_TOO = "one CPU, sleepers, hogs and costs"
EXPERIMENTS = {
    "one CPU": experiment(1, OPEN),
    "one CPU, sleepers and costs": experiment(1, OPEN, SLEEPERS, **COSTS),
    "four CPUs": experiment(4, OPEN, SLEEPERS, **COSTS),
    "two CPUs, one task bound": experiment(2, OPEN, PINNED, SLEEPERS, **COSTS),
    HOGS_TOO: experiment(1, OPEN, SLEEPERS, HOGS, **COSTS),
}
# A hog never ends, and without preemption nothing else would run.
WITHOUT_HOGS = [name for name in EXPERIMENTS if name != HOGS_TOO]


def same_to_the_ns(name: str, native: object, python: object, seeds: int = 3) -> None:
    """Asserts that all that was measured is the same, in each run."""
    swept = {"policy": [native, python], "seeds": seeds}
    table = pyarrow.table(anysched.run({**EXPERIMENTS[name], "sweep": swept}))
    halves = [
        table.slice(start, seeds).drop_columns(["policy"]).to_pydict() for start in (0, seeds)
    ]
    assert halves[0]["context_switches"][0] > 10, "something has happened"
    assert halves[0] == halves[1]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_round_robin_in_python_is_rr(name):
    same_to_the_ns(name, {"name": "rr", "quantum": "3ms"}, RoundRobin.using(quantum="3ms"))


@pytest.mark.parametrize("name", WITHOUT_HOGS)
def test_shortest_first_in_python_is_sjf(name):
    same_to_the_ns(name, "sjf", ShortestFirst)


@pytest.mark.parametrize("name", WITHOUT_HOGS)
def test_first_come_in_python_is_fcfs(name):
    same_to_the_ns(name, "fcfs", FirstCome)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_shortest_remaining_in_python_is_srpt(name):
    same_to_the_ns(name, "srpt", ShortestRemaining)


@pytest.mark.parametrize("layout", ["per-cpu", "per-llc"])
def test_runqueues_may_be_divided(layout):
    native = {"name": "rr", "quantum": "3ms", "layout": layout}
    python = RoundRobin.using(quantum="3ms", layout=layout, label="python")
    swept = {"policy": [native, python], "seeds": 2}
    result = anysched.run({**EXPERIMENTS["four CPUs"], "sweep": swept})
    assert [row.policy for row in result] == ["rr", "python"]
    migrations = [row["migrations"].mean for row in result]
    assert migrations[1] > 0


def test_a_recording_of_a_build_is_scheduled_alike(experiments):
    choice = ["rr", RoundRobin, "sjf", ShortestFirst]
    result = anysched.run(experiments / "quickstart.toml", policies=choice, seeds=1)
    table = pyarrow.table(result).drop_columns(["policy"])
    lines = table.to_pylist()
    assert lines[0] == lines[1] and lines[2] == lines[3], "the recorded build"
    assert lines[4] == lines[5] and lines[6] == lines[7], "the synthetic mix"
    assert lines[0] != lines[2]


def test_results_are_marked():
    swept = {"policy": ["fcfs", FirstCome, ShortestFirst, RoundRobin.using(quantum="1ms")]}
    result = anysched.run({**EXPERIMENTS["one CPU"], "sweep": swept})
    assert [(row.policy, row.in_python, row.clairvoyant) for row in result] == [
        ("fcfs", False, False),
        ("FirstCome (Python)", True, False),
        ("ShortestFirst (Python)", True, True),
        ("RoundRobin quantum=1ms (Python)", True, False),
    ]


def test_another_version_of_a_class_is_another_experiment():
    def made(slack: int) -> str:
        source = f"class P(anysched.Policy):\n    def key(self, task):\n        return {slack}\n"
        names: dict[str, type[anysched.Policy]] = {"anysched": anysched}
        exec(source, names)
        return anysched.run({**EXPERIMENTS["one CPU"], "policy": [names["P"]]}).spec_hash

    assert made(1) == made(1)
    assert made(1) != made(2)


def run(policy: object, name: str = "one CPU") -> anysched.Result:
    return anysched.run({**EXPERIMENTS[name], "policy": [policy]})


def test_an_exception_ends_the_run_and_is_the_cause():
    class Broken(FirstCome):
        def charge(self, task, ran):
            raise LookupError(f"task {task.id}")

    with pytest.raises(anysched.PolicyError, match="raised LookupError: task 0") as raised:
        run(Broken)
    assert isinstance(raised.value.__cause__, LookupError)
    assert raised.value.policy == "Broken (Python)"
    frames = raised.value.__cause__.__traceback__
    assert frames is not None, "where it was raised"
    # Another run is not disturbed by it.
    assert run(FirstCome).rows


def test_a_breach_of_the_contract_ends_the_run():
    class Idle(RoundRobin):
        def pop(self, cpu):
            return None

    with pytest.raises(anysched.PolicyError, match="broken the contract"):
        run(Idle)


@pytest.mark.parametrize(
    "broken, says",
    [
        (lambda self, cpu: self.waiting[0], "does not wait in this runqueue"),
        (lambda self, cpu: 7, "a task or None, not int"),
    ],
)
def test_what_pop_returns_is_checked(broken, says):
    cls = type("Broken", (RoundRobin,), {"pop": broken})
    with pytest.raises(anysched.PolicyError) as raised:
        run(cls)
    assert says in str(raised.value.__cause__)


def test_tasks_stay_on_the_cpus_that_they_are_allowed_on():
    class Careless(RoundRobin):
        def pop(self, cpu):
            return self.waiting.popleft()

    with pytest.raises(anysched.PolicyError, match="may_run_on"):
        run(Careless, "two CPUs, one task bound")


@pytest.mark.parametrize(
    "key, says",
    [
        (None, "has it no `return`?"),
        ("a", "a number or a tuple of numbers, not str"),
        (float("nan"), "NaN"),
        ((1, "a"), "not str"),
    ],
)
def test_keys_are_numbers(key, says):
    cls = type("Broken", (anysched.Policy,), {"key": lambda self, task: key})
    with pytest.raises(anysched.PolicyError) as raised:
        run(cls)
    assert says in str(raised.value.__cause__)


def test_keys_are_ordered_as_in_python():
    order = [2.5, -1, (1, 2), 2**100, 2**53 + 1, float(2**53), (1,), True, 0.5, float("-inf")]
    batch = {"kind": "batch", "tasks": len(order), "service": "1ms"}

    class ByList(anysched.Policy):
        def key(self, task):
            return order[task.id]

    result = anysched.run({**experiment(1, batch), "policy": [ByList]})
    runs = pyarrow.table(result.timeline()).to_pylist()
    ran = [order[line["task"]] for line in runs if line["state"] == "runs"]

    def parts(key):
        return key if isinstance(key, tuple) else (key,)

    assert ran[1:] == sorted((key for key in order if key != ran[0]), key=parts)


def test_who_reads_bursts_has_to_say_so():
    class Sly(anysched.Policy):
        def key(self, task):
            return task.burst

    with pytest.raises(anysched.PolicyError) as raised:
        run(Sly)
    assert "say `clairvoyant = True` in the class" in str(raised.value.__cause__)


def test_classes_are_checked_before_they_run():
    class Nothing(anysched.Policy):
        pass

    class Half(anysched.RunQueue):
        def push(self, task, why):
            pass

    with pytest.raises(anysched.UsageError, match="Nothing needs a method `key`"):
        run(Nothing)
    with pytest.raises(anysched.UsageError, match="Half needs a method `pop`"):
        run(Half)
    with pytest.raises(anysched.UsageError, match="quantun"):
        run(RoundRobin.using(quantun="1ms"))
    with pytest.raises(anysched.UsageError, match="no time"):
        run(RoundRobin.using(quantum="1 parsec"))
    with pytest.raises(anysched.ExperimentError, match="no class has this name"):
        run({"name": "python", "class": "x.Y"})


def test_quanta_slices_and_hooks_are_asked():
    asked = set()

    class All(anysched.Policy):
        quantum = "2ms"

        def key(self, task):
            assert self.now >= task.ready_since >= 0
            return task.service

        def attach(self, task):
            task.mine = "kept"

        def leave(self, task, why):
            assert task.mine == "kept"
            asked.add(why)

        def detach(self, task):
            asked.add("detach")

        def tick(self, task):
            asked.add("tick")
            assert [one.id for one in self.running] == [task.id]
            return False

    result = anysched.run({**EXPERIMENTS["one CPU, sleepers and costs"], "policy": [All]})
    assert asked == {"blocked", "exited", "detach", "tick"}
    runs = pyarrow.table(result.timeline()).to_pylist()
    longest = max(line["end_ns"] - line["start_ns"] for line in runs if line["state"] == "runs")
    assert 1_900_000 < longest <= 2_100_000


def test_ctrl_c_ends_a_policy_in_python():
    import os
    import signal
    import threading

    endless = {
        "question": "?",
        "duration": "10000h",
        "machine": {"cpus": 1},
        "workload": [{"kind": "hog", "tasks": 2}],
        "policy": [RoundRobin.using(quantum="1ms")],
    }
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        anysched.run(endless)
