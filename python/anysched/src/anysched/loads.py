"""The kinds of load.

Written by generate.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ._table import Load, Time

__all__ = [
    "ArceosTest",
    "Batch",
    "ClosedLoop",
    "Csv",
    "Cyclictest",
    "Hackbench",
    "Hog",
    "Interactive",
    "Interbench",
    "Model",
    "Open",
    "Parallel",
    "PerfData",
    "Perfetto",
    "Periodic",
    "Ping",
    "RtApp",
    "Schbench",
    "Service",
    "Simso",
    "Swf",
    "Systrace",
    "TaskSet",
    "Tasks",
    "Trace",
    "TraceDat",
]


@dataclass(kw_only=True)
class Batch(Load):
    """Tasks that are all there at once."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "batch"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    at: Time | None = None
    """When they arrive. Without it: 0ns."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    service: str | int | None = None
    """CPU time of a task; at least 1 ns. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    tasks: int | None = None
    """How many tasks there are. Without it: needed."""


@dataclass(kw_only=True)
class Open(Load):
    """Tasks that arrive one after another, whatever has become of those before."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "open"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    interarrival: str | int | None = None
    """Time between two arrivals. Without it: `load` or `rate`."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    load: float | None = None
    """The fraction of all CPUs that a Poisson process of tasks keeps busy; overload from 1 up.
    Without it: `rate` or `interarrival`."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    rate: float | None = None
    """Rate at which tasks of a Poisson process arrive. In tasks per second. Without it: `load` or
    `interarrival`."""

    service: str | int | None = None
    """CPU time of a task; at least 1 ns. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    start: Time | None = None
    """When arrivals start; the first task arrives one time between arrivals later. Without it:
    0ns."""

    tasks: int | None = None
    """How many tasks there are. Without it: no limit."""

    until: Time | None = None
    """No task arrives at this time or later. Without it: no limit."""


@dataclass(kw_only=True)
class ClosedLoop(Load):
    """Clients that wait for the answer before they ask again."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "closed-loop"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    clients: int | None = None
    """How many clients there are; all start by thinking. Without it: needed."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    each: int | None = None
    """How many requests each client makes. Without it: no limit."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    persistent: bool | None = None
    """Whether each client has one task on the machine, from its first request on. It serves the
    client's requests and is blocked while the client thinks. Without it: false."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    requests: int | None = None
    """How many requests there are in all. Without it: no limit."""

    service: str | int | None = None
    """CPU time of a request; at least 1 ns. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    think: str | int | None = None
    """Time that a client thinks before each request. Without it: 0ns."""

    until: Time | None = None
    """No request is made at this time or later. Without it: no limit."""


@dataclass(kw_only=True)
class Periodic(Load):
    """Tasks that are released once per period."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "periodic"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    budget: Time | None = None
    """CPU time reserved per period. Without it: that of a job, if it is constant."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    jitter: Time | None = None
    """Maximum delay of a release, drawn uniformly for each job; at most the period. Without it:
    0ns."""

    jobs: int | None = None
    """How many jobs each task has. Without it: no limit."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    offset: str | int | None = None
    """When a task arrives: its first release before jitter, drawn for each task. Without it:
    0ns."""

    period: Time | None = None
    """Time between two releases. Without it: needed."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    run: str | int | None = None
    """CPU time of a job; at least 1 ns. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    tasks: int | None = None
    """How many tasks there are. Without it: 1."""

    until: Time | None = None
    """No release is due at this time or later, before jitter. Without it: no limit."""


@dataclass(kw_only=True)
class TaskSet(Load):
    """Periodic tasks with random periods and utilisations of a given sum."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "task-set"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    jitter: Time | None = None
    """Maximum delay of a release, drawn uniformly for each job; at most the shortest period.
    Without it: 0ns."""

    jobs: int | None = None
    """How many jobs each task has. Without it: no limit."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    load: float | None = None
    """The sum of their utilisations as a fraction of all CPUs; no task needs more than one CPU.
    Without it: needed."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    offset: str | int | None = None
    """When a task arrives: its first release before jitter, drawn for each task. Without it:
    0ns."""

    period_step: Time | None = None
    """Periods are rounded to multiples of this, which keeps their common multiple small; at most
    the shortest period. Without it: 1ns."""

    periods: Sequence[Time] | None = None
    """The shortest and the longest period. Without it: needed."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    tasks: int | None = None
    """How many tasks there are. Without it: needed."""

    until: Time | None = None
    """No release is due at this time or later, before jitter. Without it: no limit."""


