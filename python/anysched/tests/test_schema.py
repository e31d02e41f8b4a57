"""The schema of experiments, under a validator of others."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import ROOT

GOOD = """question = "?"
policy = "rr"
[machine]
cpus = 2
[[workload]]
kind = "batch"
tasks = 5
service = "exp(1ms)"
"""


@pytest.fixture(scope="module")
def validator() -> Any:
    printed = subprocess.run([os.environ["ANYSCHED"], "schema"], capture_output=True, check=True)
    schema = json.loads(printed.stdout)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def wrong(validator: Any, text: str) -> list[str]:
    errors = validator.iter_errors(tomllib.loads(text))
    return [f"{error.json_path}: {error.message}" for error in errors]


def experiments() -> list[Path]:
    folders = [ROOT / "experiments", ROOT / "docs" / "policies"]
    files = (path for folder in folders for path in folder.rglob("*.toml"))
    # Others are costs, or lists of what a paper says.
    return sorted(path for path in files if "\nquestion = " in f"\n{path.read_text()}")


def test_every_experiment_of_the_project_is_one(validator: Any) -> None:
    files = experiments()
    assert len(files) > 80
    for path in files:
        assert wrong(validator, path.read_text()) == [], path


def test_mistakes_are_found(validator: Any) -> None:
    assert wrong(validator, GOOD) == []
    for old, new in [
        ('question = "?"\n', ""),
        ('question = "?"', 'qestion = "?"'),
        ('question = "?"', "question = 5"),
        ('policy = "rr"', 'policy = "round robin"'),
        ('policy = "rr"', 'policy = { name = "rr", quantun = "1ms" }'),
        ('policy = "rr"', 'policy = { quantum = "1ms" }'),
        ("cpus = 2", "cpus = 0"),
        ("cpus = 2", 'cpus = "two"'),
        ("cpus = 2", 'cpus = 2\ntick = "4 parsecs"'),
        ("cpus = 2", 'cpus = 2\nticks = "4ms"'),
        ("cpus = 2", 'cpus = 2\nmigration = { cores = "1us" }'),
        ('kind = "batch"', 'kind = "bach"'),
        ("tasks = 5", "task = 5"),
        ("tasks = 5", 'tasks = "5"'),
        ("question", "seed = -1\nquestion"),
        ("question", 'duration = "long"\nquestion'),
        ("question", 'report = { columns = ["waiting"] }\nquestion'),
        ("question", 'report = { by = "cpu" }\nquestion'),
        ("question", 'claim = [{ id = "1" }]\nquestion'),
        ("question", 'claim = [{ id = "1", text = "?", verdict = "true" }]\nquestion'),
        ("question", "sweep = { seeds = 0 }\nquestion"),
        ("question", 'sweep = { "machine.cpus" = 3 }\nquestion'),
    ]:
        text = GOOD.replace(old, new, 1)
        assert text != GOOD
        assert wrong(validator, text), new
