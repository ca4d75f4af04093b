"""The file format for others to read: a JSON Schema, and a table of all keys."""

from collections.abc import Iterator
from typing import Any, get_args

from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.scenario.assumptions import show_value
from gpuplan.inputs.scenario.template import scenario_template
from gpuplan.inputs.schema.cluster import ClusterSpec
from gpuplan.inputs.schema.fleet import FleetSpec
from gpuplan.inputs.schema.keys import Strict
from gpuplan.inputs.schema.places import walk_models
from gpuplan.inputs.schema.scenario import ScenarioSpec

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:gpuplan:scenario:1"


def scenario_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of scenario.yaml; x-unit names the unit of each number.

    It holds the shape of the file. Rules across keys, e.g. that percentiles rise, are checked when
    the file is read.
    """
    head = {"$schema": DRAFT, "$id": SCHEMA_ID, "title": "gpuplan scenario"}
    example = read_yaml_text(scenario_template("chat"), name="chat").data
    generated = _without_null(ScenarioSpec.model_json_schema())
    return {**generated, **head, "examples": [example]}


def _without_null(schema: Any) -> Any:
    """The schema with absent keys left out rather than null, as the reader wants them."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _without_null(value) for key, value in schema.items()}
    if "default" in plain and plain["default"] is None:
        del plain["default"]
    # OpenAPI's keyword (the constant `kind` of each branch says the same), and our own business.
    for hidden in ("discriminator", "x-to", "x-means"):
        plain.pop(hidden, None)
    _drop_title(plain)
    branches = plain.get("anyOf")
    if isinstance(branches, list) and {"type": "null"} in branches:
        return _without_branch(plain, [b for b in branches if b != {"type": "null"}])
    return plain


def _drop_title(plain: dict[str, Any]) -> None:
    # A property may itself be called title; a title beside a type is only the key once more.
    if isinstance(plain.get("title"), str):
        del plain["title"]


def _without_branch(plain: dict[str, Any], left: list[Any]) -> dict[str, Any]:
    rest = {key: value for key, value in plain.items() if key != "anyOf"}
    return {**left[0], **rest} if len(left) == 1 else {"anyOf": left, **rest}


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
    schema = _without_null(model.model_json_schema())
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
