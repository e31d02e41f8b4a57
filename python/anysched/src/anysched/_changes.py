"""What is changed of an experiment before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class Changes(TypedDict):
    """What the options of the command change, in the order in which they are applied."""

    quick: bool
    policies: str | None
    """A list in TOML."""
    settings: Sequence[tuple[str, str]]
    sweep: Sequence[tuple[str, Sequence[str]]]
    by: Sequence[str]
    seeds: int | None


NONE = Changes(quick=False, policies=None, settings=(), sweep=(), by=(), seeds=None)
