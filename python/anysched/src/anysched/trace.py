"""Recordings of real systems and other traces, as data frames."""

from __future__ import annotations

import os
from typing import Any

from . import _core, _tables
from ._tables import Library

__all__ = ["Trace", "read_trace", "trace_formats"]


class Trace:
    """A trace that has been read: its tasks and what each of them does."""

    def __init__(self, imported: _core.ImportedTrace) -> None:
        self._imported = imported

    @property
    def format(self) -> str:
        """The format that it was read as."""
        return self._imported.format

    @property
    def cpus(self) -> int | None:
        """CPUs of the machine that it was recorded on, if it was recorded."""
        return self._imported.cpus

    @property
    def warnings(self) -> list[str]:
        """What it leaves out of its source."""
        return self._imported.warnings

    def tasks(self, library: Library | None = None) -> Any:
        """A line for each task: `task`, `name`, `arrives_ns` (null: another one starts it),
        `nice`, how many `steps` it has, how often they are done (`rounds`; null: for ever), and
        its CPU time `cpu_ns`."""
        return _tables.frame(self._imported.tasks(), library)

    def steps(self, library: Library | None = None) -> Any:
        """A line for each step of each task: what it `does` for how many `ns`, and `of` which
        channel, lock, barrier or task."""
        return _tables.frame(self._imported.steps(), library)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes it as a model, a load of kind "model" in experiments."""
        self._imported.write(path)


def read_trace(
    path: str | os.PathLike[str], format: str | None = None, **options: str | int | float | bool
) -> Trace:
    """Reads a trace of one of `trace_formats()`; without a format, of that as which it begins.

    options: those of the format, as loads of that kind have them.

    Raises TraceError with the place in the file.
    """

    def text(value: str | int | float | bool) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    given = [(key, text(value)) for key, value in options.items()]
    return Trace(_core.import_trace(path, format, given))


def trace_formats() -> list[str]:
    """The formats that `read_trace` reads."""
    return _core.trace_formats()
