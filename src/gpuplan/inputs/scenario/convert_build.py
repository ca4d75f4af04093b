"""From the file's units to base units: rules for everything around accelerators."""

from dataclasses import replace
from typing import Any

from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import BuildRules
from gpuplan.inputs.schema.build import BuildSpec
from gpuplan.inputs.schema.keys import Spread, Strict
from gpuplan.units import DAY, GB, GRAM, KW, KWH, MIB, MINUTE, TB, YEAR

# Key → name inside and factor; keys that are not here keep their name and unit.
INSIDE: dict[str, tuple[str, float]] = {
    "hosts.cores_per_accelerator": ("n_cores_per_accelerator", 1.0),
    "hosts.system_cores": ("n_system_cores", 1.0),
    "hosts.prefetch_batches": ("n_prefetch_batches", 1.0),
    "hosts.memory_gb_per_s": ("memory_bytes_per_s", GB),
    "hosts.memory_crossings": ("n_memory_crossings", 1.0),
    "links.objects_in_flight": ("n_objects_in_flight", 1.0),
    "links.read_mib": ("read_bytes", MIB),
    "links.enough_speed_frac": ("enough_frac", 1.0),
    "links.management_ports": ("n_management_ports", 1),
    "links.management_oversubscription": ("management_oversubscription_ratio", 1.0),
    "links.held_tb": ("held_bytes", TB),
    "links.kept_checkpoints": ("n_kept_checkpoints", 1.0),
    "room.nodes_per_rack": ("n_nodes_per_rack", 1),
    "room.racks_per_row": ("n_racks_per_row", 1),
    "room.reserved_u": ("n_reserved_units", 1),
    "room.ups_minutes": ("ups_bridge_s", MINUTE),
    "room.ups_module_kw": ("ups_module_w", KW),
    "spares.repair_days": ("repair_s", DAY),
    "footprint.water_l_per_kwh": ("water_kg_per_j", 1.0 / KWH),  # a litre of water is a kilogram
    "footprint.life_years": ("life_s", YEAR),
    "footprint.hourly_g_per_kwh": ("hourly_kg_per_j", GRAM / KWH),
}


def build(spec: BuildSpec) -> BuildRules:
    """The usual rules with what the user set in their place, and which those are."""
    rules, given = BuildRules(), set()
    for section in type(spec).model_fields:
        changes = _changes(section, getattr(spec, section))
        given |= {f"{section}.{name}" for name in changes}
        inside = dict(changes.values())
        rules = replace(rules, **{section: replace(getattr(rules, section), **inside)})
    return replace(rules, given=frozenset(given))


def _changes(section: str, spec: Strict) -> dict[str, tuple[str, Any]]:
    """Key → name inside and value, of what was given."""
    found = {}
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if value is None:
            continue
        field, factor = INSIDE.get(f"{section}.{name}", (name, 1))
        found[name] = (field, _inside(value, factor))
    return found


def _inside(value: Any, factor: float) -> Any:
    if isinstance(value, Spread):
        return Range(low=value.low, mid=value.mid, high=value.high).times(factor)
    if isinstance(value, list):
        return tuple(one * factor for one in value)
    return value * factor
