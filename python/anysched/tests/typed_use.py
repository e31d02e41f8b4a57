"""What a type checker has to accept, and, where a line says so, to refuse."""

from __future__ import annotations

import anysched
from anysched import Task, loads, policies, spec


class Fair(anysched.Policy):
    """Least service first, by weight."""

    quantum = "3ms"

    def key(self, task: Task) -> float:
        return task.service / task.weight


class Lifo(anysched.RunQueue):
    def __init__(self) -> None:
        self.waiting: list[Task] = []

    def push(self, task: Task, why: anysched.Why) -> None:
        self.waiting.append(task)

    def pop(self, cpu: int) -> Task | None:
        return self.waiting.pop()


class Wrong(anysched.Policy):
    def key(self, task: Task) -> str:  # type: ignore[override]
        return "first"


experiment = spec.Experiment(
    question="Who waits?",
    machine=spec.Machine(cpus=2, tick="1ms"),
    workload=[loads.Open(service="exp(5ms)", load=0.8, tasks=100)],
    sweep=spec.Sweep(
        policy=["fcfs", policies.rr(quantum="2ms"), Fair, Lifo.using(label="last first")],
        axes={"machine.cpus": [1, 2]},
        seeds=3,
    ),
)
spec.Machine(cpus="two")  # type: ignore[arg-type]
spec.Experiment(machine=spec.Machine(cpus=1))  # type: ignore[call-arg]
policies.rr(quantun="2ms")  # type: ignore[call-arg]
loads.Open(size="5ms")  # type: ignore[call-arg]
anysched.run(experiment, policies=[7])  # type: ignore[list-item]


def waits(result: anysched.Result) -> dict[str, float]:
    return {row.policy: row["waiting_time_ns"].mean for row in result}


def verdicts(result: anysched.Result) -> list[str | None]:
    return [claim.verdict for claim in result.claims]


if __name__ == "__main__":
    print(waits(anysched.run(experiment)))
