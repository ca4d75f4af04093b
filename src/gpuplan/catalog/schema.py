"""The fact format: which quantities each kind of item has, their units and their physical bounds.

Rows come from tables (`item,quantity,value,unit,source,preferred,note`) or from an overlay; what
leaves is knowledge about a quantity: how to convert it and what it may be.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.units import GB, GBIT, GIB, MIB, TB, TFLOP

Kind = Literal["accelerator", "server", "switch", "nic", "link", "storage"]

TEXT = "text"
_UNITS = {
    TEXT: (1.0, ""),
    "count": (1.0, ""),
    "frac": (1.0, "_frac"),
    "GB": (GB, "_gb"),
    "TB": (TB, "_tb"),
    "GiB": (GIB, "_gib"),
    "MiB": (MIB, "_mib"),
    "GB/s": (GB, "_gb_per_s"),
    "Gbit/s": (GBIT, "_gbit_per_s"),
    "TFLOP/s": (TFLOP, "_tflops"),
    "W": (1.0, "_w"),
    "U": (1.0, ""),
    "kg": (1.0, "_kg"),
    "mm": (1e-3, "_mm"),
    "m": (1.0, "_m"),
    "ns": (1e-9, "_ns"),
    "us": (1e-6, "_us"),
    "1/s": (1.0, ""),
    "USD": (1.0, "_usd"),
    "USD/GB-month": (1.0, "_usd_per_gb_month"),
    "kgCO2e": (1.0, "_kg_co2e"),
}
"""Every unit that a table may use: a multiple of the base unit, and how overlay keys end."""

UNITS = MappingProxyType({unit: factor for unit, (factor, _) in _UNITS.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What a quantity is measured in and the least and most that physics and the market allow."""

    name: str
    unit: str  # the unit of its overlay key and its bounds
    low: float = 0.0
    high: float = float("inf")
    required: bool = False
    to: str = ""  # the field of the noun, with dots into its parts; empty: a fact that none has

    @property
    def is_text(self) -> bool:
        """A word, not a number."""
        return self.unit == TEXT


PEAKS = {
    "fp64": (0.1, 500),
    "fp64_matrix": (0.1, 500),
    "fp32": (1, 1e3),
    "tf32": (1, 5e3),
    "bf16": (1, 2e4),
    "fp16": (1, 2e4),
    "fp8": (10, 4e4),
    "fp4": (10, 8e4),
    "int8": (1, 4e4),
}
"""Lowest and highest dense peak of each precision, TFLOP/s."""

PRECISIONS = tuple(PEAKS)


def _text(*names: str, required: bool = False, **inside: str) -> list[Quantity]:
    """Words under their own name in the noun, then those that stand inside a part of it."""
    fields = {name: name for name in names} | inside
    return [Quantity(name=n, unit=TEXT, required=required, to=to) for n, to in fields.items()]


def _number(
    name: str, unit: str, low: float, high: float, to: str = "", *, required: bool = False
) -> Quantity:
    return Quantity(name=name, unit=unit, low=low, high=high, to=to, required=required)


def _accelerator() -> list[Quantity]:
    peaks = [
        _number(f"peak_{name}", "TFLOP/s", *bounds, f"peak_flop_per_s.{name}")
        for name, bounds in PEAKS.items()
    ]
    memory = [
        _number("memory_marketed", "GiB", 4, 4096, "memory.marketed_bytes", required=True),
        _number("memory_driver", "MiB", 4096, 4194304, "memory.driver_bytes", required=True),
        _number("memory_visible", "GiB", 4, 4096, "memory.visible_bytes", required=True),
        _number("memory_bandwidth", "GB/s", 50, 4e4, "memory.bytes_per_s", required=True),
    ]
    links = [
        _number("scale_up_bandwidth", "GB/s", 10, 4000, "scale_up.bytes_per_s"),
        _number("scale_up_pair_bandwidth", "GB/s", 5, 4000, "scale_up.pair_bytes_per_s"),
        _number("scale_up_domain", "count", 2, 1e5, "scale_up.n_domain"),
        _number("scale_up_domain_max", "count", 2, 1e5, "scale_up.n_domain_max"),
        _number("host_link_bandwidth", "GB/s", 4, 1000, "host_link.bytes_per_s"),
    ]
    power = [
        _number("power_limit", "W", 30, 5000, "power.limit_w"),
        _number("power_idle", "W", 1, 500, "power.idle_w"),
        _number("power_loaded_idle", "W", 5, 800, "power.loaded_idle_w"),
    ]
    other = [
        _number("devices_per_package", "count", 1, 16),
        _number("matmul_ceiling_bf16", "TFLOP/s", 1, 2e4),
        _number("price_low", "USD", 100, 1e6),
        _number("price_high", "USD", 100, 1e6),
        _number("embodied_carbon", "kgCO2e", 10, 1e4),
    ]
    words = _text(
        "name",
        "vendor",
        "family",
        "form_factor",
        "instruction_set",
        required=True,
        memory_kind="memory.kind",
        launched="lifecycle.launched",
    )
    optional = _text(
        end_of_sale="",
        status="lifecycle.status",
        scale_up_name="scale_up.name",
        host_link_name="host_link.name",
    )
    return [*words, *optional, *peaks, *memory, *links, *power, *other]