@dataclass(kw_only=True)
class Interactive(Load):
    """Tasks that run and sleep in turn."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "interactive"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    offset: str | int | None = None
    """When a task arrives; drawn for each task. Without it: 0ns."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    rounds: int | None = None
    """How often each of them runs; it then exits. Without it: no limit."""

    run: str | int | None = None
    """CPU time between two sleeps; at least 1 ns. Without it: needed."""

    sleep: str | int | None = None
    """Time asleep, from the end of a run. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    tasks: int | None = None
    """How many tasks there are. Without it: 1."""

    until: Time | None = None
    """A task that would wake up at this time or later exits instead of sleeping. Without it: no
    limit."""


@dataclass(kw_only=True)
class Hog(Load):
    """Tasks that use all the CPU time they get."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "hog"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    check: Time | None = None
    """CPU time between two looks at the clock, which bounds what a task uses after `until`. Without
    it: 1ms."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    offset: str | int | None = None
    """When a task arrives; drawn for each task. Without it: 0ns."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    tasks: int | None = None
    """How many tasks there are. Without it: 1."""

    until: Time | None = None
    """When they end. Without it: no limit."""


@dataclass(kw_only=True)
class Service(Load):
    """Requests from elsewhere, and tasks that answer them."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "service"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    hop: Time | None = None
    """Time that a message takes from the client to this machine, and back. Without it: 50us."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    interarrival: str | int | None = None
    """Time between two requests. Without it: `rate`."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    rate: float | None = None
    """Rate at which requests of a Poisson process are sent. In requests per second. Without it:
    `interarrival`."""

    requests: int | None = None
    """How many requests there are. Without it: no limit."""

    servers: int | None = None
    """How many tasks serve. Without it: 1."""

    service: str | int | None = None
    """CPU time for a request; at least 1 ns. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    until: Time | None = None
    """No request is sent at this time or later. Without it: no limit."""


@dataclass(kw_only=True)
class Ping(Load):
    """A task that asks another virtual machine at fixed times."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "ping"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    answer: str | int | None = None
    """CPU time for an answer, in the other machine; at least 1 ns. Without it: that of `work`."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    every: Time | None = None
    """Time between two messages. Without it: 1s."""

    forward: str | int | None = None
    """CPU time for handing on a message, in the machine `via`; at least 1 ns. Without it: 10us."""

    hop: Time | None = None
    """Time that a message takes from one machine to the other, and back; with `via`, each half of
    the way. Without it: 50us."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    offset: str | int | None = None
    """When the first message is sent. Without it: 0ns."""

    pings: int | None = None
    """How many messages there are. Without it: no limit."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    to: str | None = None
    """The name of the `[[vm]]` that is pinged. Without it: needed."""

    via: str | None = None
    """The name of the `[[vm]]` that hands messages on, as a driver domain does: a task there takes
    and sends on each question, another one each answer. Without it: straight from one to the
    other."""

    work: str | int | None = None
    """CPU time for sending a message, and for taking an answer; at least 1 ns. Without it: 20us."""


@dataclass(kw_only=True)
class Parallel(Load):
    """Tasks that compute and meet at a barrier, perhaps with a lock that they need."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "parallel"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    locked: Time | None = None
    """CPU time while holding the lock, in each round; with 0 there is no lock. Without it: 0ns."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    rounds: int | None = None
    """How many rounds there are. Without it: 1."""

    run: str | int | None = None
    """CPU time of a task in a round; at least 1 ns. Without it: needed."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    spin: bool | None = None
    """Whether tasks that wait for the lock use the CPU instead of sleeping. Without it: false."""

    tasks: int | None = None
    """How many tasks there are. Without it: 1."""


@dataclass(kw_only=True)
class Interbench(Load):
    """Interbench: is a task of a desktop on time beside a background load?."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "interbench"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    against: Literal["burn", "none", "x", "audio", "video", "gaming", "custom"] | None = None
    """What runs beside it: tasks that never sleep, nothing, or one of the tasks that are measured.
    Without it: burn."""

    burners: int | None = None
    """How many tasks of `burn` there are. Without it: 4."""

    custom_interval: Time | None = None
    """The interval of `custom`. Without it: 50ms."""

    custom_run: Time | None = None
    """CPU time of `custom` in each interval. Without it: 5ms."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    duration: Time | None = None
    """How long the task is measured. Without it: 30s."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    load_nice: int | None = None
    """The nice value of what runs beside the task. Without it: 0."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    pause: Time | None = None
    """How long the other tasks run before the task begins. Without it: 1s."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    task: Literal["x", "audio", "video", "gaming", "custom"] | None = None
    """What the measured task does. Without it: x."""


