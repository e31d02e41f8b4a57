"""The tables of an experiment.

Written by generate.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ._table import Load, Table, Time

if TYPE_CHECKING:
    from .experiment import PolicyLike

__all__ = [
    "Claim",
    "Contention",
    "Experiment",
    "Hotplug",
    "Machine",
    "Migration",
    "Quick",
    "Report",
    "Scenario",
    "Sweep",
    "Vm",
]


@dataclass(kw_only=True)
class Migration(Table):
    """What it costs that a task runs on another CPU than before."""

    core: Time | None = None
    """Behind the same last-level cache. Default: "0"."""

    llc: Time | None = None
    """In the same node. Default: "0"."""

    node: Time | None = None
    """On another NUMA node. Default: "0"."""

    thread: Time | None = None
    """On a sibling of its core. Default: "0"."""


@dataclass(kw_only=True)
class Contention(Table):
    """How much longer a task of intensity 100 takes beside another such task, relative to its time
    alone."""

    core: float | None = None
    """On a sibling of its core, through the core's caches. Default: 0.0."""

    llc: float | None = None
    """On a CPU of its last-level cache, through that. Default: 0.0."""


@dataclass(kw_only=True)
class Hotplug(Table):
    """A CPU is put into use or taken out of it."""

    at: Time
    """When, from the beginning of the run."""

    cpu: int
    """Which CPU, from 0."""

    online: bool
    """Whether it is in use from then on."""


@dataclass(kw_only=True)
class Machine(Table):
    """CPUs, and what scheduling costs on them. Costs are CPU time of the CPU that does the work,
    and no task's service; without any, scheduling is free."""

    after_wake: Time | None = None
    """What a task does behind a wake-up by it, until it is in its program again. Default: "0"."""

    capacity: Sequence[int] | None = None
    """The speed of each CPU; 1024 is the fastest."""

    charged: bool | None = None
    """Policies are told that a task also ran for what it cost to switch to it and to interrupt it,
    as kernels do. Default: false."""

    contention: Contention | None = None
    """How much tasks with an `intensity` slow each other down through caches."""

    context_switch: Time | None = None
    """A CPU switches to another task than it ran last. Default: "0"."""

    costs: str | None = None
    """Costs measured in a kernel: a name that comes with the program, a file that `anysched
    calibrate` wrote, or `free`. Costs that are set here go before."""

    cpus: int | None = None
    """So many CPUs, each a core of its own behind one last-level cache."""

    create: Time | None = None
    """Creating a task, as CPU time of its creator; of one from outside, as its own. Default:
    "0"."""

    enqueue: Time | None = None
    """Every enqueue, on the waker's CPU; for a timer or a device, on the CPU that the task ran on
    last. Default: "0"."""

    enqueue_log: Time | None = None
    """Every enqueue, times log2(tasks queued + 1). Default: "0"."""

    exit: Time | None = None
    """Ending a task, as its own CPU time. Default: "0"."""

    hotplug: Sequence[Hotplug] | None = None
    """When CPUs are taken out of use, and put into it."""

    idle_exit: Time | None = None
    """A CPU that was idle picks a task. Default: "0"."""

    ipi: Time | None = None
    """A CPU is kicked by a task on another that wakes or creates one. Default: "0"."""

    kernel_options: str | None = None
    """More of the command line of the kernel that a host boots, Xen's for example. The simulator
    has none."""

    like: str | None = None
    """Tick, costs and settings of policies as a Linux distribution has them."""

    lock_hold: Time | None = None
    """How long an enqueue or a pick holds the runqueue's lock. CPUs wait for it in order. Default:
    "0"."""

    migration: Migration | None = None
    """A task runs on another CPU than before, by how far that is."""

    pick: Time | None = None
    """Every pick. Default: "0"."""

    pick_per_item: Time | None = None
    """Every task that a pick looks at one by one, with the runqueue locked. Default: "0"."""

    smt: float | None = None
    """The speed of a hardware thread whose sibling is busy, relative to its speed alone. Default:
    1.0."""

    tick: Time | None = None
    """The time between two timer ticks of a busy CPU."""

    timer_irq: Time | None = None
    """A tick. Default: "0"."""

    timer_late: Time | None = None
    """The timer that ends a slice is late by up to this, by chance. The task goes on meanwhile, so
    that it is no cost. Default: "0"."""

    topology: str | None = None
    """What CPUs share: levels `nodes`, `packages`, `llcs`, `cores`, `threads` (or `cpus`), or the
    name of a file that `lstopo --of xml` or `lscpu -J` wrote, or of a copy of
    `/sys/devices/system`."""

    wake_irq: Time | None = None
    """An interrupt that wakes a task: a timer or a device. Default: "0"."""


@dataclass(kw_only=True)
class Vm(Table):
    """A virtual machine, or several that are alike. Its CPUs are tasks of the machine."""

    affinity: str | int | Sequence[str | int] | None = None
    """The CPUs that its virtual CPUs may run on."""

    budget: Time | None = None
    """CPU time of each virtual CPU in a period."""

    cap: int | None = None
    """The most CPU time that it gets, in percent of a CPU; 0: no limit. Default: 0."""

    count: int | None = None
    """How many there are; at most 10,000 in all. Default: 1."""

    deadline: Time | None = None
    """From the beginning of a period to the deadline."""

    machine: Machine | None = None
    """The machine that it sees, as [machine] without `hotplug` and `kernel_options`."""

    name: str | None = None
    """What rows and claims call it."""

    period: Time | None = None
    """Of each virtual CPU, for policies with reservations."""

    policy: PolicyLike | None = None
    """The scheduler in it."""

    preferred: str | int | Sequence[str | int] | None = None
    """The CPUs that they should run on (Xen's soft affinity), for policies that know it."""

    start: Time | None = None
    """When it is created. Default: "0"."""

    stop: Time | None = None
    """When it is destroyed, with all that runs in it."""

    vcpus: int | None = None
    """How many CPUs it sees, unless its `machine` says so. Default: 1."""

    weight: int | None = None
    """Its share of CPU time beside others. Default: 256."""

    workload: Sequence[Load | Mapping[str, Any]] | None = None
    """What runs in it; times count from its start."""


