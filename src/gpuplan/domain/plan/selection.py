"""What can be chosen and paid for, within which limits; and what was chosen, at what price.

Arrays over time are indexed [scenario, period, hour]. An hour is a stretch of a period in which the
load stands still: an hour of the day, or a block of a load-duration curve.
"""

from typing import Literal, NamedTuple

from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.scenario.terms import Purchase

Objective = Literal["cost", "time", "energy", "carbon", "regret", "weighted"]
Measure = Literal["worth", "time", "energy", "carbon", "risk"]  # that a weight may count
LimitKind = Literal[
    "power", "racks", "nodes", "accelerators", "upfront", "spend", "energy", "carbon", "time"
]
LIMIT_UNITS: dict[LimitKind, str] = {
    "power": "W",
    "racks": "racks",
    "nodes": "nodes",
    "accelerators": "accelerators",
    "upfront": "USD",
    "spend": "USD",
    "energy": "J",
    "carbon": "kg",
    "time": "s",
}
BillKind = Literal["upfront", "committed", "existing", "burst", "spot", "once", "residual", "staff"]
Status = Literal["optimal", "within gap", "not proven"]
COMMITTED: tuple[Purchase, ...] = ("owned", "reserved", "capacity_block")


# ── what there is ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The time that is planned for, in periods of equal hours, and how likely each scenario is."""

    hour_s: Floats  # [hour] how much of each period the hour stands for
    upfront_discount_frac: Floats  # [period] worth today of what is paid when a period begins
    running_discount_frac: Floats  # [period] worth today of what is paid during it
    end_discount_frac: float  # worth today of what is left at the end
    probability_frac: Floats  # [scenario]
    n_shared_periods: int | None = None  # orders from here on may differ by scenario; None: never

    @property
    def shape(self) -> tuple[int, int, int]:
        """Scenarios, periods, hours."""
        return len(self.probability_frac), len(self.running_discount_frac), len(self.hour_s)

    @property
    def period_s(self) -> float:
        """Length of one period."""
        return float(self.hour_s.sum())


