"""What the documentation shows works."""

from __future__ import annotations

import collections
import re
import textwrap

import anysched
import pytest
from conftest import ROOT


def blocks() -> list[str]:
    """The examples of docs/python.md in Python, in order."""
    text = (ROOT / "docs" / "python.md").read_text()
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.M)
    shown = [textwrap.dedent(block).strip("\n") for block in found]
    apart = ("python ", "client = ")
    return [block for block in shown if block and not block.startswith(apart)]


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"collections": collections, "anysched": anysched}
    examples = blocks()
    assert len(examples) >= 5
    for example in examples:
        # A search of three is one, too.
        shorter = re.sub(r"trials=\d+", "trials=3", example)
        exec(compile(shorter, "docs/python.md", "exec"), names)
    assert isinstance(names["result"], anysched.Result)
