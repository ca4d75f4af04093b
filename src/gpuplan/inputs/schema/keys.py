"""The building blocks of the file format: strict models, and keys that explain themselves.

Each key carries its description, unit and example, so that the JSON Schema, the reference table,
the error messages and the recorded assumptions all say the same.
"""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

LARGEST = 1e24
SMALLEST = 1e-9
NO_CONTROL = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"


class Strict(BaseModel):
    """A mapping of the file: no unknown keys, no silent conversion, never changed."""

    # Built when first used: the whole of a file at once, not each of its parts and then the whole.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


def key(text: str, unit: str = "", **options: Any) -> Any:
    """A key of the file. Options: default, why (of a default), example."""
    extra: dict[str, Any] = {"x-unit": unit} if unit else {}
    if "why" in options:
        extra["x-why"] = options["why"]
    examples = [options["example"]] if "example" in options else None
    return Field(
        options.get("default", ...),
        description=text,
        examples=examples,
        json_schema_extra=extra or None,
    )


def optional(text: str, unit: str = "", **options: Any) -> Any:
    """A key that may be left out without anything being assumed here."""
    return key(text, unit, default=None, **options)


def section(text: str, model: type[Strict]) -> Any:
    """A part of the file whose keys all have defaults."""
    return Field(default_factory=model, description=text)


def _whole(value: object) -> object:
    # 8e3 is a float to YAML and a whole number to people and to JSON Schema.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST)]
Frac = Annotated[float, Field(ge=0, le=1)]
PositiveFrac = Annotated[float, Field(ge=SMALLEST, le=1)]
Ratio = Annotated[float, Field(ge=1, le=1e6)]
Tokens = Annotated[float, Field(ge=0, le=1e9)]
AtLeastOneToken = Annotated[float, Field(ge=1, le=1e9)]
# Bounds stand before the conversion, else they are lost from the JSON Schema.
Count = Annotated[int, Field(ge=1, le=10**9), BeforeValidator(_whole)]
CountOrZero = Annotated[int, Field(ge=0, le=10**9), BeforeValidator(_whole)]
Priority = Annotated[int, Field(ge=-1000, le=1000), BeforeValidator(_whole)]
Text = Annotated[str, Field(min_length=1, max_length=300, pattern=NO_CONTROL)]
Names = Annotated[
    list[Text],
    Field(min_length=1, max_length=200),
    BeforeValidator(_as_list),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": 300, "pattern": NO_CONTROL},
                {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 200,
                    "items": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 300,
                        "pattern": NO_CONTROL,
                    },
                },
            ]
        }
    ),
]


class Spread(Strict):
    """A number, or low, mid and high where it is not known exactly."""

    low: Number = key("Lowest value to plan for")
    mid: Number = key("Most likely value")
    high: Number = key("Highest value to plan for")

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: object) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"low": value, "mid": value, "high": value}
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A number within the same bounds, or the mapping."""
        return or_scalar(handler(core_schema), handler, like="mid")


class PositiveSpread(Spread):
    """A number above 0, or low, mid and high."""

    low: Positive = key("Lowest value to plan for")
    mid: Positive = key("Most likely value")
    high: Positive = key("Highest value to plan for")


class FracSpread(Spread):
    """A share from 0 to 1, or low, mid and high."""

    low: Frac = key("Lowest value to plan for")
    mid: Frac = key("Most likely value")
    high: Frac = key("Highest value to plan for")


class GrowthSpread(Spread):
    """A compound rate of change above -1, or low, mid and high."""

    low: Annotated[float, Field(ge=-0.99, le=10)] = key("Lowest value to plan for")
    mid: Annotated[float, Field(ge=-0.99, le=10)] = key("Most likely value")
    high: Annotated[float, Field(ge=-0.99, le=10)] = key("Highest value to plan for")


def or_scalar(
    schema: dict[str, Any], handler: GetJsonSchemaHandler, *, like: str
) -> dict[str, Any]:
    """The schema of a mapping, or of one scalar with the bounds of this key."""
    whole = handler.resolve_ref_schema(schema)
    hidden = ("title", "description", "examples", "x-unit", "default", "anyOf")
    entry = whole["properties"][like]
    bounds = next((b for b in entry.get("anyOf", ()) if b.get("type") != "null"), entry)
    scalar = {name: value for name, value in bounds.items() if name not in hidden}
    return {"anyOf": [scalar, dict(whole)]}
