"""The file format as a tree: which mapping stands where, and which keys it knows."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from gpuplan.inputs.schema.keys import Strict


def walk_models(model: type[Strict], place: str = "") -> Iterator[tuple[str, type[Strict]]]:
    """Every mapping of the format with its place, parents first."""
    yield place, model
    for name, field in model.model_fields.items():
        many = "[]" if _is_list(field.annotation) else ""
        for inner in models_in(field.annotation):
            yield from walk_models(inner, f"{place}.{name}{many}".removeprefix("."))


def _is_list(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is list:
        return True
    is_wrapper = origin in (Annotated, Union, types.UnionType)
    return is_wrapper and any(_is_list(part) for part in get_args(annotation))


def models_in(annotation: Any) -> list[type[Strict]]:
    """The mappings that a key may hold."""
    if isinstance(annotation, type) and issubclass(annotation, Strict):
        return [annotation]
    if get_origin(annotation) is Literal:
        return []
    return [model for part in get_args(annotation) for model in models_in(part)]


def locate(
    loc: tuple[str | int, ...], root: type[Strict]
) -> tuple[type[Strict] | None, FieldInfo | None]:
    """The mapping that the last key stands in, and what is known of that key."""
    models: list[type[Strict]] = [root]
    owner: type[Strict] | None = root
    field: FieldInfo | None = None
    for part in loc:
        if isinstance(part, int):
            continue
        tagged = [m for m in models if _tag(m) == part]
        if tagged and len(models) > 1:
            models = tagged
            continue
        owner = models[0] if models else None
        field = owner.model_fields.get(part) if owner else None
        models = models_in(field.annotation) if field else []
    return owner, field


def _tag(model: type[Strict]) -> str | None:
    field = model.model_fields.get("kind")
    values = get_args(field.annotation) if field else ()
    return values[0] if len(values) == 1 else None
