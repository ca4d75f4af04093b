"""The place, what stands there already, and what power it can draw."""

from math import sqrt
from typing import Literal

from gpuplan.domain.hardware.software import SoftwareStack
from gpuplan.domain.noun import dataclass
from gpuplan.domain.ranges import Range

Cooling = Literal["air", "rear_door", "direct_liquid", "immersion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The supply of one rack. A and B feeds are each other's reserve: they are never added."""

    line_v: float  # line to line where there are three phases
    breaker_a: float
    n_phases: Literal[1, 3]
    n_feeds: Literal[1, 2]
    n_circuits_per_feed: int
    derate_frac: float  # of the breaker that may be drawn continuously

    @property
    def usable_w(self) -> float:
        """What the rack may draw continuously: one feed, derated."""
        phase_factor = sqrt(3.0) if self.n_phases == 3 else 1.0
        one = self.line_v * self.breaker_a * phase_factor
        return one * self.n_circuits_per_feed * self.derate_frac


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """Limits of one rack; None is no limit that we know of."""

    n_units: int | None = None
    power_w: float | None = None
    circuit: Circuit | None = None
    cooling_w: float | None = None
    weight_kg: float | None = None
    depth_m: float | None = None

    @property
    def usable_w(self) -> float | None:
        """The lowest of power limit, circuit and cooling, or None where nothing is known."""
        circuit_w = self.circuit.usable_w if self.circuit else None
        limits = [w for w in (self.power_w, circuit_w, self.cooling_w) if w is not None]
        return min(limits, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNetwork:
    """How nodes are joined."""

    kind: str
    n_nics_per_node: int
    nic_bytes_per_s: float  # one direction, line rate
    oversubscription_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One's own place; None where the user gave no figure."""

    region: str | None = None
    power_w: float | None = None
    is_facility_power: bool = False  # the limit counts cooling and losses too
    n_racks: int | None = None
    rack: Rack | None = None
    cooling: Cooling | None = None
    pue_ratio: float | None = None
    electricity_usd_per_j: Range | None = None
    demand_usd_per_w_month: float | None = None
    carbon_kg_per_j: float | None = None
    network: NodeNetwork | None = None
    software: SoftwareStack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedNodes:
    """Equal machines that are there already."""

    accelerator: str
    n_nodes: int
    n_accelerators_per_node: int
    name: str | None = None
    node_max_w: float | None = None
    accelerator_cap_w: float | None = None
    n_host_cores: float | None = None
    host_memory_bytes: float | None = None
    n_nics: int | None = None
    nic_bytes_per_s: float | None = None  # one direction, line rate
    peak_utilization_frac: float | None = None  # of the busiest hour of the week
    mean_utilization_frac: float | None = None

    @property
    def n_accelerators(self) -> int:
        """In all nodes."""
        return self.n_nodes * self.n_accelerators_per_node
