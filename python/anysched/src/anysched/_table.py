"""What the tables of experiments have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

Time: TypeAlias = str | Literal[0]
"""A time with its unit: `"10ms"`, `"1.5us"`; or 0."""

Parameter: TypeAlias = str | int | float | bool | Sequence[str | int | float]
"""The value of a policy's parameter."""


@dataclass(kw_only=True)
class Table:
    """A table of an experiment. Keys that are None are left out."""

    _fixed: ClassVar[dict[str, Any]] = {}
    """Keys that all tables of a class have."""
    _names: ClassVar[dict[str, str]] = {}
    """Keys that are no names in Python, by the field that holds each."""
    _others: ClassVar[str] = ""
    """The field that holds further keys, if there is one."""

    def to_dict(self) -> dict[str, Any]:
        """The keys that are set, as a file has them."""
        keys = dict(self._fixed)
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if field.name == self._others:
                keys.update(value)
            else:
                keys[self._names.get(field.name, field.name)] = value
        return keys


@dataclass(kw_only=True)
class Load(Table):
    """A load, of one of the kinds in `anysched.loads`."""


class PolicyTable(Mapping[str, Any]):
    """A policy with parameters, made by one of the functions of `anysched.policies`."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        given = {key: value for key, value in settings.items() if value is not None}
        self._keys = {"name": name, **given}

    def __getitem__(self, key: str) -> Any:
        return self._keys[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        settings = {key: value for key, value in self._keys.items() if key != "name"}
        inner = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        return f"{self._keys['name'].replace('-', '_')}({inner})"