@dataclass(kw_only=True)
class Cyclictest(Load):
    """cyclictest: how late do threads wake up that sleep until fixed times?."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "cyclictest"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    distance: Time | None = None
    """How much longer the interval of each further thread is. Without it: 500us."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    duration: Time | None = None
    """When the threads end. Without it: no limit."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    interval: Time | None = None
    """The interval of the first thread. Without it: 1ms."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    loops: int | None = None
    """How many cycles the first thread to end does. Without it: no limit."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    threads: int | None = None
    """How many threads there are, at most 1024. Without it: 1."""


@dataclass(kw_only=True)
class Schbench(Load):
    """schbench: how long do workers wait that are woken in batches?."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "schbench"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    duration: Time | None = None
    """When no more requests are begun. Without it: 30s."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    message_threads: int | None = None
    """How many message threads there are. Without it: 1."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    sleep: Time | None = None
    """How long a request sleeps. Without it: 100us."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    work: Time | None = None
    """CPU time of a request; at least 1 ns. Without it: 17ms."""

    workers: int | None = None
    """Workers of each message thread. Without it: CPUs by message threads, rounded up."""


@dataclass(kw_only=True)
class Hackbench(Load):
    """hackbench: how long do many tasks take to send each other messages?."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "hackbench"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    buffer: int | None = None
    """How many messages a pipe holds. Without it: 640."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    fds: int | None = None
    """How many senders, and how many receivers, a group has. Without it: 20."""

    groups: int | None = None
    """How many groups there are. Without it: 10."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    loops: int | None = None
    """How many messages a sender sends to each receiver. Without it: 100."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    receive: Time | None = None
    """CPU time for receiving a message. Without it: 1us."""

    send: Time | None = None
    """CPU time for sending a message. Without it: 1us."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""


@dataclass(kw_only=True)
class ArceosTest(Load):
    """The scheduler tests of ArceOS: tasks compute, yield, and do it again."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "arceos-test"}

    affinity: str | int | None = None
    """The CPUs that they may run on. Without it: all."""

    at: Time | None = None
    """When the tasks come. Without it: 0ns."""

    case: Literal["equal", "unequal", "yield", "realtime", "occupy"] | None = None
    """Which test it is, or is derived from. Without it: needed."""

    deadline: Time | None = None
    """Time from the arrival or release of a job to its deadline. Without it: none; of periodic
    tasks, the period."""

    domain: int | None = None
    """The group that they belong to. Without it: 0."""

    duration: Time | None = None
    """When groups are counted and all tasks end, since they came. Without it: when groups are done;
    in `unequal`, 5s."""

    every: Time | None = None
    """From the beginning of a run to that of the next. Without it: needed if there are several."""

    groups: int | Sequence[int] | None = None
    """Groups of each task, each followed by a yield. Without it: as in the test."""

    intensity: int | None = None
    """How much they use the memory behind the caches, of the most that a task can: machines with
    `contention` slow them down by it, and policies may go by it. In %. Without it: 0."""

    iteration: str | None = None
    """CPU time of an iteration. Without it: 2.28ns; in `unequal`, 0.93ns."""

    iterations: int | Sequence[int] | None = None
    """Iterations of a group. Without it: as in the test."""

    key: int | None = None
    """The key by which policies that learn from an earlier run recognise the tasks; those with the
    same key count as one that runs several times. Without it: the order of creation."""

    name: str | None = None
    """The name of the only task; several are called `name-0`, `name-1` and so on. Without it:
    none."""

    nice: int | None = None
    """Their nice value. Without it: 0."""

    numbered_from: int | None = None
    """The number of the first task in columns, for several tests in one file. Without it: 0."""

    priority: int | None = None
    """Their fixed priority, for policies that use one; larger is more urgent. Without it: 0."""

    runs: int | None = None
    """How often the test is run, with tasks of its own each time; their numbers go on. Without it:
    1."""

    slice: Time | None = None
    """Their own slice, for policies that let a task choose it (sched_attr::sched_runtime of Linux);
    periodic tasks have none. Without it: the policy's."""

    threads: int | None = None
    """How many tasks compute; those beyond the test's own do what its last one does. Without it: as
    many as in a list, or as in the test."""


