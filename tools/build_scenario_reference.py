"""Write the schema and the tables of keys of docs/reference anew from the file formats."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from gpuplan.inputs.scenario.assumptions import show_value
from gpuplan.inputs.schema.cluster import ClusterSpec
from gpuplan.inputs.schema.fleet import FleetSpec
from gpuplan.inputs.schema.keys import Strict
from gpuplan.inputs.schema.places import walk_models
from gpuplan.inputs.schema.reference import scenario_schema, without_null
from gpuplan.inputs.schema.scenario import ScenarioSpec

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def scenario_reference() -> str:
    """Markdown tables of every key: meaning, unit, default, why that default."""
    note = "A value that may be a number or `{low, mid, high}` is called a spread. "
    return _reference("scenario.yaml", ScenarioSpec, note)


def fleet_reference() -> str:
    """The same of fleet.yaml, which `gpuplan simulate --fleet` reads."""
    return _reference("fleet.yaml", FleetSpec, "Examples: `examples/fleets`. ")


def cluster_reference() -> str:
    """The same of cluster.yaml, which `gpuplan simulate --jobs` and `gpuplan eta` read."""
    return _reference("cluster.yaml", ClusterSpec, "Examples: `examples/clusters`. ")


def _reference(name: str, root: type[Strict], note: str) -> str:
    parts = [
        f"# Keys of {name}",
        "",
        "Generated from the file format by `tools/build_scenario_reference.py`. "
        f"`[]` stands for each entry of a list. {note}Required keys are bold.",
    ]
    seen: set[tuple[str, type[Strict]]] = set()
    for place, model in walk_models(root):
        if (place, model) in seen or set(model.model_fields) == {"low", "mid", "high"}:
            continue
        seen.add((place, model))
        parts += ["", *_section(place, model)]
    return "\n".join(parts) + "\n"


def _section(place: str, model: type[Strict]) -> Iterator[str]:
    kind = model.model_fields.get("kind")
    values = get_args(kind.annotation) if kind else ()
    title = f"`{place}`" if place else "The file"
    yield f"## {title}" + (f", kind `{values[0]}`" if place == "workloads[]" else "")
    yield ""
    yield " ".join((model.__doc__ or "").split())
    yield ""
    yield "| key | value | unit | default | meaning |"
    yield "|---|---|---|---|---|"
    properties = _properties(model)
    for name, field in model.model_fields.items():
        shown = f"**`{name}`**" if field.is_required() else f"`{name}`"
        entry = properties[name]
        meaning = entry.get("description", "")
        meaning += f" (default: {entry['x-why']})" if "x-why" in entry else ""
        cells = [shown, _type(entry), entry.get("x-unit", ""), _default(entry), meaning]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _properties(model: type[Strict]) -> dict[str, Any]:
    schema = without_null(model.model_json_schema())
    while "properties" not in schema:
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        schema = schema["$defs"][name] if name else schema["anyOf"][-1]
    properties: dict[str, Any] = schema["properties"]
    return properties


def _default(entry: dict[str, Any]) -> str:
    default = entry.get("default", "")
    if isinstance(default, dict):
        default = default.get("mid", "")
    return str(default) if isinstance(default, list) else show_value(default)


def _type(entry: dict[str, Any]) -> str:
    if "$ref" in entry:
        name = entry["$ref"].rsplit("/", 1)[-1]
        whole = {"LengthSpec": "number or mapping", "ModelSpec": "text or mapping"}
        return "spread" if name.endswith("Spread") else whole.get(name, "mapping")
    if "const" in entry:
        return f"`{entry['const']}`"
    if "enum" in entry:
        return ", ".join(f"`{value}`" for value in entry["enum"])
    if entry.get("type") == "array":
        return "list"
    if "anyOf" in entry:
        return "text or list"
    words = {"number": "number", "integer": "whole number", "string": "text"}
    return words.get(entry.get("type", ""), "true or false")


def main() -> None:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    schema = json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"
    (REFERENCE / "scenario.schema.json").write_text(schema, encoding="utf-8")
    (REFERENCE / "scenario.md").write_text(scenario_reference(), encoding="utf-8")
    (REFERENCE / "fleet.md").write_text(fleet_reference(), encoding="utf-8")
    (REFERENCE / "cluster.md").write_text(cluster_reference(), encoding="utf-8")
    print("docs/reference/scenario.schema.json, scenario.md, fleet.md, cluster.md")


if __name__ == "__main__":
    main()
