"""Defaults made visible: each value that the user did not give, why, and how to give it."""

from typing import Any

from gpuplan.domain.provenance import Assumption
from gpuplan.inputs.documents.document import KeyPath, show_path
from gpuplan.inputs.schema.keys import Spread, Strict

# Defaults that stand in for a key only where another key is given.
ACTIVE_FRAC = 0.2
REQUESTS_PER_USER_PER_H = 10.0
PEAK_TO_MEAN_OF_DAY = 3.0
LORA_RANK = 16


class Assumptions:
    """Collects what is assumed while a scenario is read."""

    def __init__(self) -> None:
        self._found: list[Assumption] = []

    def add(self, path: KeyPath, value: object, why: str, *, what: str) -> None:
        """Note a value that was assumed for a key, with the reason."""
        change = show_path(path)
        note = Assumption(what=what, value=show_value(value), why=why, change=change)
        self._found.append(note)

    def all(self) -> tuple[Assumption, ...]:
        """What was noted, in order of the file."""
        return tuple(self._found)

    def add_defaults(self, spec: Strict, path: KeyPath = ()) -> None:
        """Note every default of the format that stands in for a key that was left out."""
        for name, field in type(spec).model_fields.items():
            value = getattr(spec, name)
            here = (*path, name)
            extra = field.json_schema_extra
            why = extra.get("x-why") if isinstance(extra, dict) else None
            if name not in spec.model_fields_set and why is not None:
                self.add(here, value, str(why), what=field.description or name)
            else:
                self._descend(value, here)

    def _descend(self, value: Any, path: KeyPath) -> None:
        if isinstance(value, Strict):
            self.add_defaults(value, path)
        elif isinstance(value, list):
            for i, item in enumerate(value):
                self._descend(item, (*path, i))


def show_value(value: object) -> str:
    """A value as the user would write it."""
    if isinstance(value, Spread):
        one = value.low == value.high
        return f"{value.mid:g}" if one else f"{value.low:g} … {value.mid:g} … {value.high:g}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(show_value(item) for item in value)
    return str(value)
