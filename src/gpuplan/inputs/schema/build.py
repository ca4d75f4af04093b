"""The file format of the design rules for everything around accelerators.

What is left out has the usual figure; what a plan or a check rests on is reported with its key.
"""

from typing import Annotated

from pydantic import Field

from gpuplan.inputs.schema.keys import (
    Count,
    CountOrZero,
    Frac,
    NonNegative,
    NonNegativeSpread,
    Positive,
    PositiveFrac,
    PositiveSpread,
    Ratio,
    Strict,
    optional,
    section,
)

Hours = Annotated[list[NonNegative], Field(min_length=24, max_length=24)]


class HostRulesSpec(Strict):
    """What a node needs for its accelerators."""

    cores_per_accelerator: Positive | None = optional(
        "CPU cores per accelerator, beside decoding; 2", "cores"
    )
    system_cores: NonNegative | None = optional("CPU cores of each node for the system; 4")
    memory_ratio: Positive | None = optional("Host memory over accelerator memory; 2", "ratio")
    load_s: Positive | None = optional("Time to load weights at a start; 60")
    prefetch_batches: NonNegative | None = optional(
        "Batches in pinned memory per accelerator; 4", "batches"
    )
    memory_gb_per_s: Positive | None = optional(
        "Host memory bandwidth of one node; 200", "GB (1e9 bytes) per second"
    )
    memory_crossings: Positive | None = optional(
        "Times that a sample crosses host memory; 4", "times"
    )


class LinkRulesSpec(Strict):
    """What storage and networks reach, and what is enough."""

    file_link_frac: PositiveFrac | None = optional(
        "Share of the line rate that file protocols reach; 0.88"
    )
    objects_in_flight: Positive | None = optional(
        "Object-store requests in flight per node; 256", "requests"
    )
    read_mib: Positive | None = optional("Size of a sequential read; 1")
    enough_speed_frac: PositiveFrac | None = optional(
        "Share of its speed that work must retain over a network; 0.9", to="enough_frac"
    )
    management_ports: Count | None = optional("Management ports of a node; 2", "ports")
    management_oversubscription: Ratio | None = optional(
        "Oversubscription of the management network; 4", "ratio"
    )
    held_tb: Positive | None = optional("Size of data whose size is not stated; 30")
    kept_checkpoints: Positive | None = optional("Checkpoints that are retained; 3", "checkpoints")


class RoomRulesSpec(Strict):
    """Racks, rows, cables and the UPS."""

    nodes_per_rack: Count | None = optional("Nodes per rack where no rack is described; 4", "nodes")
    racks_per_row: Count | None = optional("Racks per row; 8", "racks")
    rack_width_m: Positive | None = optional("Width of a rack; 0.6")
    row_m: Positive | None = optional("Distance from row to row; 3")
    cable_ends_m: NonNegative | None = optional("Cable length up and down at both ends; 4")
    reserved_u: CountOrZero | None = optional(
        "Rack units reserved for switches; 4", to="n_reserved_units"
    )
    cap_reserve_frac: Frac | None = optional(
        "Share of a feed that stays free under power caps; 0.05"
    )
    liquid_frac: Frac | None = optional("Share of the heat that liquid removes; 0.8")
    ups_minutes: Positive | None = optional(
        "UPS runtime until a generator takes over; 5", "minutes", to="ups_bridge_s"
    )
    ups_module_kw: Positive | None = optional("Power of one UPS module; 50")
    ups_power_factor_frac: PositiveFrac | None = optional(
        "Power factor of the load on the UPS; 0.95"
    )
    ups_efficiency_frac: PositiveFrac | None = optional("Efficiency of the UPS; 0.95")


class SpareRulesSpec(Strict):
    """Repair times, and the capacity guaranteed meanwhile."""

    repair_days: NonNegative | None = optional("Time until a failed node is repaired; 3")
    kept_frac: PositiveFrac | None = optional(
        "Share of time in which the full number of nodes works; 0.99"
    )
    worth_frac: PositiveFrac | None = optional(
        "Share of a run that a faster checkpoint tier must save; 0.01"
    )


class PartPricesSpec(Strict):
    """Prices of network, storage and host parts."""

    switch_usd_per_gbit: PositiveSpread | None = optional(
        "Price of switches by the bandwidth of their ports"
    )
    adapter_usd_per_gbit: PositiveSpread | None = optional("Price of NICs")
    optic_usd_per_gbit: PositiveSpread | None = optional(
        "Price of optical links, both ends and the fibre"
    )
    copper_usd_per_gbit: PositiveSpread | None = optional("Price of copper links up to 3 m")
    core_usd: PositiveSpread | None = optional(
        "Price of a CPU core in a server that decodes", "USD per core"
    )
    nvme_usd_per_tb: PositiveSpread | None = optional("Price of local NVMe drives")
    flash_shelf_usd_per_tb: PositiveSpread | None = optional(
        "Price of a parallel file system on flash"
    )
    disk_usd_per_tb: PositiveSpread | None = optional("Price of hard disks behind NFS")


class FootprintRulesSpec(Strict):
    """Water use, and embodied carbon of the hardware."""

    water_l_per_kwh: NonNegativeSpread | None = optional("Water used on site")
    server_kg: PositiveSpread | None = optional(
        "Embodied carbon of a server for eight accelerators, without them"
    )
    accelerator_kg: PositiveSpread | None = optional("Embodied carbon of one accelerator")
    hourly_g_per_kwh: Hours | None = optional(
        "Carbon intensity of each hour of the day; deferrable work moves to the cleanest"
    )
    life_years: Positive | None = optional("Lifetime over which embodied carbon is spread; 4")


class BusyRulesSpec(Strict):
    """Utilization below which a check rejects a system or warns."""

    reject_frac: Frac | None = optional("Utilization below this is an error; 0.7")
    warn_frac: Frac | None = optional("Utilization below this is a warning; 0.9")


class BuildSpec(Strict):
    """Design rules for everything around accelerators; descriptions name the usual figure."""

    hosts: HostRulesSpec = section("What a node needs for its accelerators", HostRulesSpec)
    links: LinkRulesSpec = section("Storage and networks", LinkRulesSpec)
    room: RoomRulesSpec = section("Racks, rows, cables and the UPS", RoomRulesSpec)
    spares: SpareRulesSpec = section("Repair times and guaranteed capacity", SpareRulesSpec)
    prices: PartPricesSpec = section("Prices of network, storage and host parts", PartPricesSpec)
    footprint: FootprintRulesSpec = section("Water use and embodied carbon", FootprintRulesSpec)
    busy: BusyRulesSpec = section("Utilization that is rejected or warned of", BusyRulesSpec)