@dataclass(kw_only=True)
class Tasks(Load):
    """A list of tasks as CSV: when each arrives and how long it runs."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "tasks"}

    file: str | None = None
    """The list: CSV with `arrival_ns`, `service_ns` and perhaps `name`, `nice`, `affinity`,
    `deadline_ns`. Without it: needed."""

    name: str | None = None
    """What rows and claims call the load."""


@dataclass(kw_only=True)
class Csv(Load):
    """A table with columns of any name, such as the trace of a cluster."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "csv"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    arrival: str | None = None
    """The column with the time at which a task arrives. Without it: arrival, service, end."""

    columns: str | None = None
    """Names of the columns, between commas, of a table without a line of names. Without it: the
    first line names them."""

    end: str | None = None
    """The column with the time at which a task ends. Without it: arrival, service, end."""

    file: str | None = None
    """The table, plain or packed. Without it: needed."""

    from_: Time | None = None
    """What arrives less than this after the earliest is left out; times of the load count from it.
    Without it: 0s."""

    jobs: int | None = None
    """Only so many lines, the first ones of the window. Without it: all."""

    name: str | None = None
    """The column with a task's name. Without it: no names."""

    separator: Literal["comma", "semicolon", "tab", "space"] | None = None
    """What stands between columns. Without it: comma."""

    service: str | None = None
    """The column with the time that a task takes. Without it: arrival, service, end."""

    service_unit: Literal["s", "ms", "us", "ns"] | None = None
    """What those of `service` count, if it is something else. Without it: as `unit`."""

    tasks: str | None = None
    """The column that says how many tasks a line stands for. Without it: one each."""

    unit: Literal["s", "ms", "us", "ns"] | None = None
    """What the numbers of these columns count. Without it: s."""

    until: Time | None = None
    """What arrives this long after the earliest or later is left out. Without it: no limit."""


@dataclass(kw_only=True)
class Trace(Load):
    """A recording of the Linux scheduler as text: ftrace, trace-cmd report or perf script."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "trace"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    file: str | None = None
    """The recording, plain or packed. Without it: needed."""

    from_: Time | None = None
    """What was recorded less than this after the first event is left out. Without it: 0s."""

    name: str | None = None
    """What rows and claims call the load."""

    softirqs: Literal["by-evidence", "task", "outside"] | None = None
    """Who counts as the waker when a soft interrupt wakes: the running task; timers and devices; or
    for each woken task whichever its wake-ups suggest. Without it: by-evidence."""

    until: Time | None = None
    """What was recorded this long after the first event or later is left out. Without it: no
    limit."""

    waker_stays: Time | None = None
    """A task that has woken another and then runs for no longer than this before it does something
    else is on its way out of the kernel, where it is not preempted: the other is woken after it. 0
    wakes at the recorded time. Without it: 3us."""


@dataclass(kw_only=True)
class TraceDat(Load):
    """A recording by trace-cmd: trace.dat."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "trace-dat"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    file: str | None = None
    """The recording. Without it: needed."""

    from_: Time | None = None
    """What was recorded less than this after the first event is left out. Without it: 0s."""

    name: str | None = None
    """What rows and claims call the load."""

    softirqs: Literal["by-evidence", "task", "outside"] | None = None
    """Who counts as the waker when a soft interrupt wakes: the running task; timers and devices; or
    for each woken task whichever its wake-ups suggest. Without it: by-evidence."""

    until: Time | None = None
    """What was recorded this long after the first event or later is left out. Without it: no
    limit."""

    waker_stays: Time | None = None
    """A task that has woken another and then runs for no longer than this before it does something
    else is on its way out of the kernel, where it is not preempted: the other is woken after it. 0
    wakes at the recorded time. Without it: 3us."""