@dataclass(kw_only=True)
class Scenario(Table):
    """A load and a machine. What it does not say is as the file says."""

    duration: Time | None = None
    """When its runs end at the latest."""

    machine: Machine | None = None
    """What is different about the machine."""

    name: str | None = None
    """What rows and claims call it."""

    policy: Mapping[str, Any] | None = None
    """What is different for policies, by label: parameters, `machine`."""

    vm: Sequence[Vm] | None = None
    """Its virtual machines, in place of the file's."""

    workload: Sequence[Load | Mapping[str, Any]] | None = None
    """Its loads, in place of the file's."""


@dataclass(kw_only=True)
class Sweep(Table):
    """What is varied. There is a row for each policy and each combination of axis values."""

    _others: ClassVar[str] = "axes"

    of_host: Sequence[str] | None = None
    """Schedulers that the host is expected to have of its own, so that claims can be about them."""

    policy: PolicyLike | Sequence[PolicyLike] | None = None
    """The policies that are compared."""

    seeds: int | None = None
    """How many runs there are of each row, which differ in the seed. Default: 1."""

    axes: Mapping[str, Sequence[Any]] | None = None
    """What is varied: paths and their values."""


@dataclass(kw_only=True)
class Claim(Table):
    """What the results are expected to show, computed for each seed and judged by the 95 %
    confidence interval."""

    id: str
    """What it is called; each once."""

    text: str
    """What is claimed."""

    because: str | None = None
    """Why, in a phrase. Needed for what is not measured."""

    details: str | None = None
    """What there is to say beyond a phrase."""

    expect: str | None = None
    """The comparison: sums, products and numbers of `label.column`, or `label{axis=value}.column`,
    or `label.workload.NAME.column`."""

    measure: str | None = None
    """An expression whose value is shown with the claim."""

    paper: str | None = None
    """What a paper says, in its words or numbers."""

    reading: str | None = None
    """The reading under which it is judged, if the words allow several."""

    size: Sequence[float] | None = None
    """What the value is claimed to be, in the unit of `measure`; judged apart."""

    size_verdict: Literal["holds", "undecided", "does not hold"] | None = None
    """What is expected to become of the size. Default: "holds"."""

    unit: str | None = None
    """What is written behind the value."""

    verdict: (
        Literal[
            "holds",
            "holds under the stated reading",
            "undecided",
            "does not hold",
            "not testable",
            "inconsistent",
        ]
        | None
    ) = None
    """What is expected to become of it."""

    where: Mapping[str, Any] | None = None
    """The rows that it is about: values of axes, of `vm`, `workload` and `task`; a list stands for
    any of its values."""


@dataclass(kw_only=True)
class Report(Table):
    """What the table shows."""

    by: (
        Literal["task", "workload", "vm"]
        | Sequence[Literal["task", "workload", "vm"]]
        | None
    ) = None
    """Rows for each workload or task besides those of all."""

    columns: Sequence[str] | None = None
    """Columns by name: `anysched metrics`. Of some of the tasks:
    `workload.NAME.wakeup_latency_ns_p99`, `task.NAME.busy_ns`."""

    vms: Sequence[str] | None = None
    """Of which virtual machines rows are shown; `all` are those of the whole machine."""


@dataclass(kw_only=True)
class Quick(Table):
    """What a quick version has different."""

    _others: ClassVar[str] = "settings"

    seeds: int | None = None
    """How many seeds."""

    settings: Mapping[str, Any] | None = None
    """Paths and parameters, and their values."""


@dataclass(kw_only=True)
class Experiment(Table):
    """The file: what is to be found out, on which machine, under which load and policies."""

    question: str
    """What the experiment is to find out. Heads every output."""

    claim: Sequence[Claim] | None = None
    """What the results are expected to show, and is judged."""

    duration: Time | None = None
    """When runs end at the latest. Needed if a load never ends."""

    machine: Machine | None = None
    """CPUs, and what scheduling costs on them."""

    policy: PolicyLike | Sequence[PolicyLike] | None = None
    """The policies that are compared. `"all"` are all registered ones."""

    quick: Quick | None = None
    """A smaller version, for `reproduce --quick`."""

    report: Report | None = None
    """What the table shows. Files of results have everything."""

    scenario: Sequence[Scenario] | None = None
    """Loads and machines that are compared side by side, an axis called `scenario`."""

    seed: int | None = None
    """What the seeds of all runs derive from, with the file's name and the axis values. Default:
    1."""

    sweep: Sweep | None = None
    """What is varied: policies, axes, seeds."""

    title: str | None = None
    """The title of tables and plots."""

    vm: Sequence[Vm] | None = None
    """Virtual machines, whose CPUs are tasks of the machine."""

    workload: Sequence[Load | Mapping[str, Any]] | None = None
    """A load: each has a `kind` with keys of its own, and may have a `name`, by which rows, claims
    and columns call it."""
