"""The policies, with their parameters.

Written by generate.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._table import Parameter, PolicyTable
from .spec import Machine

__all__ = [
    "bfs",
    "cfs",
    "cfs_arceos",
    "contention_aware",
    "credit",
    "credit2",
    "d_edf",
    "dm",
    "dm_xen",
    "edf",
    "eevdf",
    "fcfs",
    "gfs",
    "gittins",
    "lottery",
    "m_rsf",
    "mlfq",
    "mlfq_arceos",
    "mqms_loose",
    "osv",
    "pbg",
    "priority",
    "rr",
    "rtds",
    "sedf",
    "sedf_dm",
    "sjf",
    "sjf_ewma",
    "srpt",
    "stride",
    "vfair",
]


def fcfs(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """First come, first served, each task to completion.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "fcfs",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def sjf(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    key: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Shortest job first, each to completion.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    key: Whether the CPU time that a task still needs counts, or what it needed when it became
        ready. (remaining | total) Default: "remaining".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "sjf",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "key": key,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def srpt(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    key: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Shortest remaining processing time, preemptive.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    key: Whether the CPU time that a task still needs counts, or what it needed when it became
        ready. (remaining | total) Default: "remaining".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "srpt",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "key": key,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def rr(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    quantum: Parameter | None = None,
    steal: Parameter | None = None,
    tick: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Round robin with a fixed quantum.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    quantum: Time a task runs before the next one has its turn. (time) Default: "50ms".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    tick: Tick in which the quantum is counted, as ArceOS does (10ms there); 0 ends it exactly.
        (time) Default: "0".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "rr",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "quantum": quantum,
            "steal": steal,
            "tick": tick,
            "machine": machine,
            "changes": changes,
        },
    )


def mlfq(
    *,
    label: str | None = None,
    allotments: Parameter | None = None,
    balance: Parameter | None = None,
    boost: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    levels: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    preemptive: Parameter | None = None,
    slices: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Multilevel feedback queue with allotments and boosts.

    allotments: CPU time after which a task sinks, for each level, top first; auto: one slice each.
        (times, separated by commas) Default: "auto".
    balance: Background balancing between runqueues. (never | linux) Default: "never".
    boost: Time between two boosts, which occur at its multiples; 0 never boosts. (time) Default:
        "1s".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    levels: Number of levels, 1 to 64; auto: one per entry of slices. Levels beyond the entries have
        twice the slice of the level above. (number) Default: "auto".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    preemptive: Whether a task that becomes ready interrupts one of a lower level. (true | false)
        Default: "true".
    slices: Slice of each level, top first; none: until the task leaves the CPU by itself. (times,
        separated by commas) Default: "10ms,20ms,40ms".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "mlfq",
        {
            "label": label,
            "allotments": allotments,
            "balance": balance,
            "boost": boost,
            "cache_hot": cache_hot,
            "layout": layout,
            "levels": levels,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "preemptive": preemptive,
            "slices": slices,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def edf(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Earliest absolute deadline first, preemptive.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "edf",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def dm(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Deadline monotonic: shortest relative deadline first.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "dm",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def priority(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    quantum: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Fixed priorities, preemptive; equals FIFO or RR.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    quantum: Time a task runs before the next one of its priority has its turn (SCHED_RR); none lets
        it run until it blocks or yields (SCHED_FIFO). (time) Default: "none".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "priority",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "quantum": quantum,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def lottery(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    compensation: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    quantum: Parameter | None = None,
    seed: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """A random draw for each quantum, tickets by weight.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    compensation: Whether a task that left part of its quantum unused has more tickets in the next
        draws. (true | false) Default: "true".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    quantum: Time between draws, up to 10s. (time) Default: "10ms".
    seed: Seed of the draws. (number) Default: "0".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "lottery",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "compensation": compensation,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "quantum": quantum,
            "seed": seed,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def stride(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    quantum: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Least pass first; passes advance by 1/weight.

    balance: Background balancing between runqueues. (never | linux) Default: "linux".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "per-cpu".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "linux".
    quantum: Time between decisions, up to 10s. (time) Default: "10ms".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "stride",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "quantum": quantum,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def sjf_ewma(
    *,
    label: str | None = None,
    alpha_log2_den: Parameter | None = None,
    alpha_num: Parameter | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    initial_expected: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """ArceOS: shortest job first by average past turn.

    alpha_log2_den: Binary logarithm of the denominator of that weight, at most 31. (number)
        Default: "4".
    alpha_num: Numerator of the weight of the latest turn, at most the denominator. (number)
        Default: "1".
    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    initial_expected: What a new task is expected to use. (time) Default: "0".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "sjf-ewma",
        {
            "label": label,
            "alpha_log2_den": alpha_log2_den,
            "alpha_num": alpha_num,
            "balance": balance,
            "cache_hot": cache_hot,
            "initial_expected": initial_expected,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def mlfq_arceos(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    base: Parameter | None = None,
    cache_hot: Parameter | None = None,
    growth: Parameter | None = None,
    layout: Parameter | None = None,
    levels: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    reset_ticks: Parameter | None = None,
    steal: Parameter | None = None,
    tick: Parameter | None = None,
    wake_preempts: Parameter | None = None,
    yield_resets_allotment: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """ArceOS: feedback queue counted in ticks.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    base: Slice of the top level, a whole number of ticks. (time) Default: "10ms".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    growth: Factor by which the slice grows from each level to the next lower one. (number) Default:
        "2".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    levels: Number of levels, 1 to 64. (number) Default: "8".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    reset_ticks: Ticks of running tasks after which all return to the top level; 0 never resets.
        (number) Default: "100000".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    tick: Host tick in which everything is counted. (time) Default: "10ms".
    wake_preempts: Whether a task that becomes ready interrupts one of a lower level. (true | false)
        Default: "false".
    yield_resets_allotment: Whether a task that yields gets a full slice again, or keeps what is
        left. (true | false) Default: "true".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "mlfq-arceos",
        {
            "label": label,
            "balance": balance,
            "base": base,
            "cache_hot": cache_hot,
            "growth": growth,
            "layout": layout,
            "levels": levels,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "reset_ticks": reset_ticks,
            "steal": steal,
            "tick": tick,
            "wake_preempts": wake_preempts,
            "yield_resets_allotment": yield_resets_allotment,
            "machine": machine,
            "changes": changes,
        },
    )


def cfs_arceos(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    steal: Parameter | None = None,
    tick: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """ArceOS: fair by weighted ticks.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    tick: Host tick in which everything is counted. (time) Default: "10ms".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "cfs-arceos",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "steal": steal,
            "tick": tick,
            "machine": machine,
            "changes": changes,
        },
    )


def pbg(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    fallback: Parameter | None = None,
    latest: Parameter | None = None,
    layout: Parameter | None = None,
    margin: Parameter | None = None,
    mode: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    noise_seed: Parameter | None = None,
    on_yield: Parameter | None = None,
    order: Parameter | None = None,
    place: Parameter | None = None,
    priorities: Parameter | None = None,
    profile: Parameter | None = None,
    profile_source: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Shortest first by a profile of an earlier run; yielders go on.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    fallback: Order of the tasks that are not planned. (fifo | lifo) Default: "fifo".
    latest: A task that waits and is late unless it runs now goes before all others: whose deadline
        is no further off than what it needs by its record, until it ends, or with `order =
        mean_time` for a dispatch. (true | false) Default: "false".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    margin: How much earlier: as nothing is interrupted, it waits for a dispatch that runs. (time)
        Default: "0".
    mode: `plan`: planned tasks first; without a profile, one is learned. `profile`: learn one.
        `off`: neither. May change during a run: measure, stop, go by what was measured. (off |
        profile | plan) Default: "plan".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    noise_seed: Seed of the noise, which also depends on the key of the task. (number) Default: "0".
    on_yield: What a planned task that yields leaves its CPU to: itself, the best other, all others.
        (stay | next | last) Default: "stay".
    order: Which time of a record orders planned tasks. (total_time | mean_time) Default:
        "total_time".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    priorities: Planned tasks of a higher priority go before others, also when one of these yields.
        (true | false) Default: "false".
    profile: Records KEY=TIME/DISPATCHES, such as 0=12.5ms/100000: of the first task that is
        created, 12.5 ms in all and 100000 dispatches; k7 instead of 0 is the task with the key 7.
        Between records are commas, spaces or line ends; # begins a comment. `auto`: learned in a
        rehearsal. (records) Default: "auto".
    profile_source: Whether the profile comes from a run of the same load, is given by someone who
        knows, or is measured and then made wrong: each time multiplied by a lognormal factor with
        median 1 and this σ, 0 to 10. (measured | given | noisy(σ)) Default: "measured".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "pbg",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "fallback": fallback,
            "latest": latest,
            "layout": layout,
            "margin": margin,
            "mode": mode,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "noise_seed": noise_seed,
            "on_yield": on_yield,
            "order": order,
            "place": place,
            "priorities": priorities,
            "profile": profile,
            "profile_source": profile_source,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def cfs(
    *,
    label: str | None = None,
    await_leaver: Parameter | None = None,
    balance: Parameter | None = None,
    base_slice: Parameter | None = None,
    cache_hot: Parameter | None = None,
    cap_slice: Parameter | None = None,
    child_runs_first: Parameter | None = None,
    gentle_sleepers: Parameter | None = None,
    keep_buddies: Parameter | None = None,
    keep_slice: Parameter | None = None,
    last_buddy: Parameter | None = None,
    latency: Parameter | None = None,
    layout: Parameter | None = None,
    min_granularity: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    next_buddy: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    profile: Parameter | None = None,
    renew_sleepers: Parameter | None = None,
    short_idle: Parameter | None = None,
    start_debit: Parameter | None = None,
    steal: Parameter | None = None,
    tick: Parameter | None = None,
    tunable_scaling: Parameter | None = None,
    wakeup_granularity: Parameter | None = None,
    wakeup_preempt: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Linux up to 6.5: least virtual runtime first.

    await_leaver: A task that blocks counts for min_vruntime until what runs next is charged (up to
        3.15). (true | false) Default: "auto".
    balance: Background balancing between runqueues. (never | linux) Default: "linux".
    base_slice: Slices are at least min_granularity whatever the weight (BASE_SLICE, 5.12). (true |
        false) Default: "auto".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    cap_slice: At a tick, slices are at most a latency (6.5). (true | false) Default: "auto".
    child_runs_first: A new task changes places with its creator if it is behind it. (true | false)
        Default: "false".
    gentle_sleepers: A task that wakes up is ahead by half a latency at most, not by a whole one.
        (true | false) Default: "true".
    keep_buddies: Such a task remains a buddy if it was one (5.14). (true | false) Default: "auto".
    keep_slice: A task that is picked again where it ran goes on with its slice, even if that is
        over (3.15). (true | false) Default: "auto".
    last_buddy: Among many tasks, one that was preempted is preferred. (true | false) Default:
        "true".
    latency: Time in which each of a few ready tasks runs once, up to 1s (sched_latency). (time)
        Default: "6ms".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "per-cpu".
    min_granularity: Time per task of such a period when there are many tasks
        (sched_min_granularity). (time) Default: "750us".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    next_buddy: Among many tasks, one that wakes up is preferred even if it does not preempt. (true
        | false) Default: "false".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "linux".
    profile: The kernel whose defaults the switches have. (3.14 | 3.15 | 4.19 | 5.12 | 5.14 | 6.1 |
        6.5) Default: "6.1".
    renew_sleepers: A task that slept for 104 days is placed without regard to its vruntime (6.1).
        (true | false) Default: "auto".
    short_idle: Beside others, a task of SCHED_IDLE has slices from 750us, unscaled, and is ahead by
        min_granularity when it wakes up, not by latency (6.1). (true | false) Default: "auto".
    start_debit: A new task begins one slice behind. (true | false) Default: "true".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "linux".
    tick: Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends them
        exactly. (time) Default: "auto".
    tunable_scaling: How the three times grow with the number of CPUs, of which at most 8 count.
        (log | none | linear) Default: "log".
    wakeup_granularity: How far behind a running task, in virtual time, one that wakes up must be to
        preempt it, up to 1s (sched_wakeup_granularity). (time) Default: "1ms".
    wakeup_preempt: A task that wakes up may preempt. (true | false) Default: "true".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "cfs",
        {
            "label": label,
            "await_leaver": await_leaver,
            "balance": balance,
            "base_slice": base_slice,
            "cache_hot": cache_hot,
            "cap_slice": cap_slice,
            "child_runs_first": child_runs_first,
            "gentle_sleepers": gentle_sleepers,
            "keep_buddies": keep_buddies,
            "keep_slice": keep_slice,
            "last_buddy": last_buddy,
            "latency": latency,
            "layout": layout,
            "min_granularity": min_granularity,
            "newidle_cost": newidle_cost,
            "next_buddy": next_buddy,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "profile": profile,
            "renew_sleepers": renew_sleepers,
            "short_idle": short_idle,
            "start_debit": start_debit,
            "steal": steal,
            "tick": tick,
            "tunable_scaling": tunable_scaling,
            "wakeup_granularity": wakeup_granularity,
            "wakeup_preempt": wakeup_preempt,
            "machine": machine,
            "changes": changes,
        },
    )


def eevdf(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    balance_eligible: Parameter | None = None,
    base_slice: Parameter | None = None,
    cache_hot: Parameter | None = None,
    custom_slice: Parameter | None = None,
    delay_dequeue: Parameter | None = None,
    delay_keeps_debt: Parameter | None = None,
    delay_zero: Parameter | None = None,
    fork_preemption: Parameter | None = None,
    hrtick: Parameter | None = None,
    layout: Parameter | None = None,
    longest_slice_limits_lag: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_rate: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    place_deadline_initial: Parameter | None = None,
    place_lag: Parameter | None = None,
    place_rel_deadline: Parameter | None = None,
    preempt_short: Parameter | None = None,
    preemption: Parameter | None = None,
    profile: Parameter | None = None,
    protect_at_nice: Parameter | None = None,
    protect_to_parity: Parameter | None = None,
    run_to_parity: Parameter | None = None,
    running_wins_ties: Parameter | None = None,
    scale_deadline: Parameter | None = None,
    short_ends_protection: Parameter | None = None,
    short_runs_next: Parameter | None = None,
    shortest_slice_limits: Parameter | None = None,
    steal: Parameter | None = None,
    tick: Parameter | None = None,
    tunable_scaling: Parameter | None = None,
    wakeup_limits: Parameter | None = None,
    wakeup_preemption: Parameter | None = None,
    yield_forfeits: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Linux since 6.6: earliest eligible virtual deadline first.

    balance: Background balancing between runqueues. (never | linux) Default: "linux".
    balance_eligible: Balancing leaves who is not eligible where it is, unless it has failed before,
        and moves delayed tasks for their load only (from 6.18). (true | false) Default: "auto".
    base_slice: CPU time of one request before scaling, at most 1s; auto is 750us in 6.6, else
        700us. (time) Default: "auto".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    custom_slice: A task's slice is its own, 0.1ms to 100ms (from 6.12). (true | false) Default:
        "auto".
    delay_dequeue: A task that blocks while it is not eligible goes on competing until it is (from
        6.12). (true | false) Default: "auto".
    delay_keeps_debt: What such a task owes does not grow (from 7.2). (true | false) Default:
        "auto".
    delay_zero: A task that was so delayed is owed nothing afterwards (from 6.12). (true | false)
        Default: "auto".
    fork_preemption: A new task may preempt even if its slice is not the shorter one (up to 6.18).
        (true | false) Default: "auto".
    hrtick: Requests end exactly, by a timer of their own, unless a task goes on into its next (from
        7.2). (true | false) Default: "auto".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "per-cpu".
    longest_slice_limits_lag: Lag is limited by the longest slice of the runqueue and a tick, not by
        the task's own slice twice (from 7.2). (true | false) Default: "auto".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_rate: With `ni_random`, CPUs that seldom run out of work look at domains more often (from
        7.2). (true | false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "linux".
    place_deadline_initial: A new task begins with half a slice (from 6.12). (true | false) Default:
        "auto".
    place_lag: A task keeps its lag while it is away (all). (true | false) Default: "auto".
    place_rel_deadline: A task that moves or changes its nice value keeps its request (from 6.12).
        (true | false) Default: "auto".
    preempt_short: The wake-up of a task with a shorter slice ignores the protection (from 6.12).
        (true | false) Default: "auto".
    preemption: When a CPU acts on the decision of another to preempt what it runs (lazy from 7.2,
        else voluntary). (full | lazy | voluntary) Default: "auto".
    profile: The kernel whose defaults the switches have. (6.6 | 6.12 | 6.18 | 7.2 | 7.3) Default:
        "7.3".
    protect_at_nice: A change of nice protects what runs anew (up to 6.18). (true | false) Default:
        "auto".
    protect_to_parity: Against a shorter slice it lasts until the task is not eligible instead
        (7.3). (true | false) Default: "auto".
    run_to_parity: What runs is not preempted while it is eligible and its request lasts (all).
        (true | false) Default: "auto".
    running_wins_ties: Of equal deadlines that of the running task is first (6.6). (true | false)
        Default: "auto".
    scale_deadline: With a nice value, the CPU time left of the request is kept, not its virtual
        time (from 6.18). (true | false) Default: "auto".
    short_ends_protection: It ends the protection even if another task is then first (6.12). (true |
        false) Default: "auto".
    short_runs_next: It preempts and runs next if it is eligible, even if another deadline is
        earlier (7.3). (true | false) Default: "auto".
    shortest_slice_limits: That protection lasts for the shortest slice of the runqueue at most, and
        a charge after it reschedules (from 6.18). (true | false) Default: "auto".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "linux".
    tick: Tick at which requests are seen to end; auto is the machine's or 1ms, 0 ends them exactly.
        (time) Default: "auto".
    tunable_scaling: How base_slice grows with the number of CPUs, of which at most 8 count. (log |
        none | linear) Default: "log".
    wakeup_limits: Which wake-ups limit it anew (short in 6.18, woken in 7.2, all in 7.3). (never |
        short | woken | all) Default: "auto".
    wakeup_preemption: A task that wakes up may preempt (all). (true | false) Default: "auto".
    yield_forfeits: An eligible task that yields gives up the rest of its request (from 6.12, though
        not in 6.12.0). (true | false) Default: "auto".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "eevdf",
        {
            "label": label,
            "balance": balance,
            "balance_eligible": balance_eligible,
            "base_slice": base_slice,
            "cache_hot": cache_hot,
            "custom_slice": custom_slice,
            "delay_dequeue": delay_dequeue,
            "delay_keeps_debt": delay_keeps_debt,
            "delay_zero": delay_zero,
            "fork_preemption": fork_preemption,
            "hrtick": hrtick,
            "layout": layout,
            "longest_slice_limits_lag": longest_slice_limits_lag,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_rate": ni_rate,
            "ni_seed": ni_seed,
            "place": place,
            "place_deadline_initial": place_deadline_initial,
            "place_lag": place_lag,
            "place_rel_deadline": place_rel_deadline,
            "preempt_short": preempt_short,
            "preemption": preemption,
            "profile": profile,
            "protect_at_nice": protect_at_nice,
            "protect_to_parity": protect_to_parity,
            "run_to_parity": run_to_parity,
            "running_wins_ties": running_wins_ties,
            "scale_deadline": scale_deadline,
            "short_ends_protection": short_ends_protection,
            "short_runs_next": short_runs_next,
            "shortest_slice_limits": shortest_slice_limits,
            "steal": steal,
            "tick": tick,
            "tunable_scaling": tunable_scaling,
            "wakeup_limits": wakeup_limits,
            "wakeup_preemption": wakeup_preemption,
            "yield_forfeits": yield_forfeits,
            "machine": machine,
            "changes": changes,
        },
    )


def bfs(
    *,
    label: str | None = None,
    dither: Parameter | None = None,
    fork: Parameter | None = None,
    queue: Parameter | None = None,
    rr_interval: Parameter | None = None,
    scaling: Parameter | None = None,
    sticky: Parameter | None = None,
    tick: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """One runqueue, earliest virtual deadline first, sticky tasks.

    dither: A CPU that picks in the first half of a tick ends slices half a tick early. (true |
        false) Default: "true".
    fork: What a new task gets. (fresh | share) Default: "fresh".
    queue: How waiting tasks are kept; both decide alike. (list | tree) Default: "tree".
    rr_interval: Slice, and a 6.53rd of the time to the deadline of a task of nice 0; 1ms to 1048ms.
        (time) Default: "6ms".
    scaling: Other CPUs leave those alone even if nothing else waits, as with a CPU frequency
        governor that scales. (true | false) Default: "false".
    sticky: Preempted tasks stick to their CPU. (true | false) Default: "true".
    tick: Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends them
        exactly. (time) Default: "auto".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "bfs",
        {
            "label": label,
            "dither": dither,
            "fork": fork,
            "queue": queue,
            "rr_interval": rr_interval,
            "scaling": scaling,
            "sticky": sticky,
            "tick": tick,
            "machine": machine,
            "changes": changes,
        },
    )


def gfs(
    *,
    label: str | None = None,
    busy_factor: Parameter | None = None,
    core_interval: Parameter | None = None,
    dither: Parameter | None = None,
    grouping: Parameter | None = None,
    node_interval: Parameter | None = None,
    package_interval: Parameter | None = None,
    rr_interval: Parameter | None = None,
    steal_high: Parameter | None = None,
    threshold: Parameter | None = None,
    tick: Parameter | None = None,
    victim: Parameter | None = None,
    wake: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """BFS's deadlines in a runqueue per core or package, balanced.

    busy_factor: Intervals are shorter by this factor while a CPU of the group is idle; 1 to 1000.
        (number) Default: "64".
    core_interval: Time between two looks at the other groups of a package, up to 1h; none never
        looks. (time) Default: "64ms".
    dither: A CPU that picks in the first half of a tick ends slices half a tick early. (true |
        false) Default: "true".
    grouping: Which CPUs share a tree. (auto | core | llc | package | node | single | lists of CPUs
        as "0-3;4-7") Default: "auto".
    node_interval: The same for other nodes. (time) Default: "256ms".
    package_interval: The same for the other packages of a node. (time) Default: "128ms".
    rr_interval: Slice, and a 6.53rd of the time to the deadline of a task of nice 0; 1ms to 1048ms.
        (time) Default: "6ms".
    steal_high: A CPU with nothing else to run takes what has woken for others of its group. (true |
        false) Default: "false".
    threshold: A group with more than this percentage of the own load is too busy; at least 100.
        (number) Default: "125".
    tick: Tick at which slices are seen to end, up to 1s; auto is the machine's or 1ms, 0 ends them
        exactly. (time) Default: "auto".
    victim: Which CPU it preempts; with `wake = tree` the latest is BFS's choice. (nearest | latest)
        Default: "nearest".
    wake: Where a woken task waits. (high | tree) Default: "high".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "gfs",
        {
            "label": label,
            "busy_factor": busy_factor,
            "core_interval": core_interval,
            "dither": dither,
            "grouping": grouping,
            "node_interval": node_interval,
            "package_interval": package_interval,
            "rr_interval": rr_interval,
            "steal_high": steal_high,
            "threshold": threshold,
            "tick": tick,
            "victim": victim,
            "wake": wake,
            "machine": machine,
            "changes": changes,
        },
    )


def contention_aware(
    *,
    label: str | None = None,
    quantum: Parameter | None = None,
    strong: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Round robin per CPU; tasks that use the memory much are kept apart.

    quantum: Time a task runs before the next one of its CPU has its turn. (time) Default: "6ms".
    strong: Intensity from which on a task is strong, in percent; 0 to 101, which none has. (number)
        Default: "50".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "contention-aware",
        {
            "label": label,
            "quantum": quantum,
            "strong": strong,
            "machine": machine,
            "changes": changes,
        },
    )


def osv(
    *,
    label: str | None = None,
    lb_batch: Parameter | None = None,
    lb_period: Parameter | None = None,
    penalty: Parameter | None = None,
    start_place: Parameter | None = None,
    tau: Parameter | None = None,
    thyst: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """OSv: least exponentially decayed use of the CPU first.

    lb_batch: The most tasks that a CPU gives away at a time; 1 in OSv. (number) Default: "1".
    lb_period: Interval at which each CPU looks for one that has less to do; 0 never looks. (time)
        Default: "100ms".
    penalty: Charge for taking the CPU from a task that could go on; below thyst. (time) Default:
        "10us".
    start_place: Where a task starts. It wakes where it last ran. (creator | spread) Default:
        "creator".
    tau: Time in which use of the CPU loses all but 1/e of its weight; 1us to 1h. (time) Default:
        "200ms".
    thyst: Head start of the running task; equals take turns of twice that. (time) Default: "5ms".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "osv",
        {
            "label": label,
            "lb_batch": lb_batch,
            "lb_period": lb_period,
            "penalty": penalty,
            "start_place": start_place,
            "tau": tau,
            "thyst": thyst,
            "machine": machine,
            "changes": changes,
        },
    )


def m_rsf(
    *,
    label: str | None = None,
    aging: Parameter | None = None,
    batch: Parameter | None = None,
    deal: Parameter | None = None,
    estimate: Parameter | None = None,
    initial: Parameter | None = None,
    layout: Parameter | None = None,
    q1: Parameter | None = None,
    q2: Parameter | None = None,
    sort_q1: Parameter | None = None,
    sort_q2: Parameter | None = None,
    spill: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Shortest first for two slices, then first come.

    aging: A task that waits this long in Q2 or Q3 moves up a level; none: never. (time) Default:
        "none".
    batch: Whether a level is served only when no task of a higher one waits or runs. (true | false)
        Default: "false".
    deal: How the tasks created at one instant are dealt to the parts of Q1: in turn, or a third to
        each. (cyclic | contiguous-thirds) Default: "cyclic".
    estimate: Whence the CPU time of a task is known: from the host, from an average over its own
        past bursts in which the latest counts 1/16, or from all past bursts of its domain. (oracle
        | ewma | profile) Default: "oracle".
    initial: What a task is expected to use of which there is no past. (time) Default: "0".
    layout: Which CPUs serve which queues: all serve all; three have a part of Q1 each and share Q2
        and Q3; three have a level each; five have a queue each. (shared | bound3 | pipe3 | pipe5)
        Default: "shared".
    q1: Slice in Q1; the source takes the mean CPU time of the tasks. (time) Default: "10ms".
    q2: Slice in Q2; the source takes the mean CPU time of the tasks. (time) Default: "10ms".
    sort_q1: Whether batches and the parts of Q1 are in order of CPU time left, or of arrival. (true
        | false) Default: "true".
    sort_q2: Whether Q2 is in order of CPU time left, or of arrival. (true | false) Default: "true".
    spill: Whether a slice that ends in a part of Q1 sends all tasks waiting there to Q2. (true |
        false) Default: "false".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "m-rsf",
        {
            "label": label,
            "aging": aging,
            "batch": batch,
            "deal": deal,
            "estimate": estimate,
            "initial": initial,
            "layout": layout,
            "q1": q1,
            "q2": q2,
            "sort_q1": sort_q1,
            "sort_q2": sort_q2,
            "spill": spill,
            "machine": machine,
            "changes": changes,
        },
    )


def mqms_loose(
    *,
    label: str | None = None,
    quantum: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Strawman: FCFS and RR queues by task number.

    quantum: Time a task of a round-robin runqueue runs before the next one has its turn. (time)
        Default: "50ms".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "mqms-loose",
        {
            "label": label,
            "quantum": quantum,
            "machine": machine,
            "changes": changes,
        },
    )


def credit(
    *,
    label: str | None = None,
    avg_length: Parameter | None = None,
    boost: Parameter | None = None,
    boost_balance: Parameter | None = None,
    boost_phase: Parameter | None = None,
    dyn_slice: Parameter | None = None,
    limit_yields: Parameter | None = None,
    long_slice: Parameter | None = None,
    migration_delay: Parameter | None = None,
    qlen_includes_selected: Parameter | None = None,
    ratelimit: Parameter | None = None,
    short_slice: Parameter | None = None,
    tickle_one: Parameter | None = None,
    tslice: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Xen: domains share by weight and cap, wakers first.

    avg_length: With dyn_slice: the number of UNDER vCPUs from which slices are short. (number)
        Default: "4".
    boost: Whether a vCPU that wakes goes before those that compute; Credit was without at first.
        (true | false) Default: "true".
    boost_balance: Whether a woken vCPU that finds another one boosted on its PCPU goes to a better
        one. (true | false) Default: "false".
    boost_phase: With dyn_slice: time in BOOST; at least ratelimit. (time) Default: "2ms".
    dyn_slice: Whether BOOST ends after boost_phase and slices are longer while few vCPUs wait.
        (true | false) Default: "false".
    limit_yields: Whether ratelimit also keeps a vCPU that yields, as before Xen 4.8. (true | false)
        Default: "true".
    long_slice: With dyn_slice: slice in UNDER while there are fewer than avg_length. (time)
        Default: "60ms".
    migration_delay: A vCPU that ran within this time is not stolen. (time) Default: "0".
    qlen_includes_selected: With dyn_slice: whether the vCPU that gets the slice counts too. (true |
        false) Default: "true".
    ratelimit: Minimum time that a vCPU runs once picked; 0 for none, else 100us to 500ms. (time)
        Default: "1ms".
    short_slice: With dyn_slice: slice in UNDER otherwise, and after BOOST. (time) Default: "30ms".
    tickle_one: Whether a wake-up kicks one idle PCPU instead of all. (true | false) Default:
        "true".
    tslice: Slice of a vCPU and period of the accounting; whole milliseconds, 1ms to 1s. (time)
        Default: "30ms".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "credit",
        {
            "label": label,
            "avg_length": avg_length,
            "boost": boost,
            "boost_balance": boost_balance,
            "boost_phase": boost_phase,
            "dyn_slice": dyn_slice,
            "limit_yields": limit_yields,
            "long_slice": long_slice,
            "migration_delay": migration_delay,
            "qlen_includes_selected": qlen_includes_selected,
            "ratelimit": ratelimit,
            "short_slice": short_slice,
            "tickle_one": tickle_one,
            "tslice": tslice,
            "machine": machine,
            "changes": changes,
        },
    )


def credit2(
    *,
    label: str | None = None,
    balance_over: Parameter | None = None,
    balance_under: Parameter | None = None,
    cap_period: Parameter | None = None,
    load_precision_shift: Parameter | None = None,
    load_window_shift: Parameter | None = None,
    max_cpus_runqueue: Parameter | None = None,
    migrate_resist: Parameter | None = None,
    ratelimit: Parameter | None = None,
    runqueue: Parameter | None = None,
    smt_power_savings: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Xen since 4.12: most credit first, reset all at once.

    balance_over: The same when no CPU is to spare. (number) Default: "-3".
    balance_under: Binary logarithm of the load difference that is balanced while CPUs are to spare;
        −4 to 20. (number) Default: "0".
    cap_period: Time between two replenishments of a capped domain; 500us to 1h. (time) Default:
        "10ms".
    load_precision_shift: Fractional bits of load averages; 4 to 20. (number) Default: "18".
    load_window_shift: Binary logarithm of the window of load averages in ns; 11 to 40. (number)
        Default: "30".
    max_cpus_runqueue: The most CPUs that share a runqueue; siblings always stay together. (number)
        Default: "16".
    migrate_resist: Lead in credit that a vCPU needs over the running one of a CPU it did not last
        run on. (time) Default: "500us".
    ratelimit: How long a vCPU runs before another may take its CPU; 0 or 100us to 500ms. (time)
        Default: "1ms".
    runqueue: Which CPUs share a runqueue. (cpu | core | socket | node | all) Default: "socket".
    smt_power_savings: Whether woken vCPUs prefer cores that are already busy. (true | false)
        Default: "false".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "credit2",
        {
            "label": label,
            "balance_over": balance_over,
            "balance_under": balance_under,
            "cap_period": cap_period,
            "load_precision_shift": load_precision_shift,
            "load_window_shift": load_window_shift,
            "max_cpus_runqueue": max_cpus_runqueue,
            "migrate_resist": migrate_resist,
            "ratelimit": ratelimit,
            "runqueue": runqueue,
            "smt_power_savings": smt_power_savings,
            "machine": machine,
            "changes": changes,
        },
    )


def sedf(
    *,
    label: str | None = None,
    extra: Parameter | None = None,
    extraweight: Parameter | None = None,
    latency: Parameter | None = None,
    period: Parameter | None = None,
    placement: Parameter | None = None,
    slice: Parameter | None = None,
    start: Parameter | None = None,
    weights: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Xen: a slice per period by earliest deadline; extra time.

    extra: Whether tasks get extra time; without it, each needs a slice. (true | false) Default:
        "true".
    extraweight: Share of extra time; 0: by slice / period, 1 for tasks without a slice. (number)
        Default: "0".
    latency: Length of the first period after a long block, after which periods double; 0: not
        shortened. (time) Default: "0".
    period: Period of a task without one of its own; 10us to 10s. (time) Default: "100ms".
    placement: The CPU of a task: the first it may use (Xen 4.2), or by its number (4.4). (first |
        spread) Default: "first".
    slice: Slice per period of a task without a budget: 5us to the period; 0: extra time only.
        (time) Default: "0".
    start: The first period ends a slice from now; starts then (literal Xen 4.2); or starts at once.
        (slice | wait | period) Default: "slice".
    weights: What domain weights are for: nothing, slices of 100ms, or shares of extra time. (off |
        slices | extra) Default: "off".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "sedf",
        {
            "label": label,
            "extra": extra,
            "extraweight": extraweight,
            "latency": latency,
            "period": period,
            "placement": placement,
            "slice": slice,
            "start": start,
            "weights": weights,
            "machine": machine,
            "changes": changes,
        },
    )


def dm_xen(
    *,
    label: str | None = None,
    dm_key: Parameter | None = None,
    extra: Parameter | None = None,
    extraweight: Parameter | None = None,
    latency: Parameter | None = None,
    period: Parameter | None = None,
    placement: Parameter | None = None,
    slice: Parameter | None = None,
    start: Parameter | None = None,
    weights: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """SEDF by shortest slice, period or deadline.

    dm_key: The fixed key; the smallest runs first. (slice | period | deadline) Default: "slice".
    extra: Whether tasks get extra time; without it, each needs a slice. (true | false) Default:
        "true".
    extraweight: Share of extra time; 0: by slice / period, 1 for tasks without a slice. (number)
        Default: "0".
    latency: Length of the first period after a long block, after which periods double; 0: not
        shortened. (time) Default: "0".
    period: Period of a task without one of its own; 10us to 10s. (time) Default: "100ms".
    placement: The CPU of a task: the first it may use (Xen 4.2), or by its number (4.4). (first |
        spread) Default: "first".
    slice: Slice per period of a task without a budget: 5us to the period; 0: extra time only.
        (time) Default: "0".
    start: The first period ends a slice from now; starts then (literal Xen 4.2); or starts at once.
        (slice | wait | period) Default: "slice".
    weights: What domain weights are for: nothing, slices of 100ms, or shares of extra time. (off |
        slices | extra) Default: "off".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "dm-xen",
        {
            "label": label,
            "dm_key": dm_key,
            "extra": extra,
            "extraweight": extraweight,
            "latency": latency,
            "period": period,
            "placement": placement,
            "slice": slice,
            "start": start,
            "weights": weights,
            "machine": machine,
            "changes": changes,
        },
    )


def d_edf(
    *,
    label: str | None = None,
    dm_key: Parameter | None = None,
    extra: Parameter | None = None,
    extraweight: Parameter | None = None,
    latency: Parameter | None = None,
    mets_to_edf: Parameter | None = None,
    misses_to_dm: Parameter | None = None,
    period: Parameter | None = None,
    placement: Parameter | None = None,
    slice: Parameter | None = None,
    start: Parameter | None = None,
    weights: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """SEDF, by shortest slice after misses in a row.

    dm_key: The key while in DM. (slice | period | deadline) Default: "slice".
    extra: Whether tasks get extra time; without it, each needs a slice. (true | false) Default:
        "true".
    extraweight: Share of extra time; 0: by slice / period, 1 for tasks without a slice. (number)
        Default: "0".
    latency: Length of the first period after a long block, after which periods double; 0: not
        shortened. (time) Default: "0".
    mets_to_edf: Slices in a row, used up in time, that lead back to EDF. (number) Default: "10".
    misses_to_dm: Missed deadlines in a row that lead to DM. (number) Default: "2".
    period: Period of a task without one of its own; 10us to 10s. (time) Default: "100ms".
    placement: The CPU of a task: the first it may use (Xen 4.2), or by its number (4.4). (first |
        spread) Default: "first".
    slice: Slice per period of a task without a budget: 5us to the period; 0: extra time only.
        (time) Default: "0".
    start: The first period ends a slice from now; starts then (literal Xen 4.2); or starts at once.
        (slice | wait | period) Default: "slice".
    weights: What domain weights are for: nothing, slices of 100ms, or shares of extra time. (off |
        slices | extra) Default: "off".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "d-edf",
        {
            "label": label,
            "dm_key": dm_key,
            "extra": extra,
            "extraweight": extraweight,
            "latency": latency,
            "mets_to_edf": mets_to_edf,
            "misses_to_dm": misses_to_dm,
            "period": period,
            "placement": placement,
            "slice": slice,
            "start": start,
            "weights": weights,
            "machine": machine,
            "changes": changes,
        },
    )


def sedf_dm(
    *,
    label: str | None = None,
    back_percent: Parameter | None = None,
    count: Parameter | None = None,
    dm_key: Parameter | None = None,
    extra: Parameter | None = None,
    extraweight: Parameter | None = None,
    full_scan: Parameter | None = None,
    latency: Parameter | None = None,
    percent: Parameter | None = None,
    period: Parameter | None = None,
    placement: Parameter | None = None,
    rule: Parameter | None = None,
    slice: Parameter | None = None,
    start: Parameter | None = None,
    weights: Parameter | None = None,
    window: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """SEDF, by shortest slice while many miss deadlines.

    back_percent: The percentage up to which misses lead back to EDF. (number) Default: "0".
    count: What is counted: vCPUs that a scan comes upon, or slices. (per-scan | per-job) Default:
        "per-scan".
    dm_key: The key while in DM. (slice | period | deadline) Default: "slice".
    extra: Whether tasks get extra time; without it, each needs a slice. (true | false) Default:
        "true".
    extraweight: Share of extra time; 0: by slice / period, 1 for tasks without a slice. (number)
        Default: "0".
    full_scan: Whether a scan continues past the first vCPU that is on time. (true | false) Default:
        "true".
    latency: Length of the first period after a long block, after which periods double; 0: not
        shortened. (time) Default: "0".
    percent: The percentage above which rule = percent leads to DM. (number) Default: "6".
    period: Period of a task without one of its own; 10us to 10s. (time) Default: "100ms".
    placement: The CPU of a task: the first it may use (Xen 4.2), or by its number (4.4). (first |
        spread) Default: "first".
    rule: Which share of misses leads to DM: above count >> 4, or above percent. (shift4 | percent)
        Default: "shift4".
    slice: Slice per period of a task without a budget: 5us to the period; 0: extra time only.
        (time) Default: "0".
    start: The first period ends a slice from now; starts then (literal Xen 4.2); or starts at once.
        (slice | wait | period) Default: "slice".
    weights: What domain weights are for: nothing, slices of 100ms, or shares of extra time. (off |
        slices | extra) Default: "off".
    window: How many are counted before each decision. (number) Default: "256".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "sedf-dm",
        {
            "label": label,
            "back_percent": back_percent,
            "count": count,
            "dm_key": dm_key,
            "extra": extra,
            "extraweight": extraweight,
            "full_scan": full_scan,
            "latency": latency,
            "percent": percent,
            "period": period,
            "placement": placement,
            "rule": rule,
            "slice": slice,
            "start": start,
            "weights": weights,
            "window": window,
            "machine": machine,
            "changes": changes,
        },
    )


def rtds(
    *,
    label: str | None = None,
    budget: Parameter | None = None,
    extratime: Parameter | None = None,
    period: Parameter | None = None,
    renewals: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Xen: earliest deadline first, each vCPU within its budget.

    budget: Budget of vCPUs without one of their own; at least 10us and at most the period. (time)
        Default: "4ms".
    extratime: Whether vCPUs without budget run when none with budget does. (true | false) Default:
        "true".
    period: Period of vCPUs without one of their own; at least 10us. (time) Default: "10ms".
    renewals: Whether extra time delays new periods, as in Xen. (xen | prompt) Default: "xen".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "rtds",
        {
            "label": label,
            "budget": budget,
            "extratime": extratime,
            "period": period,
            "renewals": renewals,
            "machine": machine,
            "changes": changes,
        },
    )


def gittins(
    *,
    label: str | None = None,
    balance: Parameter | None = None,
    cache_hot: Parameter | None = None,
    error: Parameter | None = None,
    error_seed: Parameter | None = None,
    history: Parameter | None = None,
    layout: Parameter | None = None,
    newidle_cost: Parameter | None = None,
    ni_random: Parameter | None = None,
    ni_seed: Parameter | None = None,
    place: Parameter | None = None,
    quantum: Parameter | None = None,
    rank: Parameter | None = None,
    share: Parameter | None = None,
    sizes: Parameter | None = None,
    steal: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Soonest to end first, by how long tasks usually run.

    balance: Background balancing between runqueues. (never | linux) Default: "never".
    cache_hot: A task that ran within this time is moved only when nothing else can be (Linux
        sched_migration_cost). (time) Default: "500us".
    error: What is learned of a key, or of a task without one, is multiplied by a lognormal factor
        with median 1 and this σ, 0 to 10, to see what wrong estimates cost. (σ) Default: "0".
    error_seed: Seed of these factors. (number) Default: "0".
    history: How many of the latest runs count, of a task or key; of all tasks 16 times as many. 4
        to 64. (number) Default: "16".
    layout: Which CPUs share a runqueue. (global | per-cpu | per-llc | per-node) Default: "global".
    newidle_cost: With `steal = linux`, what balancing on running out of work is taken to cost for
        each CPU that is looked at. (time) Default: "0".
    ni_random: With `steal = linux`, a domain is looked at as often as that has helped before (Linux
        NI_RANDOM); otherwise always. By default as in the kernel that the policy follows. (true |
        false) Default: "auto".
    ni_seed: The seed of the chances that this takes. (number) Default: "0".
    place: Where a task that becomes ready is placed, if there are several runqueues. (creator |
        round-robin | least-loaded | linux) Default: "least-loaded".
    quantum: CPU time of a turn, and what a task of which nothing is known is expected to need.
        (time) Default: "1ms".
    rank: Rank: Gittins's, the expected remaining time, or the most that this has been so far.
        (gittins | serpt | m-serpt) Default: "gittins".
    share: Percent of the CPU time that goes to all ready tasks in turn, whatever their ranks.
        (number) Default: "10".
    sizes: How long tasks run, if that is known: exp(10ms), uniform(1ms, 5ms), pareto(1.5, 1ms,
        10s), hyperexp(0.9: 1ms, 0.1: 50ms), or times that are equally likely. `auto`: learned.
        (distribution | times, separated by commas, spaces or lines) Default: "auto".
    steal: From which other runqueues a CPU with nothing to run may pull. (never | llc | node |
        machine | linux) Default: "machine".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "gittins",
        {
            "label": label,
            "balance": balance,
            "cache_hot": cache_hot,
            "error": error,
            "error_seed": error_seed,
            "history": history,
            "layout": layout,
            "newidle_cost": newidle_cost,
            "ni_random": ni_random,
            "ni_seed": ni_seed,
            "place": place,
            "quantum": quantum,
            "rank": rank,
            "share": share,
            "sizes": sizes,
            "steal": steal,
            "machine": machine,
            "changes": changes,
        },
    )


def vfair(
    *,
    label: str | None = None,
    cap_period: Parameter | None = None,
    guard: Parameter | None = None,
    lag: Parameter | None = None,
    latency: Parameter | None = None,
    min_request: Parameter | None = None,
    min_slice: Parameter | None = None,
    resist: Parameter | None = None,
    switch_budget: Parameter | None = None,
    machine: Machine | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
) -> PolicyTable:
    """Our own: virtual deadlines by usual bursts and switch cost.

    cap_period: Time between two replenishments of a capped domain; 500us to 1h. (time) Default:
        "10ms".
    guard: How long a vCPU keeps its CPU before a woken one may take it; at most 100ms. (time)
        Default: "100us".
    lag: How far before the clock a deadline may lie, in virtual time; at most 1s. (time) Default:
        "10ms".
    latency: Time within which all computing vCPUs should have a turn; 100us to 1s. (time) Default:
        "4ms".
    min_request: Least request of a woken vCPU; 10us to latency. (time) Default: "200us".
    min_slice: Least slice of a computing vCPU; 10us to latency. (time) Default: "500us".
    resist: How much later another CPU's vCPU must be due to be preempted instead; at most 1s.
        (time) Default: "200us".
    switch_budget: The slice is at least this many times the measured cost of a switch. (number)
        Default: "128".
    label: What rows and claims call it.
    machine: What is different about its machine. Needs a `label`, which says so.
    changes: Parameters that change during a run.
    """
    return PolicyTable(
        "vfair",
        {
            "label": label,
            "cap_period": cap_period,
            "guard": guard,
            "lag": lag,
            "latency": latency,
            "min_request": min_request,
            "min_slice": min_slice,
            "resist": resist,
            "switch_budget": switch_budget,
            "machine": machine,
            "changes": changes,
        },
    )
