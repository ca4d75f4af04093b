"""The place as it must be built: draws, circuits, racks, cooling, and what to check before."""

from math import ceil
from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.system.findings import Finding

NodeCooling = Literal["air", "liquid"]
Level = Literal["accelerator", "node", "rack", "row", "machines", "facility"]
BTU_PER_H_PER_W = 3.412141633
W_PER_TON = 12_000.0 / BTU_PER_H_PER_W  # a ton of refrigeration takes 12 000 BTU an hour
CFM_PER_M3_PER_S = 2118.88
COOLING_UNIT_W = 30e3  # one in-row unit; Assumption: a usual size
USUAL_RACK_DEPTH_M = 1.2  # of a cabinet for servers; Assumption: 600 x 1200 mm is usual
AIR_J_PER_M3_K = 1_206.0  # heat that a cubic metre of air takes for each kelvin, at 20 °C


@dataclass(frozen=True, slots=True, kw_only=True)
class PsuSet:
    """Power supplies of one machine."""

    n_supplies: int
    each_w: float
    n_needed: int | None = None  # as the maker says; None: what the draw asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardDraw:
    """What one accelerator of a machine draws."""

    limit_w: float
    idle_w: float
    typical_w: float
    cap_w: float | None = None  # set below the limit; None: not capped

    @property
    def max_w(self) -> float:
        """Limit or cap."""
        return self.limit_w if self.cap_w is None else min(self.limit_w, self.cap_w)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraw:
    """What one machine draws at the wall, and what it takes of a rack; unknown is None."""

    name: str
    n_accelerators: int
    idle_w: float
    typical_w: float
    max_w: float  # what to provision: the maker's limit, not the sum of the boards
    board: BoardDraw | None = None
    height_u: float | None = None
    weight_kg: float | None = None
    depth_m: float | None = None
    cooling: NodeCooling = "air"
    liquid_frac: float = 0.0  # of the heat that leaves with the liquid
    psu: PsuSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLevel:
    """Draw of one accelerator, one node … the whole place."""

    level: Level
    n_nodes: int
    idle_w: float
    typical_w: float
    max_w: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLimit:
    """How many nodes one limit of the rack allows."""

    name: Literal["power", "cooling", "height", "weight"]
    n_nodes: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFit:
    """How many nodes stand in one rack, and what stops the next."""

    n_nodes: int
    limits: tuple[RackLimit, ...]
    used_w: float
    usable_w: float | None  # None: no limit of power is known
    depth_m: float = USUAL_RACK_DEPTH_M

    @property
    def binding(self) -> RackLimit | None:
        """The limit that stops the next node; None where nothing is known to."""
        return min(self.limits, key=lambda limit: limit.n_nodes, default=None)

    @property
    def headroom_frac(self) -> float | None:
        """Share of the usable power that is left."""
        return None if self.usable_w is None else 1.0 - self.used_w / self.usable_w


@dataclass(frozen=True, slots=True, kw_only=True)
class CapChoice:
    """A power cap: what it makes room for, what it costs in speed."""

    cap_w: float
    node_w: float
    fit: RackFit
    slowdown_ratio: Range | None  # time over uncapped time; None: no figure can be promised
    is_accepted: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolingLoad:
    """Heat to be taken away: all that is drawn becomes heat."""

    air_w: float
    liquid_w: float
    air_rise_k: float  # of the air through the machines
    unit_w: float = COOLING_UNIT_W

    @property
    def heat_w(self) -> float:
        """Heat into air and liquid together."""
        return self.air_w + self.liquid_w

    @property
    def btu_per_h(self) -> float:
        """In British thermal units an hour."""
        return self.heat_w * BTU_PER_H_PER_W

    @property
    def tons(self) -> float:
        """In tons of refrigeration."""
        return self.heat_w / W_PER_TON

    @property
    def air_m3_per_s(self) -> float:
        """Air that must pass through the machines."""
        return self.air_w / (AIR_J_PER_M3_K * self.air_rise_k)

    @property
    def cfm(self) -> float:
        """The same in cubic feet a minute."""
        return self.air_m3_per_s * CFM_PER_M3_PER_S

    @property
    def n_units(self) -> int:
        """Cooling units for all the heat, and one to spare (N+1)."""
        return ceil(self.heat_w / self.unit_w) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSlot:
    """One machine in its place, counted from the floor."""

    rack: int
    bottom_u: int
    height_u: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsSize:
    """A store of energy that bridges to the generator."""

    load_w: float
    power_factor_frac: float
    bridge_s: float
    energy_j: float  # usable, after losses
    n_modules: int
    module_w: float

    @property
    def load_va(self) -> float:
        """Apparent power, which the windings carry."""
        return self.load_w / self.power_factor_frac


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """One thing to see to before machines arrive."""

    topic: str
    item: str
    value: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FacilityPlan:
    """Machines in racks with power and cooling, and every objection to it."""

    node: NodeDraw
    n_nodes: int
    fit: RackFit
    n_racks: int
    levels: tuple[PowerLevel, ...]
    cooling: CoolingLoad
    pue_ratio: float
    caps: tuple[CapChoice, ...]
    slots: tuple[RackSlot, ...]
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...] = ()
    ups: UpsSize | None = None

    @property
    def largest_cap(self) -> CapChoice | None:
        """The highest cap that admits one server more; None: there is none."""
        return max((c for c in self.caps if c.is_accepted), key=lambda c: c.cap_w, default=None)

    @property
    def rack_weight_kg(self) -> float | None:
        """Servers of a full rack, without rack and cables; None: the maker does not say."""
        return None if self.node.weight_kg is None else self.fit.n_nodes * self.node.weight_kg

    def level(self, name: Level) -> PowerLevel:
        """The draw at this level."""
        return next(level for level in self.levels if level.level == name)
