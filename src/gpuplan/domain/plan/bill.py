"""A plan's bill: every sum with its cause, its time and who it is for; all totals come from it.

What a kind of fleet costs as its load moves: the same arithmetic as its sizing, at any load.
"""

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.packing import nodes_for


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCurve:
    """One candidate on one kind of node, paid in one way."""

    name: str
    candidate: Candidate
    n_per_node: int
    n_load_per_replica: float  # carried within the promises, in the unit of the load
    n_spare: int
    usd_per_node_h: float
    is_committed: bool  # paid at its peak all the time
    speed_log_sd_ratio: float = 0.0  # of the logarithm of the load that a replica carries
    n_base_nodes: int = 0  # owned or reserved: paid all the time, the rest by need
    base_usd_per_node_h: float = 0.0

    @property
    def kind(self) -> str:
        """The accelerator."""
        return str(self.candidate.accelerator)

    def n_replicas(self, loads: Floats, speed_ratio: float | Floats = 1.0) -> Ints:
        """Replicas with spares; none where there is no load."""
        need = np.ceil(loads / (self.n_load_per_replica * speed_ratio) - 1e-9).astype(np.int64)
        return np.where(need > 0, need + self.n_spare, 0)

    def n_nodes(self, loads: Floats, speed_ratio: float | Floats = 1.0) -> Ints:
        """Whole nodes at each load."""
        replicas = self.n_replicas(loads, speed_ratio)
        distinct, place = np.unique(replicas, return_inverse=True)
        nodes = [nodes_for(self.candidate, int(n), self.n_per_node) or 0 for n in distinct]
        return np.asarray(np.array(nodes, dtype=np.int64)[place].reshape(replicas.shape))

    def usd_per_h(
        self, loads: Floats, weights: Floats, speed_ratio: float | Floats = 1.0
    ) -> Floats:
        """Mean hourly price over the last axis: loads, each with its share of the time."""
        rented = np.maximum(0, self.n_nodes(loads, speed_ratio) - self.n_base_nodes)
        mean = rented.max(axis=-1) if self.is_committed else (rented * weights).sum(axis=-1)
        base = self.n_base_nodes * self.base_usd_per_node_h
        return np.asarray(base + mean * self.usd_per_node_h, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCostLine:
    """One cause of the bill by the month; the lines add up to the cent."""

    what: str
    usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CashLine:
    """One sum in the money of its day; what comes in is negative."""

    what: str  # hardware, rent, energy …
    workload: str  # that it is for; sharers of a pool pay by use
    name: str  # of the node or offer
    source: str  # of the price, and its day
    start_s: float  # from today
    span_s: float  # that it is paid over, evenly; 0: at once
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCost:
    """The fleet of one period of growth, and its month."""

    start_s: float
    span_s: float
    n_accelerators: int  # at the peak of the period
    usd_per_month: float  # running costs of the period; outlays spread over the whole plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBill:
    """What a plan costs: by cause, in total, in today's money, sum by sum and period by period."""

    cost_lines: tuple[PlanCostLine, ...]
    once_usd: float  # purchase and porting
    total_usd: float  # over the span below, in the money of its day
    span_s: float  # the horizon of a service; a run from start to end
    present_value_usd: float = 0.0  # the total in today's money; equal to it without a discount
    cash_flow: tuple[CashLine, ...] = ()
    by_period: tuple[PeriodCost, ...] = ()
