"""The file format for others to read: a JSON Schema, and a table of all keys."""

from typing import Any

from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.scenario.template import scenario_template
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
    generated = without_null(ScenarioSpec.model_json_schema())
    return {**generated, **head, "examples": [example]}


def without_null(schema: Any) -> Any:
    """The schema with absent keys left out rather than null, as the reader wants them."""
    if isinstance(schema, list):
        return [without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: without_null(value) for key, value in schema.items()}
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
