"""The building blocks of the file format: strict models, and keys that explain themselves.

Each key carries its description, unit and example, so that the JSON Schema, the reference table,
the error messages and the recorded assumptions all say the same.
"""

from typing import Annotated, Any, ClassVar, get_args

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

from gpuplan.inputs.schema.units import unit_of

LARGEST = 1e24
SMALLEST = 1e-9
NO_CONTROL = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"


class Strict(BaseModel):
    """A mapping of the file: no unknown keys, no silent conversion, never changed."""

    # Built when first used: the whole of a file at once, not each of its parts and then the whole.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )
    is_quantity: ClassVar[bool] = False  # a mapping in place of a number, with its unit

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Give every number the unit that its key ends in, where none was named."""
        super().__pydantic_init_subclass__(**options)
        for name, field in cls.model_fields.items():
            extra: Any = field.json_schema_extra or {}
            unit = unit_of(name) if _holds_numbers(field.annotation) else ""
            if unit and "x-unit" not in extra:
                field.json_schema_extra = {"x-unit": unit, **extra}


def _holds_numbers(annotation: Any) -> bool:
    """Whether a key holds a number, a list of numbers, or a mapping in place of a number."""
    if isinstance(annotation, type) and issubclass(annotation, Strict):
        return annotation.is_quantity
    return annotation in (int, float) or any(map(_holds_numbers, get_args(annotation)))


def key(text: str, unit: str = "", **options: Any) -> Any:
    """A key of the file. Options: default, why (of a default), example, to, means.

    The unit is needed only where the name of the key does not end in it. `to` names the field
    that the key becomes where that is called otherwise, "" where it only enters other fields;
    `means` gives the value there of each choice.
    """
    extra: dict[str, Any] = {"x-unit": unit} if unit else {}
    extra |= {f"x-{name}": options[name] for name in ("why", "to", "means") if name in options}
    default: Any = options.get("default", ...)
    how = {"default_factory": default} if isinstance(default, type) else {"default": default}
    examples = [options["example"]] if "example" in options else None
    return Field(**how, description=text, examples=examples, json_schema_extra=extra or None)


def optional(text: str, unit: str = "", **options: Any) -> Any:
    """A key that may be left out without anything being assumed here."""
    return key(text, unit, default=None, **options)


def section(text: str, model: type[Strict], **options: Any) -> Any:
    """A part of the file whose keys all have defaults; `to="*"` spreads them over the noun."""
    return key(text, default=model, **options)


def entries(text: str, **options: Any) -> Any:
    """A list that may be left out, and then has no entries."""
    return key(text, default=list, **options)


def is_number(value: object) -> bool:
    """Whether the value is a number of the file: truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: object) -> object:
    # 8e3 is a float to YAML and a whole number to people and to JSON Schema.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
# More than the whole world sends: such a fleet has no answer, and looking for it would not end.
RequestRate = Annotated[float, Field(ge=SMALLEST, le=1e6)]
Users = Annotated[float, Field(ge=SMALLEST, le=1e9)]
RequestsPerDay = Annotated[float, Field(ge=SMALLEST, le=1e11)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST)]
Frac = Annotated[float, Field(ge=0, le=1)]
PositiveFrac = Annotated[float, Field(ge=SMALLEST, le=1)]
Ratio = Annotated[float, Field(ge=1, le=1e6)]
Tokens = Annotated[float, Field(ge=0, le=1e9)]
AtLeastOneToken = Annotated[float, Field(ge=1, le=1e9)]
# Bounds stand before the conversion, else they are lost from the JSON Schema.
Count = Annotated[int, Field(ge=1, le=10**9), BeforeValidator(_whole)]
CountPerNode = Annotated[int, Field(ge=1, le=1024), BeforeValidator(_whole)]
CountOrZero = Annotated[int, Field(ge=0, le=10**9), BeforeValidator(_whole)]
Priority = Annotated[int, Field(ge=-1000, le=1000), BeforeValidator(_whole)]
Text = Annotated[str, Field(min_length=1, max_length=300, pattern=NO_CONTROL)]
_TEXT_SCHEMA = {"type": "string", "minLength": 1, "maxLength": 300, "pattern": NO_CONTROL}
_LIST_SCHEMA = {"type": "array", "minItems": 1, "maxItems": 200, "items": _TEXT_SCHEMA}
Names = Annotated[
    list[Text],
    Field(min_length=1, max_length=200),
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [_TEXT_SCHEMA, _LIST_SCHEMA]}),
]


class Spread(Strict):
    """A number, or low, mid and high where it is not known exactly."""

    is_quantity: ClassVar[bool] = True

    low: Number = key("Lowest value to plan for")
    mid: Number = key("Most likely value")
    high: Number = key("Highest value to plan for")

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: object) -> object:
        return {"low": value, "mid": value, "high": value} if is_number(value) else value

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


class NonNegativeSpread(Spread):
    """A number from 0 on, or low, mid and high."""

    low: NonNegative = key("Lowest value to plan for")
    mid: NonNegative = key("Most likely value")
    high: NonNegative = key("Highest value to plan for")


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
    hidden = ("title", "description", "examples", "x-unit", "x-to", "default", "anyOf")
    entry = whole["properties"][like]
    bounds = next((b for b in entry.get("anyOf", ()) if b.get("type") != "null"), entry)
    scalar = {name: value for name, value in bounds.items() if name not in hidden}
    return {"anyOf": [scalar, dict(whole)]}