def _server() -> list[Quantity]:
    words = _text("name", "accelerator", required=True, cooling="power.cooling")
    optional = _text(
        cpu="host.cpu",
        fabric_nic="host.fabric_nic",
        front_nic="host.front_nic",
        psu="power.psu",
    )
    numbers = [
        _number("n_accelerators", "count", 1, 1024, "n_accelerators", required=True),
        _number("n_cores", "count", 4, 1e4, "host.n_cores"),
        _number("ram", "GiB", 16, 1e5, "host.ram_bytes"),
        _number("n_fabric_nics", "count", 1, 1024, "host.n_fabric_nics"),
        _number("n_front_nics", "count", 1, 1024, "host.n_front_nics"),
        _number("nvme", "TB", 0.1, 5000, "host.nvme_bytes"),
        _number("rack_units", "U", 1, 60, "height_u"),
        _number("weight", "kg", 5, 3000, "weight_kg"),
        _number("depth", "mm", 200, 2000, "depth_m"),
        _number("power_limit", "W", 200, 3e5, "power.limit_w"),
        _number("power_measured_peak", "W", 100, 3e5, "power.measured_peak_w"),
        _number("power_measured_idle", "W", 50, 3e5, "power.measured_idle_w"),
        _number("price_low", "USD", 1e3, 1e7),
        _number("price_high", "USD", 1e3, 1e7),
    ]
    return [*words, *optional, *numbers]


def _network(kind: str) -> list[Quantity]:
    name = _text("name", required=True)
    port = [
        _number("n_ports", "count", 1, 1024, "n_ports", required=True),
        _number("port_bandwidth", "Gbit/s", 1, 3200, "port_bytes_per_s", required=True),
    ]
    if kind == "nic":
        return [*name, *port, _number("power", "W", 1, 300, "power_w")]
    if kind == "switch":
        return [
            *name,
            *_text("fabric", required=True),
            *port,
            _number("rack_units", "U", 1, 20, "height_u"),
            _number("power_typical", "W", 10, 1e4, "typical_w"),
            _number("power_limit", "W", 10, 2e4, "limit_w"),
            _number("latency", "ns", 10, 1e5, "latency_s"),
        ]
    return [
        *name,
        *_text("medium", required=True),
        _number("bandwidth", "GB/s", 1, 4000, "bytes_per_s", required=True),
        _number("bandwidth_measured", "GB/s", 1, 4000, "measured_bytes_per_s"),
        _number("reach", "m", 0.1, 1e5, "reach_m"),
        _number("power", "W", 0.01, 100, "power_w"),
    ]


def _storage() -> list[Quantity]:
    return [
        *_text("name", "scope", required=True),
        _number("read_bandwidth", "GB/s", 0.001, 1e4, "read_bytes_per_s", required=True),
        _number("write_bandwidth", "GB/s", 0.001, 1e4, "write_bytes_per_s", required=True),
        _number("iops", "1/s", 1, 1e9, "operations_per_s"),
        _number("latency", "us", 1, 1e6, "latency_s"),
        _number("price", "USD/GB-month", 1e-4, 10, "usd_per_gb_month"),
        _number("usable", "frac", 0.1, 1, "usable_frac"),
    ]


def _by_name(quantities: list[Quantity]) -> Mapping[str, Quantity]:
    return MappingProxyType({quantity.name: quantity for quantity in quantities})


QUANTITIES: Mapping[Kind, Mapping[str, Quantity]] = MappingProxyType(
    {
        "accelerator": _by_name(_accelerator()),
        "server": _by_name(_server()),
        "switch": _by_name(_network("switch")),
        "nic": _by_name(_network("nic")),
        "link": _by_name(_network("link")),
        "storage": _by_name(_storage()),
    }
)
"""What may be said of an item, by its kind."""

SECTIONS: Mapping[str, Kind] = MappingProxyType(
    {
        "accelerators": "accelerator",
        "servers": "server",
        "switches": "switch",
        "nics": "nic",
        "links": "link",
        "storage": "storage",
    }
)
"""The sections of an overlay file, and the kind of item that each holds."""

_SHORT_KEYS = MappingProxyType(
    {
        "memory_marketed": "memory_gib",
        "power_limit": "tdp_w",
        "power_idle": "idle_w",
        "power_loaded_idle": "loaded_idle_w",
    }
)


def overlay_key(kind: Kind, quantity: Quantity) -> str:
    """What an overlay file calls the quantity: a word that ends in its unit."""
    if kind == "accelerator" and quantity.name in _SHORT_KEYS:
        return _SHORT_KEYS[quantity.name]
    stem = quantity.name.removeprefix("peak_").replace("_bandwidth", "")
    return (stem or quantity.name) + _UNITS[quantity.unit][1]


def in_base_units(value: str, unit: str) -> float:
    """The number in s, bytes, flop, W or USD; the table's own unit is left behind here."""
    return float(value) * UNITS[unit]
