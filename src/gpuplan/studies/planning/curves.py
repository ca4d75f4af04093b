"""Fleets as curves over load, in: rows and rates; out: FleetCurves, and where they cross."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.risk import Z_80
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.plan.answer import Crossover
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.planning.options import FleetTable, pool_name
from gpuplan.studies.planning.rows import FleetRow
from gpuplan.units import HOURS_PER_MONTH

SPAN = (0.1, 10.0)  # of today's load, in which crossings are looked for
N_GRID = 2001
TIE = 1e-9
# Of the load that a replica carries, as cost follows it: no further replica mends a latency that is
# beyond its SLO at every load, so that a fleet is resized for throughput alone.
MOST_LOG_SD = 0.35


class CheapestFleet(NamedTuple):
    """The cheapest fleet from a load on."""

    load: float
    curve: FleetCurve


def all_curves(table: FleetTable, workload: str) -> list[FleetCurve]:
    """Every fleet of a workload under every purchase option."""
    return [
        curve
        for row in table.by_name.values()
        if row.option.workload == workload and not row.is_window
        for curve in _curves(row, table.rates)
    ]


def _curves(row: FleetRow, rates: dict[str, NodeRate]) -> Iterator[FleetCurve]:
    sized = row.sized
    if sized.capacity_per_s is None:
        return
    capacity = sized.capacity_per_s
    for rate in rates.values():
        is_own = not sized.candidate.offer or rate.node.name == sized.candidate.offer
        if pool_name(rate) != row.option.pool or not is_own:
            continue
        yield FleetCurve(
            name=f"{row.option.name}, {rate.purchase}",
            candidate=sized.candidate,
            n_per_node=row.n_per_node,
            n_load_per_replica=capacity.value,
            n_spare=sized.reserve.n_spare,
            usd_per_node_h=rate.price_usd_per_h.mid,
            is_committed=rate.is_committed,
            speed_log_sd_ratio=min(MOST_LOG_SD, log_sd_ratio(capacity)),
        )


def log_sd_ratio(estimate: Estimate) -> float:
    """Deviation of the logarithm of an estimate whose range holds 80 %."""
    return log(estimate.high / estimate.low) / (2 * Z_80) if estimate.low > 0 else 0.0


def cost_usd_per_month(curve: FleetCurve, demand: DemandProfile, *, factor: float = 1.0) -> float:
    """A month of the first period at today's hours, the load being larger by a factor."""
    return float(costs_usd_per_month(curve, demand, floats([factor]))[0])


def costs_usd_per_month(
    curve: FleetCurve, demand: DemandProfile, factors: Floats, speed_ratio: float | Floats = 1.0
) -> Floats:
    """A month at many loads at once, replicas being faster or slower by a ratio."""
    weights = demand.hours.hours_per_week / demand.hours.hours_per_week.sum()
    loads = np.asarray(factors)[:, None] * demand.peak_of(0, 0) * demand.hours.load_frac[None, :]
    return curve.usd_per_h(floats(loads), weights, speed_ratio) * HOURS_PER_MONTH


def winners(curves: Sequence[FleetCurve], demand: DemandProfile) -> list[CheapestFleet]:
    """Cheapest fleet over the load, from a tenth of today's to ten times it; changes only."""
    peak = demand.peak_of(0, 0)
    ordered = sorted(curves, key=lambda curve: curve.name)
    factors = floats(np.geomspace(*SPAN, N_GRID))
    costs = np.array([costs_usd_per_month(curve, demand, factors) for curve in ordered])
    found: list[CheapestFleet] = []
    leader = -1
    for at, factor in enumerate(factors):
        place = int(costs[:, at].argmin())
        # At equal price the one that led so far stays.
        is_cheaper = leader < 0 or costs[place, at] < costs[leader, at] * (1 - TIE)
        if is_cheaper and (leader < 0 or ordered[place].kind != ordered[leader].kind):
            found.append(CheapestFleet(load=float(factor * peak), curve=ordered[place]))
        leader = place if is_cheaper else leader
    return found


def load_crossovers(
    curves: Sequence[FleetCurve], demand: DemandProfile, *, unit: str
) -> tuple[Crossover, ...]:
    """Loads at which another accelerator becomes the cheapest."""
    found = winners(curves, demand)
    return tuple(
        Crossover(
            what=f"load of {demand.workload}",
            at=f"about {after.load:,.3g} {unit} (now {demand.peak_of(0, 0):,.3g})",
            then=f"{after.curve.kind} is cheaper than {before.curve.kind}"
            + _flip(before.curve, after.curve),
        )
        for before, after in pairwise(found)
    )


def _flip(before: FleetCurve, after: FleetCurve) -> str:
    """Whether CPUs give way to accelerators here, or the other way round."""
    was, will = before.kind.startswith("cpu"), after.kind.startswith("cpu")
    if was == will:
        return ""
    return ": CPUs are enough" if will else ": an accelerator pays off"