@dataclass(kw_only=True)
class PerfData(Load):
    """A recording by perf: perf.data."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "perf-data"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    file: str | None = None
    """The recording. Without it: needed."""

    from_: Time | None = None
    """What was recorded less than this after the first event is left out. Without it: 0s."""

    name: str | None = None
    """What rows and claims call the load."""

    softirqs: Literal["by-evidence", "task", "outside"] | None = None
    """Who counts as the waker when a soft interrupt wakes: the running task; timers and devices; or
    for each woken task whichever its wake-ups suggest. Without it: by-evidence."""

    until: Time | None = None
    """What was recorded this long after the first event or later is left out. Without it: no
    limit."""

    waker_stays: Time | None = None
    """A task that has woken another and then runs for no longer than this before it does something
    else is on its way out of the kernel, where it is not preempted: the other is woken after it. 0
    wakes at the recorded time. Without it: 3us."""


@dataclass(kw_only=True)
class Perfetto(Load):
    """A recording by Perfetto."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "perfetto"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    file: str | None = None
    """The recording, plain or packed. Without it: needed."""

    from_: Time | None = None
    """What was recorded less than this after the first event is left out. Without it: 0s."""

    name: str | None = None
    """What rows and claims call the load."""

    softirqs: Literal["by-evidence", "task", "outside"] | None = None
    """Who counts as the waker when a soft interrupt wakes: the running task; timers and devices; or
    for each woken task whichever its wake-ups suggest. Without it: by-evidence."""

    until: Time | None = None
    """What was recorded this long after the first event or later is left out. Without it: no
    limit."""

    waker_stays: Time | None = None
    """A task that has woken another and then runs for no longer than this before it does something
    else is on its way out of the kernel, where it is not preempted: the other is woken after it. 0
    wakes at the recorded time. Without it: 3us."""


@dataclass(kw_only=True)
class Systrace(Load):
    """A recording by systrace, as JSON or HTML."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "systrace"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    file: str | None = None
    """The recording, plain or packed. Without it: needed."""

    from_: Time | None = None
    """What was recorded less than this after the first event is left out. Without it: 0s."""

    name: str | None = None
    """What rows and claims call the load."""

    softirqs: Literal["by-evidence", "task", "outside"] | None = None
    """Who counts as the waker when a soft interrupt wakes: the running task; timers and devices; or
    for each woken task whichever its wake-ups suggest. Without it: by-evidence."""

    until: Time | None = None
    """What was recorded this long after the first event or later is left out. Without it: no
    limit."""

    waker_stays: Time | None = None
    """A task that has woken another and then runs for no longer than this before it does something
    else is on its way out of the kernel, where it is not preempted: the other is woken after it. 0
    wakes at the recorded time. Without it: 3us."""


@dataclass(kw_only=True)
class RtApp(Load):
    """A file of rt-app."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "rt-app"}

    file: str | None = None
    """The file. Without it: needed."""

    name: str | None = None
    """What rows and claims call the load."""


@dataclass(kw_only=True)
class Simso(Load):
    """Tasks and machine of SimSo, as XML."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "simso"}

    file: str | None = None
    """The file, plain or packed. Without it: needed."""

    name: str | None = None
    """What rows and claims call the load."""


@dataclass(kw_only=True)
class Swf(Load):
    """A job log in the Standard Workload Format."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "swf"}

    _names: ClassVar[dict[str, str]] = {"from_": "from"}

    file: str | None = None
    """The log, plain or packed. Without it: needed."""

    from_: Time | None = None
    """What comes before this time is left out; times of the load count from it. Without it: 0s."""

    jobs: int | None = None
    """Only so many jobs, the first ones of the window. Without it: all."""

    name: str | None = None
    """What rows and claims call the load."""

    processors: Literal["task-each", "one-task"] | None = None
    """What a job on several processors becomes: a task on each, or one task. Without it: task-
    each."""

    until: Time | None = None
    """What comes at this time or later is left out. Without it: no limit."""


@dataclass(kw_only=True)
class Model(Load):
    """An explicit model as JSON: every task with what it does."""

    _fixed: ClassVar[dict[str, Any]] = {"kind": "model"}

    file: str | None = None
    """The model, plain or packed. Without it: needed."""

    name: str | None = None
    """What rows and claims call the load."""
