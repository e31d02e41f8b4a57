"""What all tests share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def interrupts():
    """Ctrl-C raises, also where tests run in the background, whose shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def experiments() -> Path:
    """The experiments of the repository."""
    return ROOT / "experiments"


@pytest.fixture
def traces() -> Path:
    """The recordings of the repository."""
    return ROOT / "traces"


@pytest.fixture
def command(tmp_path: Path):
    """Runs the command `anysched`, which is to do the same; returns what it prints."""
    program = os.environ.get("ANYSCHED") or shutil.which("anysched")
    assert program, "the command is needed: set ANYSCHED to its path (cargo xtask python does)"

    def run(*args: str | Path) -> str:
        words = [program, *map(str, args)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
