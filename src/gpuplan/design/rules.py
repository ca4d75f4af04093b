"""The usual figures that an answer rests on, as assumptions with the keys that set them.

`data/rules.csv` says in a line how each rule reads.
"""

from typing import NamedTuple

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import BuildRules


class Rule(NamedTuple):
    """How one rule reads: what it is, its value in the unit of its key, and why it is usual."""

    what: str
    value: str
    why: str
    source: str = ""


RULES = {
    row.pop("key"): Rule(**row)
    for row in map(dict, packaged_rows("gpuplan.design", "data/rules.csv"))
}
STORAGE_PRICES = (
    "prices.nvme_usd_per_tb",
    "prices.flash_shelf_usd_per_tb",
    "prices.disk_usd_per_tb",
)
NETWORK_PRICES = (
    "prices.switch_usd_per_gbit",
    "prices.adapter_usd_per_gbit",
    "prices.optic_usd_per_gbit",
    "prices.copper_usd_per_gbit",
)
CABLES = ("room.racks_per_row", "room.rack_width_m", "room.row_m", "room.cable_ends_m")
UPS = tuple(name for name in RULES if name.startswith("room.ups_"))


def assumed(build: BuildRules, *names: str) -> tuple[Assumption, ...]:
    """An assumption for each of these rules that the user did not set."""
    return tuple(_note(build, name) for name in names if name not in build.given)


def _note(build: BuildRules, name: str) -> Assumption:
    rule, value = RULES[name], build.value_of(name)
    shown = _span(value) if isinstance(value, Range) else value
    return assume(rule.what, rule.value.format(shown), rule.why, f"build.{name}", rule.source)


def _span(value: Range) -> str:
    return f"{value.mid:g}" if value.is_exact else f"{value.low:g} to {value.high:g}"
