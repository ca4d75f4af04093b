"""The file format of the rules for everything around accelerators; left out, usual figures hold.

What a plan or a check rests on of these is told with its key.
"""

from typing import Annotated

from pydantic import Field

from gpuplan.inputs.schema.keys import (
    Count,
    CountOrZero,
    Frac,
    NonNegative,
    Positive,
    PositiveFrac,
    PositiveSpread,
    Ratio,
    Spread,
    Strict,
    key,
    optional,
    section,
)


class NonNegativeSpread(Spread):
    """A number from 0 on, or low, mid and high."""

    low: NonNegative = key("Lowest value to plan for")
    mid: NonNegative = key("Most likely value")
    high: NonNegative = key("Highest value to plan for")


Hours = Annotated[list[NonNegative], Field(min_length=24, max_length=24)]


class HostRulesSpec(Strict):
    """What a machine needs for its accelerators."""

    cores_per_accelerator: Positive | None = optional("Beside decoding; usually 2", "cores")
    system_cores: NonNegative | None = optional("Of each machine; usually 4", "cores")
    memory_ratio: Positive | None = optional("Host memory over the accelerators'; 2", "ratio")
    load_s: Positive | None = optional("For weights at a start; 60", "seconds")
    prefetch_batches: NonNegative | None = optional("Pinned per accelerator; 4", "batches")
    memory_gb_per_s: Positive | None = optional("Of one machine's memory; 200", "GB per second")
    memory_crossings: Positive | None = optional("Of a sample; 4", "times")


class LinkRulesSpec(Strict):
    """What storage and networks reach, and what is enough."""

    file_link_frac: PositiveFrac | None = optional("Of a line, by file protocols; 0.88", "fraction")
    objects_in_flight: Positive | None = optional("Requests of one node; 256", "requests")
    read_mib: Positive | None = optional("Of a read in sequence; 1", "MiB")
    enough_speed_frac: PositiveFrac | None = optional("That work keeps; 0.9", "fraction")
    management_ports: Count | None = optional("Of a node; 2", "ports")
    management_oversubscription: Ratio | None = optional("Usually 4", "ratio")
    held_tb: Positive | None = optional("Data whose size is not said; 30", "TB")
    kept_checkpoints: Positive | None = optional("Usually 3", "checkpoints")


class RoomRulesSpec(Strict):
    """Racks, rows, cables, the store of energy."""

    nodes_per_rack: Count | None = optional("Where no rack is described; 4", "machines")
    racks_per_row: Count | None = optional("Usually 8", "racks")
    rack_width_m: Positive | None = optional("Usually 0.6", "metres")
    row_m: Positive | None = optional("From row to row; 3", "metres")
    cable_ends_m: NonNegative | None = optional("Up and down at both ends; 4", "metres")
    reserved_u: CountOrZero | None = optional("Of a rack, for switches; 4", "rack units")
    cap_reserve_frac: Frac | None = optional("Of a feed, free under caps; 0.05", "fraction")
    liquid_frac: Frac | None = optional("Of the heat that liquid takes; 0.8", "fraction")
    ups_minutes: Positive | None = optional("Until a generator carries; 5", "minutes")
    ups_module_kw: Positive | None = optional("Of one module; 50", "kW")
    ups_power_factor_frac: PositiveFrac | None = optional("Of the load; 0.95", "fraction")
    ups_efficiency_frac: PositiveFrac | None = optional("From the store; 0.95", "fraction")


class SpareRulesSpec(Strict):
    """Repair, and what is promised meanwhile."""

    repair_days: NonNegative | None = optional("Until a machine is back; 3", "days")
    kept_frac: PositiveFrac | None = optional("Of the time at full number; 0.99", "fraction")
    worth_frac: PositiveFrac | None = optional("Of a run, to pay a faster tier; 0.01", "fraction")


class PartPricesSpec(Strict):
    """Prices of what joins and feeds machines."""

    switch_usd_per_gbit: PositiveSpread | None = optional("Of its ports", "USD per Gbit/s")
    adapter_usd_per_gbit: PositiveSpread | None = optional("Of a machine", "USD per Gbit/s")
    optic_usd_per_gbit: PositiveSpread | None = optional("Both ends, fibre", "USD per Gbit/s")
    copper_usd_per_gbit: PositiveSpread | None = optional("Up to 3 m", "USD per Gbit/s")
    core_usd: PositiveSpread | None = optional("In a server that decodes", "USD per core")
    nvme_usd_per_tb: PositiveSpread | None = optional("Local drives", "USD per TB")
    flash_shelf_usd_per_tb: PositiveSpread | None = optional("Parallel file system", "USD per TB")
    disk_usd_per_tb: PositiveSpread | None = optional("Hard disks behind NFS", "USD per TB")


class FootprintRulesSpec(Strict):
    """Water, and what making the hardware emitted."""

    water_l_per_kwh: NonNegativeSpread | None = optional("On site", "litres per kWh of machines")
    server_kg: PositiveSpread | None = optional("Without accelerators, of eight", "kg CO2e")
    accelerator_kg: PositiveSpread | None = optional("Of one board", "kg CO2e")
    hourly_g_per_kwh: Hours | None = optional(
        "Carbon of each hour of the day: work that may wait is moved to clean ones", "gCO2e per kWh"
    )
    life_years: Positive | None = optional("Over which manufacture is spread; 4", "years")


class BusyRulesSpec(Strict):
    """When accelerators that wait are an error, and when a warning."""

    reject_frac: Frac | None = optional("Busy less than this is an error; 0.7", "fraction")
    warn_frac: Frac | None = optional("Busy less than this is a warning; 0.9", "fraction")


class BuildSpec(Strict):
    """Rules for everything around accelerators."""

    hosts: HostRulesSpec = section("What a machine needs", HostRulesSpec)
    links: LinkRulesSpec = section("Storage and networks", LinkRulesSpec)
    room: RoomRulesSpec = section("Racks, rows, cables", RoomRulesSpec)
    spares: SpareRulesSpec = section("Repair and promise", SpareRulesSpec)
    prices: PartPricesSpec = section("Of parts", PartPricesSpec)
    footprint: FootprintRulesSpec = section("Water and manufacture", FootprintRulesSpec)
    busy: BusyRulesSpec = section("What is rejected", BusyRulesSpec)
