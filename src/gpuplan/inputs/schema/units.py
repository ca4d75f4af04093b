"""Units of the file formats: a key ends in its unit, and the unit says what it becomes inside."""

from typing import NamedTuple

from gpuplan import units
from gpuplan.csv_rows import packaged_rows

OTHERS = {"1": 1.0, "TONNE": 1e3, "MILLION": 1e6, "BILLION": 1e9}  # a litre of water is a kg


class Unit(NamedTuple):
    """How keys end that have this unit, how the field of the noun ends, and the factor between."""

    suffix: str = ""
    base: str = ""
    factor: float = 1


def _factor(text: str) -> float:
    """KW, 1/KWH: names of units, or one over another; nothing is 1."""
    above, _, below = (text or "1").partition("/")
    return _named(above) / _named(below or "1")


def _named(name: str) -> float:
    return OTHERS[name] if name in OTHERS else float(getattr(units, name))


UNITS = {
    row["unit"]: Unit(row["suffix"], row["base"], _factor(row["factor"]))
    for row in packaged_rows("gpuplan.inputs", "data/units.csv")
}
PLAIN = Unit()
_LONGEST_FIRST = sorted(UNITS, key=lambda unit: len(UNITS[unit].suffix), reverse=True)


def unit_of(key: str) -> str:
    """The unit that a key ends in, in words; empty where it ends in none."""
    named = (unit for unit in _LONGEST_FIRST if UNITS[unit].suffix)
    return next((unit for unit in named if f"_{key}".endswith(UNITS[unit].suffix)), "")


def field_names(key: str, unit: str) -> tuple[str, ...]:
    """What the field of a noun may be called that holds this key in base units."""
    suffix, base, _ = UNITS.get(unit, PLAIN)
    is_ending = f"_{key}".endswith(suffix)
    name = (f"_{key}".removesuffix(suffix) + base).removeprefix("_") if is_ending else key
    return name, f"n_{name}", f"is_{name}", f"{name}_ratio"
