"""What can be bought or rented, as the catalog knows it."""

from collections.abc import Mapping
from typing import NewType

from gpuplan.domain.noun import dataclass

AcceleratorId = NewType("AcceleratorId", str)
ANNOUNCED = "announced"
SALE_STATUSES = (ANNOUNCED, "on sale", "current", "legacy")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory of one accelerator: as marketed, as the driver counts it, as a program sees it."""

    kind: str
    marketed_bytes: float
    driver_bytes: float  # total that the vendor's tool prints, after error correction's share
    visible_bytes: float  # total that a framework can address: what fits is decided by this
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpLink:
    """Fast link between accelerators of one island."""

    name: str
    bytes_per_s: float  # one direction, all links of one accelerator
    pair_bytes_per_s: float | None  # one direction, between two neighbours
    n_domain: int  # accelerators that share it
    n_domain_max: int  # in the largest published arrangement


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLink:
    """The way to the host's memory."""

    name: str
    bytes_per_s: float  # one direction, after line coding


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerDraw:
    """Board power; unknown is None, never zero."""

    limit_w: float | None  # thermal design power or the default limit
    idle_w: float | None
    loaded_idle_w: float | None  # with a model in memory and nothing to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Where a product stands between its launch and its end.

    `on sale`: the maker sells it, or its cloud rents it out as a newest kind; `current`:
    succeeded, yet rented widely and supported by all software; `legacy`: out of sale, and rented
    by few or on its way out of toolkits.
    """

    launched: str  # ISO month, or `announced` before anybody is known to have one
    status: str  # one of SALE_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as software counts it; peaks are dense, without sparsity."""

    id: AcceleratorId
    name: str
    vendor: str
    family: str  # architecture, e.g. Hopper
    form_factor: str
    instruction_set: str  # sm_90, gfx942, x86-64-v4 …
    peak_flop_per_s: Mapping[str, float]  # by precision; absent = the hardware cannot
    memory: DeviceMemory
    scale_up: ScaleUpLink | None
    host_link: HostLink | None
    power: PowerDraw
    lifecycle: Lifecycle

    @property
    def is_announced(self) -> bool:
        """Published figures of something that nobody is known to sell yet."""
        return self.lifecycle.launched == ANNOUNCED

    @property
    def is_cpu(self) -> bool:
        """A host processor, not an accelerator card."""
        return self.form_factor == "socket"


ServerId = NewType("ServerId", str)
PartId = NewType("PartId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostParts:
    """What surrounds the accelerators inside one server."""

    cpu: str
    n_cores: int | None
    ram_bytes: float | None
    fabric_nic: str  # id of the adapter that faces the compute fabric; empty if unknown
    n_fabric_nics: int | None
    front_nic: str  # id of the adapter that faces storage and management; empty if unknown
    n_front_nics: int | None
    nvme_bytes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPower:
    """What one server draws and what feeds it; unknown is None, never zero."""

    limit_w: float | None  # what the maker says to provision
    measured_peak_w: float | None  # highest published wall reading
    measured_idle_w: float | None  # lowest steady wall reading, model loaded
    psu: str
    cooling: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A machine that can be bought; a rack that is sold as one machine counts as one."""

    id: ServerId
    name: str
    accelerator: AcceleratorId
    n_accelerators: int
    host: HostParts
    power: ServerPower
    height_u: float | None
    weight_kg: float | None = None
    depth_m: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A network switch."""

    id: PartId
    name: str
    fabric: str  # infiniband, ethernet
    n_ports: int
    port_bytes_per_s: float  # one direction
    height_u: float | None
    typical_w: float | None
    limit_w: float | None
    latency_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """A network adapter."""

    id: PartId
    name: str
    n_ports: int
    port_bytes_per_s: float  # one direction
    power_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A cable, an optic or a bus between two parts."""

    id: PartId
    name: str
    medium: str  # copper, optic, board
    bytes_per_s: float  # one direction
    measured_bytes_per_s: float | None
    reach_m: float | None
    power_w: float | None  # of one end


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageClass:
    """A kind of storage, per mount or per volume as its name says."""

    id: PartId
    name: str
    scope: str  # what the rates hold for: device, client, volume, system
    read_bytes_per_s: float
    write_bytes_per_s: float
    operations_per_s: float | None
    latency_s: float | None
    usd_per_gb_month: float | None
    usable_frac: float | None  # of what is bought


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """One way to cut an accelerator into isolated parts."""

    accelerator: AcceleratorId
    name: str  # 3g.40gb
    n_max: int  # instances on one accelerator when all are of this profile
    n_compute_slices: int
    n_compute_slices_total: int
    memory_bytes: float

    @property
    def compute_frac(self) -> float:
        """Share of the accelerator's compute."""
        return self.n_compute_slices / self.n_compute_slices_total
