"""Units of the file formats: a key ends in its unit, and the unit says what it becomes inside."""

from typing import NamedTuple

from gpuplan.units import (
    DAY,
    GB,
    GBIT,
    GFLOP,
    GIB,
    GRAM,
    HOUR,
    KB,
    KW,
    KWH,
    MB,
    MIB,
    MINUTE,
    MONTH,
    MS,
    TB,
    WEEK,
    YEAR,
)

TONNE = 1e3  # kg
MILLION = 1e6
BILLION = 1e9


class Unit(NamedTuple):
    """How keys end that have this unit, how the field of the noun ends, and the factor between."""

    suffix: str = ""
    base: str = ""
    factor: float = 1


UNITS = {
    "milliseconds": Unit("_ms", "_s", MS),
    "seconds": Unit("_s", "_s"),
    "minutes": Unit("_min", "_s", MINUTE),
    "hours": Unit("_h", "_s", HOUR),
    "days": Unit("_days", "_s", DAY),
    "weeks": Unit("_weeks", "_s", WEEK),
    "months": Unit("_months", "_s", MONTH),
    "years": Unit("_years", "_s", YEAR),
    "hours per week": Unit("_hours_per_week", "_s", HOUR),
    "per week": Unit("_per_week", "_per_s", 1 / WEEK),
    "documents per day": Unit("_docs_per_day", "_docs_per_s", 1 / DAY),
    "requests per second": Unit("_requests_per_s", "_requests_per_s"),
    "samples per second": Unit("_samples_per_s", "_samples_per_s"),
    "tokens per second": Unit("_tokens_per_s", "_tokens_per_s"),
    "tokens": Unit("_tokens", "_tokens"),
    "pixels": Unit("_px", "_px"),
    "samples": Unit("_samples", "_samples"),
    "accelerators": Unit("_accelerators", "_accelerators"),
    "nodes": Unit("_nodes", "_nodes"),
    "replicas": Unit("_replicas", "_replicas"),
    "NICs": Unit("_nics", "_nics"),
    "racks": Unit("_racks", "_racks"),
    "cores": Unit("_cores", "_cores"),
    "requests": Unit("_requests", "_requests"),
    "fraction": Unit("_frac", "_frac"),
    "fraction per month": Unit("_per_month_frac", "_per_month_frac"),
    "fraction per year": Unit("_frac_per_year", "_frac_per_year"),
    "relative": Unit("_profile", "_profile"),
    "kB (1e3 bytes)": Unit("_kb", "_bytes", KB),
    "MB (1e6 bytes)": Unit("_mb", "_bytes", MB),
    "TB (1e12 bytes)": Unit("_tb", "_bytes", TB),
    "MiB": Unit("_mib", "_bytes", MIB),
    "GiB": Unit("_gib", "_bytes", GIB),
    "GB (1e9 bytes) per day": Unit("_gb_per_day", "_bytes_per_s", GB / DAY),
    "TB (1e12 bytes) per month": Unit("_tb_per_month", "_bytes_per_s", TB / MONTH),
    "GB (1e9 bytes) per second": Unit("_gb_per_s", "_bytes_per_s", GB),
    "Gbit per second": Unit("_gbit_per_s", "_bytes_per_s", GBIT),
    "GFLOP": Unit("_gflop_per_sample", "_flop_per_sample", GFLOP),
    "billions": Unit("_params_b", "_params", BILLION),
    "rack units": Unit("_u", "_u"),
    "metres": Unit("_m", "_m"),
    "kg": Unit("_weight_kg", "_weight_kg"),
    "kg CO2e": Unit("_kg", "_kg"),
    "watts": Unit("_w", "_w"),
    "kW": Unit("_kw", "_w", KW),
    "USD": Unit("_usd", "_usd"),
    "USD per month": Unit("_usd_per_month", "_usd_per_month"),
    "USD per year": Unit("_usd_per_year", "_usd_per_year"),
    "USD per kWh": Unit("_usd_per_kwh", "_usd_per_j", 1 / KWH),
    "USD per kW and month": Unit("_usd_per_kw_month", "_usd_per_w_month", 1 / KW),
    "USD per GB": Unit("_usd_per_gb", "_usd_per_byte", 1 / GB),
    "USD per TB": Unit("_usd_per_tb", "_usd_per_tb"),
    "USD per TB and month": Unit("_usd_per_tb_month", "_usd_per_byte_month", 1 / TB),
    "USD per Gbit/s": Unit("_usd_per_gbit", "_usd_per_gbit"),
    "USD per million tokens": Unit(factor=1 / MILLION),
    "USD per tonne CO2e": Unit("_usd_per_t", "_usd_per_kg", 1 / TONNE),
    "tonnes CO2e per year": Unit("_t_per_year", "_kg_per_year", TONNE),
    "gCO2e per kWh": Unit("_g_per_kwh", "_kg_per_j", GRAM / KWH),
    "litres per kWh of IT energy": Unit("_l_per_kwh", "_kg_per_j", 1 / KWH),  # a litre is a kg
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
