"""Policies of the program, once more in Python."""

from __future__ import annotations

from collections import deque

import anysched
from anysched import Task


class ShortestFirst(anysched.Policy):
    clairvoyant = True

    def key(self, task: Task) -> int:
        return task.burst


class ShortestRemaining(ShortestFirst):
    preemptive = True


class RoundRobin(anysched.RunQueue):
    def __init__(self, quantum: str = "50ms") -> None:
        self.quantum, self.waiting = anysched.ns(quantum), deque[Task]()

    def attach(self, task: Task) -> None:
        task.left = self.quantum

    def push(self, task: Task, why: anysched.Why) -> None:
        if why == "undone" or (why == "preempted" and task.left):
            return self.waiting.appendleft(task)
        if task.left == 0 or why in ("expired", "yielded", "preempted"):
            task.left = self.quantum
        self.waiting.append(task)

    def pop(self, cpu: int) -> Task | None:
        chosen = next((task for task in self.waiting if task.may_run_on(cpu)), None)
        if chosen is not None:
            self.waiting.remove(chosen)
        return chosen

    def remove(self, task: Task) -> None:
        self.waiting.remove(task)

    def charge(self, task: Task, ran: int) -> None:
        task.left -= ran

    def slice(self, task: Task) -> int:
        return int(task.left)


class FirstCome(anysched.Policy):
    def key(self, task: Task) -> int:
        return 0
