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
UNITS: Mapping[str, float] = MappingProxyType(
    {
        TEXT: 1.0,
        "count": 1.0,
        "frac": 1.0,
        "GB": GB,
        "TB": TB,
        "GiB": GIB,
        "MiB": MIB,
        "GB/s": GB,
        "Gbit/s": GBIT,
        "TFLOP/s": TFLOP,
        "W": 1.0,
        "U": 1.0,
        "kg": 1.0,
        "mm": 1e-3,
        "m": 1.0,
        "ns": 1e-9,
        "us": 1e-6,
        "1/s": 1.0,
        "USD": 1.0,
        "USD/GB-month": 1.0,
        "kgCO2e": 1.0,
    }
)
"""Every unit that a table may use, as a multiple of the base unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What a quantity is measured in and the least and most that physics and the market allow."""

    name: str
    unit: str  # the unit of its overlay key and its bounds
    low: float = 0.0
    high: float = float("inf")
    required: bool = False

    @property
    def is_text(self) -> bool:
        """A word, not a number."""
        return self.unit == TEXT


def _text(*names: str, required: bool = False) -> list[Quantity]:
    return [Quantity(name=name, unit=TEXT, required=required) for name in names]


def _peaks() -> list[Quantity]:
    low_high = {
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
    return [
        Quantity(name=f"peak_{name}", unit="TFLOP/s", low=low, high=high)
        for name, (low, high) in low_high.items()
    ]


def _accelerator() -> list[Quantity]:
    memory = [
        Quantity(name="memory_marketed", unit="GiB", low=4, high=4096, required=True),
        Quantity(name="memory_driver", unit="MiB", low=4096, high=4194304, required=True),
        Quantity(name="memory_visible", unit="GiB", low=4, high=4096, required=True),
        Quantity(name="memory_bandwidth", unit="GB/s", low=50, high=4e4, required=True),
    ]
    links = [
        Quantity(name="scale_up_bandwidth", unit="GB/s", low=10, high=4000),
        Quantity(name="scale_up_pair_bandwidth", unit="GB/s", low=5, high=4000),
        Quantity(name="scale_up_domain", unit="count", low=2, high=1e5),
        Quantity(name="scale_up_domain_max", unit="count", low=2, high=1e5),
        Quantity(name="host_link_bandwidth", unit="GB/s", low=4, high=1000),
    ]
    power = [
        Quantity(name="power_limit", unit="W", low=30, high=5000),
        Quantity(name="power_idle", unit="W", low=1, high=500),
        Quantity(name="power_loaded_idle", unit="W", low=5, high=800),
    ]
    other = [
        Quantity(name="devices_per_package", unit="count", low=1, high=16),
        Quantity(name="matmul_ceiling_bf16", unit="TFLOP/s", low=1, high=2e4),
        Quantity(name="price_low", unit="USD", low=100, high=1e6),
        Quantity(name="price_high", unit="USD", low=100, high=1e6),
        Quantity(name="embodied_carbon", unit="kgCO2e", low=10, high=1e4),
    ]
    words = _text(
        "name",
        "vendor",
        "family",
        "form_factor",
        "instruction_set",
        "memory_kind",
        "launched",
        required=True,
    )
    optional = _text("end_of_sale", "status", "scale_up_name", "host_link_name")
    return [*words, *optional, *_peaks(), *memory, *links, *power, *other]


def _server() -> list[Quantity]:
    words = _text("name", "accelerator", "cooling", required=True)
    optional = _text("cpu", "fabric_nic", "front_nic", "psu")
    numbers = [
        Quantity(name="n_accelerators", unit="count", low=1, high=1024, required=True),
        Quantity(name="n_cores", unit="count", low=4, high=1e4),
        Quantity(name="ram", unit="GiB", low=16, high=1e5),
        Quantity(name="n_fabric_nics", unit="count", low=1, high=1024),
        Quantity(name="n_front_nics", unit="count", low=1, high=1024),
        Quantity(name="nvme", unit="TB", low=0.1, high=5000),
        Quantity(name="rack_units", unit="U", low=1, high=60),
        Quantity(name="weight", unit="kg", low=5, high=3000),
        Quantity(name="depth", unit="mm", low=200, high=2000),
        Quantity(name="power_limit", unit="W", low=200, high=3e5),
        Quantity(name="power_measured_peak", unit="W", low=100, high=3e5),
        Quantity(name="power_measured_idle", unit="W", low=50, high=3e5),
        Quantity(name="price_low", unit="USD", low=1e3, high=1e7),
        Quantity(name="price_high", unit="USD", low=1e3, high=1e7),
    ]
    return [*words, *optional, *numbers]


def _network(kind: str) -> list[Quantity]:
    name = _text("name", required=True)
    port = [
        Quantity(name="n_ports", unit="count", low=1, high=1024, required=True),
        Quantity(name="port_bandwidth", unit="Gbit/s", low=1, high=3200, required=True),
    ]
    if kind == "nic":
        return [*name, *port, Quantity(name="power", unit="W", low=1, high=300)]
    if kind == "switch":
        return [
            *name,
            *_text("fabric", required=True),
            *port,
            Quantity(name="rack_units", unit="U", low=1, high=20),
            Quantity(name="power_typical", unit="W", low=10, high=1e4),
            Quantity(name="power_limit", unit="W", low=10, high=2e4),
            Quantity(name="latency", unit="ns", low=10, high=1e5),
        ]
    return [
        *name,
        *_text("medium", required=True),
        Quantity(name="bandwidth", unit="GB/s", low=1, high=4000, required=True),
        Quantity(name="bandwidth_measured", unit="GB/s", low=1, high=4000),
        Quantity(name="reach", unit="m", low=0.1, high=1e5),
        Quantity(name="power", unit="W", low=0.01, high=100),
    ]


def _storage() -> list[Quantity]:
    return [
        *_text("name", "scope", required=True),
        Quantity(name="read_bandwidth", unit="GB/s", low=0.001, high=1e4, required=True),
        Quantity(name="write_bandwidth", unit="GB/s", low=0.001, high=1e4, required=True),
        Quantity(name="iops", unit="1/s", low=1, high=1e9),
        Quantity(name="latency", unit="us", low=1, high=1e6),
        Quantity(name="price", unit="USD/GB-month", low=1e-4, high=10),
        Quantity(name="usable", unit="frac", low=0.1, high=1),
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

PRECISIONS = ("fp64", "fp64_matrix", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")


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

_SUFFIXES = MappingProxyType(
    {
        TEXT: "",
        "count": "",
        "frac": "_frac",
        "GB": "_gb",
        "TB": "_tb",
        "GiB": "_gib",
        "MiB": "_mib",
        "GB/s": "_gb_per_s",
        "Gbit/s": "_gbit_per_s",
        "TFLOP/s": "_tflops",
        "W": "_w",
        "U": "",
        "kg": "_kg",
        "mm": "_mm",
        "m": "_m",
        "ns": "_ns",
        "us": "_us",
        "1/s": "",
        "USD": "_usd",
        "USD/GB-month": "_usd_per_gb_month",
        "kgCO2e": "_kg_co2e",
    }
)
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
    return (stem or quantity.name) + _SUFFIXES[quantity.unit]


def in_base_units(value: str, unit: str) -> float:
    """The number in s, bytes, flop, W or USD; the table's own unit is left behind here."""
    return float(value) * UNITS[unit]
