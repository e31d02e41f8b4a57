"""Writes the modules whose classes are the tables of experiments, from the program's own schema.

    python generate.py           writes src/anysched/{spec,loads,policies}.py
    python generate.py --check   fails if one of them is not what would be written
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

from anysched import _core

HERE = Path(__file__).parent / "src" / "anysched"
WIDTH = 100
SCHEMA: dict[str, Any] = json.loads(_core.schema())

# The tables that have a class, by their place in the schema, those that others need first.
TABLES = {
    "machine.migration": "Migration",
    "machine.contention": "Contention",
    "machine.hotplug": "Hotplug",
    "machine": "Machine",
    "vm": "Vm",
    "scenario": "Scenario",
    "sweep": "Sweep",
    "claim": "Claim",
    "report": "Report",
    "quick": "Quick",
}

# What tables take besides their own keys, and what the field is called that holds it.
OTHERS = {
    "sweep": ("axes", "Mapping[str, Sequence[Any]]", "What is varied: paths and their values."),
    "quick": ("settings", "Mapping[str, Any]", "Paths and parameters, and their values."),
}

EXPERIMENT = "An experiment: what is asked, on which machine, of which loads."

HEAD = '''"""{what}

Written by generate.py.
"""

from __future__ import annotations

'''


def main() -> int:
    modules = {"spec": spec(), "loads": loads(), "policies": policies()}
    stale = []
    for name, text in modules.items():
        path = HERE / f"{name}.py"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"not as generate.py writes them: {', '.join(stale)}; run it", file=sys.stderr)
        return 1
    return 0


def spec() -> str:
    names = ["Experiment", *TABLES.values()]
    text = HEAD.format(what="The tables of an experiment.")
    text += (
        "from collections.abc import Mapping, Sequence\n"
        "from dataclasses import dataclass\n"
        "from typing import TYPE_CHECKING, Any, ClassVar, Literal\n\n"
        "from ._table import Load, Table, Time\n\n"
        "if TYPE_CHECKING:\n"
        "    from .experiment import PolicyLike\n\n"
        f"{exported(names)}"
    )
    for path, name in TABLES.items():
        text += table(name, SCHEMA["$defs"][path], OTHERS.get(path))
    return text + table("Experiment", SCHEMA, None)


def loads() -> str:
    text = HEAD.format(what="The kinds of load.")
    text += (
        "from collections.abc import Sequence\n"
        "from dataclasses import dataclass\n"
        "from typing import Any, ClassVar, Literal\n\n"
        "from ._table import Load, Time\n\n"
    )
    all_of = SCHEMA["$defs"]["load"]["allOf"]
    kinds = [kind["if"]["properties"]["kind"]["enum"][0] for kind in all_of]
    text += exported([camel(kind) for kind in kinds])
    for kind, of in zip(kinds, all_of, strict=True):
        properties = dict(of["then"]["properties"])
        what = properties.pop("kind")["description"]
        schema = {"description": sentence(what), "properties": properties}
        text += table(camel(kind), schema, None, base="Load", fixed={"kind": kind})
    return text


def policies() -> str:
    text = HEAD.format(what="The policies, with their parameters.")
    text += (
        "from collections.abc import Mapping, Sequence\n"
        "from typing import Any\n\n"
        "from ._table import Parameter, PolicyTable\n"
        "from .spec import Machine\n\n"
    )
    all_of = SCHEMA["$defs"]["policy"]["allOf"]
    names = [policy["if"]["properties"]["name"]["const"] for policy in all_of]
    text += exported([snake(name) for name in names])
    for name, of in zip(names, all_of, strict=True):
        properties = dict(of["then"]["properties"])
        what = properties.pop("name")["description"]
        own = {key: properties.pop(key) for key in ("label", "machine", "changes")}
        text += f"\n\ndef {snake(name)}(\n    *,\n"
        text += "    label: str | None = None,\n"
        for key in properties:
            text += f"    {field_name(key)}: Parameter | None = None,\n"
        text += "    machine: Machine | None = None,\n"
        text += "    changes: Sequence[Mapping[str, Any]] | None = None,\n"
        text += ") -> PolicyTable:\n"
        lines = [f"{field_name(key)}: {told(of)}" for key, of in (properties | own).items()]
        text += docstring(sentence(what), lines)
        pairs = "".join(
            f"            {quoted(key)}: {field_name(key)},\n"
            for key in ["label", *properties, "machine", "changes"]
        )
        text += f"    return PolicyTable(\n        {quoted(name)},\n"
        text += f"        {{\n{pairs}        }},\n    )\n"
    return text


def table(
    name: str,
    schema: dict[str, Any],
    others: tuple[str, str, str] | None,
    base: str = "Table",
    fixed: dict[str, str] | None = None,
) -> str:
    text = f"\n\n@dataclass(kw_only=True)\nclass {name}({base}):\n"
    text += docstring(schema.get("description") or EXPERIMENT, [])
    if fixed:
        text += f"\n    _fixed: ClassVar[dict[str, Any]] = {json.dumps(fixed)}\n"
    renamed = {field_name(key): key for key in schema["properties"] if field_name(key) != key}
    if renamed:
        text += f"\n    _names: ClassVar[dict[str, str]] = {json.dumps(renamed)}\n"
    if others:
        text += f"\n    _others: ClassVar[str] = {quoted(others[0])}\n"
    needed = ["question"] if schema is SCHEMA else schema.get("required", [])
    keys = sorted(schema["properties"], key=lambda key: key not in needed)
    for key in keys:
        of = schema["properties"][key]
        kind = type_of(of)
        given = f"{kind}" if key in needed else f"{kind} | None = None"
        text += wrapped_field(field_name(key), given) + docstring(told(of), [])
    if others:
        field, kind, what = others
        text += f"\n    {field}: {kind} | None = None\n" + docstring(what, [])
    return text


def type_of(schema: dict[str, Any]) -> str:
    """The type in Python of what a schema allows."""
    if "$ref" in schema:
        return reference(schema["$ref"])
    if "allOf" in schema:
        return type_of(schema["allOf"][0])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return f"Literal[{', '.join(quoted(word) for word in schema['enum'])}]"
    kinds = schema["type"]
    if isinstance(kinds, list):
        return " | ".join(type_of({"type": kind}) for kind in kinds)
    if kinds == "array":
        return f"Sequence[{type_of(schema['items']) if 'items' in schema else 'Any'}]"
    return {
        "string": "str",
        "integer": "int",
        "number": "float",
        "boolean": "bool",
        "object": "Mapping[str, Any]",
    }[kinds]


def reference(pointer: str) -> str:
    path = pointer.removeprefix("#/$defs/").replace("%20", " ")
    special = {
        "time": "Time",
        "load": "Load | Mapping[str, Any]",
        "policies": "PolicyLike | Sequence[PolicyLike]",
        "policy": "PolicyLike",
        "policy name": "PolicyLike",
        "column": "str",
        "value": "Any",
    }
    return special[path] if path in special else TABLES[path]


def told(schema: dict[str, Any]) -> str:
    text = sentence(schema["description"])
    default = schema.get("default")
    return text if default is None else f"{text} Default: {json.dumps(default)}."


def sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", ")")) else f"{text}."


def docstring(text: str, lines: list[str]) -> str:
    """A docstring, and below it lines of their own."""
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += "."
    # What ends the docstring counts as a part of its last word.
    ends = '"""'
    first = textwrap.wrap(f'"""{text}{"" if lines else ends}', WIDTH - 4)
    body = [part for line in lines for part in hanging(line.replace("\\", "\\\\"))]
    all_lines = [*first, "", *body, ends] if body else first
    return "".join(f"    {line}".rstrip() + "\n" for line in all_lines)


def hanging(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH - 4, subsequent_indent="    ")


def wrapped_field(name: str, given: str) -> str:
    line = f"    {name}: {given}"
    if len(line) <= WIDTH:
        return f"\n{line}\n"
    kind, _, default = given.partition(" = ")
    parts = kind.split(" | ")
    inner = "\n        | ".join(parts)
    if max(len(part) for part in parts) > WIDTH - 12:
        inner = inner.replace("Literal[", "Literal[\n            ").replace("]", ",\n        ]")
        inner = inner.replace('", "', '",\n            "')
    return f"\n    {name}: (\n        {inner}\n    ){' = ' + default if default else ''}\n"


def exported(names: list[str]) -> str:
    inner = "".join(f"    {quoted(name)},\n" for name in sorted(names))
    return f"__all__ = [\n{inner}]\n"


def field_name(key: str) -> str:
    return f"{key}_" if keyword.iskeyword(key) else key


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace(".", "-").split("-"))


def snake(name: str) -> str:
    return field_name(name.replace("-", "_"))


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