class WallDraw(NamedTuple):
    """A node at the wall, linear in what its accelerators draw."""

    host_w: float  # at the wall, with accelerators that draw nothing
    ratio: float  # watts at the wall for a watt of its accelerators
    idle_w: float  # of one accelerator, with a model in memory
    busy_w: float  # of one accelerator at work, where nothing better is known
    given_mean_w: float | None = None  # of the node, where the user measured it
    assumed_w: float = 0.0  # mean of the node that its price was reckoned with


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Equal nodes in one place, shared by the workloads that run there."""

    name: str
    accelerator: str
    n_accelerators_per_node: int
    region: str = ""
    max_w: float = 0.0  # of one node: what breakers must carry
    mean_w: float = 0.0  # of one node: what energy is counted with
    wall: WallDraw | None = None  # None: no limit of its accelerator is published
    n_racks_per_node: float = 0.0
    carbon_kg_per_j: Floats | None = None  # one figure, or one for each hour; None: not known
    n_nodes_existing: int = 0  # there already; switched on by the period, or left off
    existing_usd_per_node_h: float = 0.0  # while switched on
    n_nodes_max: int | None = None  # of all terms together

    def nodes_for(self, n_accelerators: int) -> int:
        """Whole nodes that carry so many accelerators."""
        return -(-n_accelerators // self.n_accelerators_per_node)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerms:
    """One way to pay for nodes of a pool.

    Committed kinds (owned, reserved, capacity_block) are paid over their whole term, used or not;
    on_demand and spot by the hour. Spot nodes carry deferrable work only.
    """

    name: str
    pool: str
    purchase: Purchase
    usd_per_node_h: float  # rent; for owned nodes what running one costs
    upfront_usd: float = 0.0  # of one node, when it is ordered
    residual_usd: Floats | None = None  # [periods in service at the end] what it is still worth
    n_lead_periods: int = 0  # from order to service
    n_term_periods: int | None = None  # None: to the end of the horizon
    n_nodes_max: int | None = None  # quota, availability
    is_on_site: bool = False  # counts against the site's power and racks
    useful_frac: float = 1.0  # of a spot node's hours, after preemption
    price_ratio: Floats | None = None  # [scenario, period] of the hourly price; None: steady

    @property
    def is_committed(self) -> bool:
        """Paid whether used or not."""
        return self.purchase in COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOption:
    """One way to run one workload: accelerators of a pool, or slices of them, hour by hour.

    Training is an option per start and size: its need is zero outside the run. Replicas must pack
    into nodes without loss; where they do not, the need already counts the loss.
    """

    workload: str
    name: str
    pool: str
    need: Ints  # [scenario, period, hour] accelerators, or slices of the kind below
    n_reserve: int = 0  # accelerators held back for failures, shared within the pool
    once_usd: float = 0.0  # porting, migration
    time_s: float = 0.0  # what the objective "time" counts
    risk_frac: float = 0.0  # that an SLO is violated: what the weight of risk counts
    slice_kind: str = ""  # a fraction of an accelerator: 1g.10gb …; empty: whole ones

    @property
    def first_period(self) -> int:
        """The first period in which anything is needed; 0 where nothing ever is."""
        return int((self.need[0].max(axis=1) > 0).argmax())


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceGeometry:
    """One lawful way to cut an accelerator of a pool into slices."""

    pool: str
    name: str
    counts: tuple[tuple[str, int], ...]  # slice kind, how many


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOption:
    """One way to run deferrable work."""

    name: str
    pool: str
    n_work_per_accelerator_h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferrableWork:
    """Work that must be done within its period, at any hour of it, on any mix of its options."""

    workload: str
    n_work: Floats  # [scenario, period] in the unit of the options' rates
    options: tuple[BatchOption, ...]
    may_use_spot: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPart:
    """One kind of replica in a mixed fleet."""

    name: str
    pool: str
    n_accelerators_per_replica: int
    n_load_per_replica: float  # in the unit of the load


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedFleet:
    """A workload that may run on several kinds of replicas at once."""

    workload: str
    n_load: Floats  # [scenario, period, hour]
    parts: tuple[FleetPart, ...]
    n_lost: int = 0  # replicas of any one kind that may fail together


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLimit:
    """At most so much, in the unit of its kind (LIMIT_UNITS), in every scenario.

    Power, racks, nodes and accelerators hold at every hour; upfront, spend, energy and carbon are
    sums over the periods named. Power and racks count nodes on site only.
    """

    name: str
    kind: LimitKind
    most: float
    pools: tuple[str, ...] = ()  # empty: all
    purchases: tuple[Purchase, ...] = ()  # empty: all, existing nodes too
    periods: tuple[int, ...] = ()  # empty: all
    workloads: tuple[
        str, ...
    ] = ()  # of accelerators: what these need, not what is held; empty: all


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionProblem:
    """Everything that a choice is made from."""

    horizon: Horizon
    pools: tuple[NodePool, ...]
    terms: tuple[NodeTerms, ...]
    options: tuple[FleetOption, ...] = ()  # exactly one for each workload
    deferrable: tuple[DeferrableWork, ...] = ()
    mixed: tuple[MixedFleet, ...] = ()
    geometries: tuple[SliceGeometry, ...] = ()
    limits: tuple[NamedLimit, ...] = ()
    objective: Objective = "cost"
    weights: tuple[tuple[Measure, float], ...] = ()  # of the objective "weighted"
    site_usd_per_h: float = 0.0  # staff: paid all the time where any node is one's own

    @property
    def workloads(self) -> tuple[str, ...]:
        """Those that get exactly one option, in the order of their first."""
        return tuple(dict.fromkeys(option.workload for option in self.options))

    def pool(self, name: str) -> NodePool:
        """The pool of this name."""
        return next(pool for pool in self.pools if pool.name == name)


def needed_accelerators(problem: SelectionProblem, option: FleetOption) -> Floats:
    """[scenario, period, hour] accelerators of an option, reserve included; slices as parts."""
    cuts = [dict(g.counts).get(option.slice_kind, 0) for g in problem.geometries]
    each = max(cuts, default=0) if option.slice_kind else 1
    need = option.need / max(1, each)
    return floats(need + option.n_reserve * (need > 0))


# ── what was chosen ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Nodes committed to in a period."""

    terms: str
    pool: str
    period: int
    n_nodes: int
    scenario: int | None = None  # None: in every scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedNodes:
    """Nodes under one set of terms over time; existing nodes have the terms "existing"."""

    terms: str
    pool: str
    purchase: Purchase
    n_nodes: Ints  # [scenario, period, hour]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of a workload runs where: batch in accelerator-hours, mixed fleets in replicas."""

    workload: str
    option: str
    pool: str
    n_amount: Floats  # batch [scenario, period]; replicas [scenario, period, hour]


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One sum of the bill. Worth is what it is today, weighted by probability."""

    kind: BillKind
    pool: str
    terms: str
    period: int
    scenario: int | None  # None: the same in all
    nominal_cents: int
    worth_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """How good the choice is known to be."""

    status: Status
    objective: Objective
    value: float  # of the objective: USD, s, J or kg
    bound: float  # no choice can be better than this
    gap_frac: float  # of the value
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The choice, everything it holds, and what it costs to the cent."""

    chosen: tuple[FleetOption, ...]
    orders: tuple[Order, ...]
    provisioned: tuple[ProvisionedNodes, ...]
    shares: tuple[Share, ...]
    sliced: tuple[tuple[str, str, Ints], ...]  # pool, geometry, [scenario, period] accelerators
    bill: tuple[BillLine, ...]
    proof: Proof

    @property
    def worth_cents(self) -> int:
        """Expected whole-life cost in cents of today."""
        return sum(line.worth_cents for line in self.bill)

    @property
    def worth_usd(self) -> float:
        """Expected whole-life cost in today's money."""
        return self.worth_cents / 100.0

    def option_of(self, workload: str) -> FleetOption:
        """The option that the workload runs on."""
        return next(option for option in self.chosen if option.workload == workload)


# ── why ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """The least that limits must give way for a choice to exist."""

    limits: tuple[str, ...]
    most: tuple[float, ...]  # as given
    needed: tuple[float, ...]  # what would do; each in the unit of its limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why nothing fits: limits that cannot hold together, and what would mend it."""

    limits: tuple[str, ...]  # drop any one of them and a choice exists; empty: none is to blame
    alone: tuple[Relaxation, ...]  # each limit by itself, where that is enough
    together: Relaxation | None  # the smallest joint relaxation, each counted by its own size
    without_limits: str = ""  # why there is no choice even with none of them
    is_exact: bool = True  # False: whole numbers were let go, what is needed is at least so much


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPrice:
    """What a little more of a limit is worth."""

    limit: str
    step_frac: float
    saved_usd: float  # by loosening it so much, solved again; exact to the gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoPoint:
    """One plan of a trade-off: nothing is better in both."""

    cost_usd: float
    other: float  # in the unit of the other measure
    selection: Selection
