"""What can go wrong: each exception says what, where, and what to do about it."""

from __future__ import annotations

__all__ = [
    "Error",
    "ExperimentError",
    "PolicyError",
    "RunError",
    "TraceError",
    "UsageError",
]


class Error(Exception):
    """What all exceptions of this package derive from."""


class UsageError(Error, ValueError):
    """A function is called with something that it does not take, or cannot do here."""


class ExperimentError(Error, ValueError):
    """An experiment is refused. The message shows the place and says how to get it right.

    plain: in a line for each thing that is wrong, `file:line:column: message; remedy`.
    line, column: where the first of it is, from 1; None: it is about no one place.
    remedy: how to get the first of it right; None: it cannot be said.
    """

    def __init__(
        self,
        message: str,
        plain: str = "",
        line: int | None = None,
        column: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, plain, line, column, remedy)
        self.plain = plain
        self.line = line
        self.column = column
        self.remedy = remedy

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(Error, RuntimeError):
    """A run could not be finished.

    policy: the policy's label. group: the axis values. seed: that of the run. why: what happened.
    """

    def __init__(
        self, message: str, policy: str = "", group: str = "", seed: int = 0, why: str = ""
    ) -> None:
        super().__init__(message, policy, group, seed, why)
        self.policy = policy
        self.group = group
        self.seed = seed
        self.why = why

    def __str__(self) -> str:
        return str(self.args[0])


class PolicyError(RunError):
    """A policy written in Python raised an exception, which is the cause, or broke the contract."""


class TraceError(Error, ValueError):
    """A trace cannot be read: where it is not as its format says, or which format it could be."""
