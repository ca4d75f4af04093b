"""The fleets of one service side by side, in: a solved group; out: curves and monthly prices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from gpuplan.domain.columns import floats
from gpuplan.domain.plan.comparison import ComparisonRow
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.plan.sizing import DemandProfile, Sized, Sizing
from gpuplan.studies.planning.billed import BilledLoads, billed_loads
from gpuplan.studies.planning.chosen import Choice, provisioned_in
from gpuplan.studies.planning.curves import all_curves, cost_usd_per_month
from gpuplan.studies.planning.groups import SolvedGroup

UNITS = {"requests": "requests/s", "samples": "samples/s", "accelerators": "accelerators"}


@dataclass(frozen=True)
class FleetComparison:
    """One service's fleets, the chosen one first, then the others by price."""

    sizing: Sizing
    sized: Sized  # the chosen one
    curves: list[FleetCurve]
    choice: Choice  # in which it was chosen
    option: FleetOption
    rows: tuple[ComparisonRow, ...] = ()  # of the comparison, the chosen one first

    @property
    def demand(self) -> DemandProfile:
        """What the service asks for."""
        return self.sizing.demand

    @property
    def unit(self) -> str:
        """The unit of the load, as people read it."""
        return UNITS[self.demand.unit]

    @property
    def chosen(self) -> FleetCurve:
        """The fleet that was chosen for the service."""
        return self.curves[0]

    @property
    def row(self) -> ComparisonRow | None:
        """The chosen row; None where the service has no comparison."""
        return next((row for row in self.rows if row.is_chosen), None)

    @property
    def rivals(self) -> list[ComparisonRow]:
        """Rows that could have been chosen instead, the cheapest first."""
        others = [row for row in self.rows if row.evidence.is_eligible and not row.is_chosen]
        return sorted(others, key=row_usd)

    @cached_property
    def billed(self) -> BilledLoads:
        """The bill in which it was chosen, over its load."""
        return billed_loads(self.choice, self.option, self.demand)

    @cached_property
    def chosen_usd(self) -> float:
        """USD a month of the chosen fleet, as billed; by its curve where nothing is compared."""
        return row_usd(self.row) if self.row else cost_usd_per_month(self.chosen, self.demand)

    @cached_property
    def kinds(self) -> list[tuple[FleetCurve, float]]:
        """The cheapest fleet of each accelerator with its monthly price, the chosen kind first."""
        best: dict[str, FleetCurve] = {}
        for curve in self.curves:
            best.setdefault(curve.kind, curve)
        first, *rest = ((c, cost_usd_per_month(c, self.demand)) for c in best.values())
        return [first, *sorted(rest, key=lambda item: item[1])]

    def billed_usd(self, curve: FleetCurve, usd_per_month: float) -> float:
        """What the row of an accelerator costs as billed; by the curve where there is no row."""
        rows = [row for row in (*self.rivals, *self.rows) if row.accelerator == curve.kind]
        return next((row_usd(row) for row in rows if row.usd_per_month), usd_per_month)

    def fleet_name(self, curve: FleetCurve) -> str:
        """How many of what, at today's peak."""
        nodes = int(curve.n_nodes(floats([self.demand.peak_of(0, 0)]))[0])
        candidate = curve.candidate
        if str(candidate.accelerator).startswith("cpu"):
            return f"{nodes} x {candidate.offer or candidate.accelerator}"
        return f"{nodes * curve.n_per_node} x {candidate.accelerator} {candidate.spread}"


def row_usd(row: ComparisonRow) -> float:
    """USD a month of a row; endless where it has no fleet."""
    return inf if row.usd_per_month is None else row.usd_per_month


def row_name(row: ComparisonRow) -> str:
    """How many of what, in which layout and precision."""
    if row.layout is None:
        return f"{row.accelerator} {row.precision}"
    layout = row.layout.spread.name
    if not row.n_accelerators:
        return f"{row.n_replicas} x {row.accelerator}, no accelerator"
    return f"{row.n_accelerators} x {row.accelerator} {layout} {row.precision}"


def comparison_of(
    group: SolvedGroup, sizing: Sizing, rows: Sequence[ComparisonRow] = ()
) -> FleetComparison | None:
    """All fleets of a service that could be paid for; None where none has a capacity."""
    choice = group.choice
    option = next((o for o in choice.selection.chosen if o.workload == sizing.workload), None)
    if option is None:
        return None
    curves = all_curves(choice.table, sizing.workload)
    mine = [curve for curve in curves if curve.name.startswith(option.name + ", ")]
    if not mine:
        return None
    first = _as_purchased(choice, option.pool, mine)
    rest = sorted(
        (curve for curve in curves if curve.name != first.name),
        key=lambda curve: (cost_usd_per_month(curve, sizing.demand), curve.name),
    )
    sized = choice.table.row_of(option).sized
    return FleetComparison(sizing, sized, [first, *rest], choice, option, tuple(rows))


def _as_purchased(choice: Choice, pool: str, mine: Sequence[FleetCurve]) -> FleetCurve:
    """The chosen fleet as it is paid for: a committed base, the rest by need."""
    committed, by_need, base_usd = 0, None, 0.0
    for provisioned in provisioned_in(choice, pool):
        rate = choice.table.rates.get(provisioned.terms)
        n = int(provisioned.n_nodes[0, 0].max())  # a curve is of today's month
        if rate is not None and not rate.is_committed:
            by_need = rate.purchase
            continue
        price = rate.price_usd_per_h.mid if rate else choice.pool(pool).existing_usd_per_node_h
        committed, base_usd = committed + n, base_usd + n * price
    rented = [c for c in mine if not c.is_committed]
    first = next((c for c in rented if c.name.endswith(f", {by_need}")), (rented or mine)[0])
    if not committed:
        return first
    return replace(first, n_base_nodes=committed, base_usd_per_node_h=base_usd / committed)
