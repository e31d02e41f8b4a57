"""What the documentation shows works."""

from __future__ import annotations

import re
import textwrap

import collections

import anysched
import pytest
from conftest import ROOT


def blocks() -> list[str]:
    """The examples of docs/python.md in Python, in order."""
    text = (ROOT / "docs" / "python.md").read_text()
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.M)
    shown = [textwrap.dedent(block).strip("\n") for block in found]
    return [block for block in shown if block and not block.startswith("python -m")]


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"collections": collections, "anysched": anysched}
    examples = blocks()
    assert len(examples) >= 5
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
    assert isinstance(names["result"], anysched.Result)
