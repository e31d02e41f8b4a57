"""Policies written in Python: for classes, and for first ideas.

They run in the simulator, on as many CPUs as you like, under the checks that hold every policy to
the contract between schedulers and hosts. Each instance is the rule of one runqueue; there is one
for all CPUs unless you say otherwise (`using(layout="per-cpu")`). All times are whole numbers of
nanoseconds.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, ClassVar, Literal, Self, TypeAlias

from . import _core
from ._core import Task
from .errors import UsageError

__all__ = ["Configured", "Key", "Policy", "RunQueue", "Task", "Why", "ns"]

Key: TypeAlias = int | float | tuple[int | float, ...]
"""What tasks are ordered by; the least goes first, and of equals the one that came first."""

Why: TypeAlias = Literal[
    "new", "woken", "resumed", "moved", "expired", "preempted", "yielded", "undone"
]
"""Why a task enters a runqueue: it is new, or was woken; the host had taken it out for a moment; it
comes from another runqueue; or it ran until now, and its slice ended, it was preempted, it yielded,
or it could not be started after all."""


def ns(time: str | int) -> int:
    """A time in ns: `"10ms"`, `"1.5us"`; a number is one already."""
    return time if isinstance(time, int) else _core.parse_time(time)


class _Common(_core.Rule):
    """What both ways to write a policy have. Hooks that a class does not define are not called."""

    clairvoyant: ClassVar[bool] = False
    """Whether it reads `task.burst`, which no kernel knows. Results of such a policy are marked."""

    quantum: ClassVar[str | int | None] = None
    """How long a task runs at a time at most; None: until it blocks, ends, yields or is
    preempted. `slice` decides it task by task."""

    tick_period: ClassVar[str | int | None] = None
    """The period at which `tick` is called, unless the machine has another."""

    def attach(self, task: Task) -> None:
        """`task` is new. Asked of the first runqueue."""

    def detach(self, task: Task) -> None:
        """`task` has ended."""

    def update(self, task: Task) -> None:
        """The weight, the priority or another parameter of `task` has changed."""

    def charge(self, task: Task, ran: int) -> None:
        """`task` has run for `ran` since it was picked or last charged."""

    def leave(self, task: Task, why: Literal["blocked", "exited"]) -> None:
        """`task` stops running here and is not ready; it has been charged."""

    def slice(self, task: Task) -> int | None:
        """How long `task`, which is about to run, may run; None: there is no limit."""
        return None

    def tick(self, task: Task) -> bool:
        """The tick, while `task` runs; whether its CPU is to pick again."""
        return False

    def preempts(self, task: Task, running: Task) -> bool:
        """Whether `task`, which has just become ready, is to interrupt `running`."""
        return False

    @classmethod
    def using(
        cls,
        *,
        label: str | None = None,
        layout: Literal["global", "per-cpu", "per-llc", "per-node"] | None = None,
        place: Literal["creator", "round-robin", "least-loaded"] | None = None,
        steal: Literal["never", "llc", "node", "machine"] | None = None,
        **arguments: Any,
    ) -> Configured:
        """This policy with arguments for `__init__`, another label, or other runqueues."""
        settings = {"layout": layout, "place": place, "steal": steal}
        return Configured(cls, label, {k: v for k, v in settings.items() if v}, arguments)


class Policy(_Common):
    """A policy that orders tasks by a key.

    class ShortestFirst(anysched.Policy):
        clairvoyant = True

        def key(self, task):
            return task.burst
    """

    preemptive: ClassVar[bool] = False
    """Whether a task that becomes ready interrupts one that runs and has a larger key."""

    def key(self, task: Task) -> Key:
        """By what `task` is ordered, asked when it enters the runqueue."""
        raise NotImplementedError(f"{type(self).__name__} has no `key`")


class RunQueue(_Common):
    """A policy that keeps its own queue."""

    def push(self, task: Task, why: Why) -> None:
        """`task` enters the runqueue."""
        raise NotImplementedError(f"{type(self).__name__} has no `push`")

    def pop(self, cpu: int) -> Task | None:
        """Takes out the task that `cpu` is to run: one that waits here and of which
        `task.may_run_on(cpu)` is true. Asked only while tasks wait here."""
        raise NotImplementedError(f"{type(self).__name__} has no `pop`")

    def remove(self, task: Task) -> None:
        """Takes out `task`, which waits here: it is no longer ready, or goes to another
        runqueue."""
        raise NotImplementedError(
            f"task {task.id} leaves the runqueue without having run: {type(self).__name__} needs "
            "a method `remove` that takes it out of its queue"
        )


_HOOKS = ("attach", "detach", "update", "charge", "leave", "slice", "tick", "preempts")


class Configured:
    """A policy class with arguments, a label and settings."""

    def __init__(
        self,
        cls: type[_Common],
        label: str | None,
        settings: dict[str, str],
        arguments: dict[str, Any],
    ) -> None:
        self.cls = cls
        self.settings = settings
        self.arguments = arguments
        given = [f"{key}={value}" for key, value in {**arguments, **settings}.items()]
        given_text = f" {' '.join(given)}" if given else ""
        self.label = label or f"{cls.__name__}{given_text} (Python)"

    @classmethod
    def of(cls, policy: type[_Common] | Self) -> Configured:
        return policy if isinstance(policy, Configured) else Configured(policy, None, {}, {})

    def entry(self) -> dict[str, Any]:
        """The entry in an experiment, for which the class is registered."""
        return {
            "name": "python",
            "class": self.registered(),
            "label": self.label,
            **self.settings,
        }

    def registered(self) -> str:
        """The name under which the class is registered, which tells its code, too."""
        cls, arguments = self.cls, self.arguments
        if not issubclass(cls, (Policy, RunQueue)):
            raise UsageError(f"{cls.__name__} derives from neither Policy nor RunQueue")
        ordered = issubclass(cls, Policy)
        needed = ("key",) if ordered else ("push", "pop")
        base = Policy if ordered else RunQueue
        if missing := [name for name in needed if not _defines(cls, base, name)]:
            raise UsageError(f"{cls.__name__} needs a method `{missing[0]}`")
        try:
            inspect.signature(cls.__init__).bind(None, **arguments)
        except TypeError as error:
            raise UsageError(f"{cls.__name__} cannot be made with {arguments}: {error}") from None
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        name = f"{cls.__module__}.{cls.__qualname__}({given}) {_digest(cls)}"
        self.register(name)
        return name

    def register(self, name: str) -> None:
        """Registers the class under a name, as on another computer than where it was made."""
        cls, arguments = self.cls, self.arguments
        ordered = issubclass(cls, Policy)
        base = Policy if ordered else RunQueue
        make: Callable[[], _Common] = lambda: cls(**arguments)  # noqa: E731
        _core.register(
            name,
            make,
            hooks=[hook for hook in _HOOKS if _defines(cls, base, hook)],
            ordered=ordered,
            clairvoyant=cls.clairvoyant,
            preemptive=bool(getattr(cls, "preemptive", False)),
            quantum=None if cls.quantum is None else ns(cls.quantum),
            tick=None if cls.tick_period is None else ns(cls.tick_period),
        )


def _defines(cls: type, base: type, hook: str) -> bool:
    return getattr(cls, hook) is not getattr(base, hook)


def _digest(cls: type) -> str:
    """Tells versions of a class apart: results of another one are other results."""
    parts = []
    for one in cls.__mro__:
        if one in (Policy, RunQueue, _Common):
            break
        try:
            parts.append(inspect.getsource(one))
        except (OSError, TypeError):
            parts.append(repr(sorted(_code_of(one))))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _code_of(cls: type) -> list[str]:
    """The code of a class whose source cannot be had, as one typed at a prompt."""

    def told(code: CodeType) -> str:
        consts = code.co_consts
        inner = [told(one) if isinstance(one, CodeType) else repr(one) for one in consts]
        return f"{code.co_code.hex()} {code.co_names} {inner}"

    return [
        f"{name} {told(value.__code__)}" if isinstance(value, FunctionType) else f"{name} {value!r}"
        for name, value in vars(cls).items()
        if not name.startswith("__") or isinstance(value, FunctionType)
    ]
