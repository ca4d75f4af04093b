"""The comparison table, in: a solved group; out: one row for each accelerator and precision.

A row is chosen, billed and judged as the plan itself is: a plan forced to it costs the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.comparison import ComparisonRow, ParetoRow, RowEvidence
from gpuplan.domain.plan.selection import FleetOption, NodePool, Selection
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.studies.explanation.rejected import ORDER, nearest_first
from gpuplan.studies.planning.bill import plan_bill
from gpuplan.studies.planning.chosen import Choice, chosen_plan, pool_layout
from gpuplan.studies.planning.deferrable import is_deferrable
from gpuplan.studies.planning.draw import at_expected_draw, with_draw
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.options import FleetTable, fleet_table
from gpuplan.studies.planning.priced import priced
from gpuplan.studies.sizing.likely import is_likely, probability_of, saturation_text
from gpuplan.studies.sizing.task import SizingTask
from gpuplan.units import HOUR, HOURS_PER_MONTH

UNMEASURED = "estimated: no measurement covers this stack"
SPLIT = "prefill/decode disaggregation: no measured fleet checks it yet"
ALLOW = "set policy.disaggregation to allowed to let it be chosen"
LIMITED = "the limits of the scenario, or what can be had, do not allow it"
CENT = 0.01  # USD a month: what costs no more costs the same
Key = tuple[str, str, bool]  # accelerator, precision, whether prefill and decode are apart


class PricedRow(NamedTuple):
    """A row with the choice and the fleet behind it; None: it has none."""

    row: ComparisonRow
    choice: Choice | None = None
    sized: Sized | None = None

    @property
    def usd(self) -> float:
        """USD a month; endless where there is no fleet."""
        return float("inf") if self.row.usd_per_month is None else self.row.usd_per_month


def compared_rows(inputs: PlanInputs, group: SolvedGroup, sizing: Sizing) -> list[PricedRow]:
    """All rows of a service: the chosen one first, then by price, those without a fleet last."""
    task = inputs.task(sizing)
    if task is None or is_deferrable(inputs.scenario, sizing):
        return []
    rows = _Rows(inputs, group, sizing, task)
    found = [*rows.priced(), *rows.rejected()]
    return sorted(found, key=lambda each: (not each.row.is_chosen, each.usd, each.row.accelerator))


def rows_alone(inputs: PlanInputs, group: SolvedGroup, sizing: Sizing) -> Choice:
    """Everything that was sized for one service, to choose from as if it stood alone."""
    wide = [
        replace(each, sized=(*each.sized, *each.compared), compared=()) for each in group.sizings
    ]
    table = at_expected_draw(
        fleet_table(inputs.scenario, inputs.catalog, wide, market=inputs.market),
        inputs.market.standing,
    )
    options = tuple(o for o in table.problem.options if o.workload == sizing.workload)
    work = inputs.scenario.workload(sizing.workload)
    is_part = work is not None and work.band is not None
    problem = replace(
        table.problem,
        pools=_left_by_others(group.choice, table, sizing) if is_part else table.problem.pools,
        options=options,
        deferrable=(),
        limits=group.choice.table.problem.limits,
    )
    chosen = replace(group.choice.selection, chosen=())
    return group.choice._replace(table=table._replace(problem=problem), selection=chosen)


def _left_by_others(choice: Choice, table: FleetTable, sizing: Sizing) -> tuple[NodePool, ...]:
    """Pools without the owned nodes that the other part of a service has taken already."""
    others = [o for o in choice.selection.chosen if o.workload != sizing.workload]

    def left(pool: NodePool) -> int:
        most = [int(o.need[0].max(initial=0)) + o.n_reserve for o in others if o.pool == pool.name]
        return max(0, pool.n_nodes_existing - sum(map(pool.nodes_for, most)))

    return tuple(replace(pool, n_nodes_existing=left(pool)) for pool in table.problem.pools)


def _with_own_rows(table: FleetTable, own: FleetTable, workload: str) -> FleetTable:
    """The table with every row that the plan could choose from.

    A fraction may lose to whole accelerators that are in the comparison alone.
    """
    pools = {pool.name for pool in table.problem.pools}
    lost = {
        key: row
        for key, row in own.by_name.items()
        if key not in table.by_name
        and (row.option.workload, row.is_window) == (workload, False)
        and row.option.pool in pools
        and not row.option.slice_kind
    }
    options = (*table.problem.options, *(row.option for row in lost.values()))
    problem = replace(table.problem, options=options)
    return table._replace(problem=problem, by_name={**table.by_name, **lost})


def row_choice(inputs: PlanInputs, alone: Choice, options: Sequence[FleetOption]) -> Choice | None:
    """The cheapest of these options, its draw at its load included; None: the limits forbid it."""
    found = priced(alone, *options)
    if found is None:
        return None

    def again(table: FleetTable) -> Selection:
        tried = priced(alone._replace(table=table), *options)
        return found.selection if tried is None else tried.selection

    standing = inputs.market.standing
    table, selection = with_draw(found.table, found.selection, standing, choose=again)
    return found._replace(table=table, selection=selection)


class _Rows:
    def __init__(
        self, inputs: PlanInputs, group: SolvedGroup, sizing: Sizing, task: SizingTask
    ) -> None:
        self.inputs, self.sizing, self.task = inputs, sizing, task
        self.choice = group.choice
        alone = rows_alone(inputs, group, sizing)
        table = _with_own_rows(alone.table, group.choice.table, sizing.workload)
        self.alone = alone._replace(table=table)
        self.chosen = group.choice.selection.option_of(sizing.workload)
        self.eligible = {_key(each.candidate) for each in sizing.sized}

    def priced(self) -> Iterator[PricedRow]:
        """Rows with a fleet, each at the least that it costs."""
        by_key: dict[Key, list[FleetOption]] = {}
        for option in self.alone.table.problem.options:
            candidate = self.alone.table.row_of(option).sized.candidate
            # What may be chosen stands for its row, whatever else was sized for it.
            if _key(candidate) not in self.eligible or self._is_eligible(candidate):
                by_key.setdefault(_key(candidate), []).append(option)
        for options in map(self._likeliest, by_key.values()):
            found = self._cheapest(options)
            if found is None:
                first = self.alone.table.row_of(options[0]).sized.candidate
                yield PricedRow(self._without(first, LIMITED, "see the limits of the plan"))
                continue
            sized = found.table.row_of(found.selection.chosen[0]).sized
            yield PricedRow(self._row(found, sized), found, sized)

    def _likeliest(self, options: list[FleetOption]) -> list[FleetOption]:
        """Layouts as sure as is asked for; all of them where none is."""
        rows = self.alone.table
        return [o for o in options if is_likely(self.task, rows.row_of(o).sized)] or options

    def _cheapest(self, options: Sequence[FleetOption]) -> Choice | None:
        """The cheapest fleet; a whole accelerator where a fraction alone on it costs the same."""
        found = row_choice(self.inputs, self.alone, options)
        whole = [option for option in options if not option.slice_kind]
        if found is None or len(whole) in (0, len(options)):
            return found
        same = row_choice(self.inputs, self.alone, whole)
        is_equal = same is not None and same.usd_per_month <= found.usd_per_month + CENT
        return same if is_equal else found

    def _is_eligible(self, candidate: Candidate) -> bool:
        return any(each.candidate == candidate for each in self.sizing.sized)

    def _row(self, choice: Choice, sized: Sized) -> ComparisonRow:
        plan = chosen_plan(choice, plan_bill(choice))
        candidate, n_per_node = sized.candidate, self._n_per_node(choice)
        mine = self.choice.table.row_of(self.chosen).sized.candidate
        usd = choice.usd_per_month
        return ComparisonRow(
            workload=self.sizing.workload,
            accelerator=str(candidate.accelerator),
            precision=candidate.precision,
            layout=pool_layout(candidate, n_per_node),
            n_replicas=sized.n_replicas,
            n_accelerators=sum(pool.n_accelerators for pool in plan.pools),
            usd_per_month=usd,
            usd_per_million_tokens=self._usd_per_million_tokens(usd, sized),
            latency={f"{x.metric}_{x.statistic}_s": x.reached_s.value for x in sized.limits},
            probability_frac=probability_of(self.task, sized),
            is_chosen=_key(candidate) == _key(mine),
            evidence=self._evidence(sized, plan),
        )

    def _n_per_node(self, choice: Choice) -> int:
        return choice.table.row_of(choice.selection.chosen[0]).n_per_node

    def _evidence(self, sized: Sized, plan: ChosenPlan) -> RowEvidence:
        return RowEvidence(
            is_eligible=_key(sized.candidate) in self.eligible,
            power_w=plan.power_w.value if plan.power_w else None,
            tier=self._tier(sized.candidate),
            price_source=plan.pools[0].source,
            note="; ".join(self._notes(sized)),
            engine=_engine_name(sized.candidate),
        )

    def _usd_per_million_tokens(self, usd_per_month: float, sized: Sized) -> float | None:
        """On paid hours: idle capacity is in the price of every output token that is written."""
        demand = self.sizing.demand
        if demand.unit != "requests" or demand.output_tokens <= 0:
            return None
        little = sized.little if demand.n_users is not None else None
        # Capacity may be paid for as if the peak lasted; tokens come at the mean rate all the same.
        rate = little.requests_per_s if little else demand.mean_requests_per_s
        if rate is None:
            rate = (demand.peak_requests_per_s or 0.0) * demand.hours.mean_frac
        grown = float(demand.periods.load_ratio[0].mean())
        tokens = rate * grown * demand.output_tokens * HOURS_PER_MONTH * HOUR
        return usd_per_month / tokens * 1e6 if tokens > 0 else None

    def _tier(self, candidate: Candidate) -> str:
        if candidate.engine is None and candidate.offer:
            return "given"
        return "fitted" if self.task.is_measured(candidate) else "estimated"

    def _notes(self, sized: Sized) -> Iterator[str]:
        candidate, level = sized.candidate, self.inputs.around.options.min_probability_frac
        if candidate.layout.is_disaggregated:
            yield from (SPLIT,) if _key(candidate) in self.eligible else (SPLIT, ALLOW)
        if candidate.is_quantized_below:
            is_requested = candidate.precision in self.task.requested_precisions
            what = "as asked for" if is_requested else "narrower than published"
            yield f"{what}: check the quality on your own task"
        if self._tier(candidate) == "estimated":
            yield UNMEASURED
        found = probability_of(self.task, sized)
        if level is not None and found is not None and found < level:
            yield saturation_text(self.task, sized)

    def rejected(self) -> Iterator[PricedRow]:
        """Accelerators that can be paid for and have no fleet as published or asked for."""
        fleets = {key for key, *_ in self.eligible}
        fleets |= {str(each.candidate.accelerator) for each in self.sizing.compared}
        sold = {rate.node.accelerator for rate in self.inputs.market.ways} - fleets
        mine: dict[Key, list[Rejection]] = {}
        for each in nearest_first(self.sizing.rejected):
            card = str(each.candidate.accelerator)
            if card in sold and each.constraint != "policy" and self._is_requested(each.candidate):
                mine.setdefault(_key(each.candidate), []).append(each)
        for found in mine.values():
            nearest = min(found, key=lambda each: ORDER.index(each.constraint))
            yield PricedRow(self._without(nearest.candidate, nearest.reason, nearest.relaxation))

    def _is_requested(self, candidate: Candidate) -> bool:
        """Whether the user, or a measurement, knows the accelerator at a precision asked for."""
        if candidate.engine is None:
            return True
        is_known = self.task.is_named(candidate) or self.task.is_measured(candidate)
        return is_known and self.task.is_requested(candidate)

    def _without(self, candidate: Candidate, reason: str, relaxation: str) -> ComparisonRow:
        name, tier = self.sizing.workload, self._tier(candidate)
        return row_without_fleet(name, candidate, reason, relaxation, tier)


def row_without_fleet(
    workload: str, candidate: Candidate, reason: str, relaxation: str, tier: str = "estimated"
) -> ComparisonRow:
    """An accelerator that has no fleet, and what would give it one."""
    return ComparisonRow(
        workload=workload,
        accelerator=str(candidate.accelerator),
        precision=candidate.precision,
        layout=None,
        n_replicas=0,
        n_accelerators=0,
        usd_per_month=None,
        usd_per_million_tokens=None,
        latency={},
        probability_frac=None,
        is_chosen=False,
        evidence=RowEvidence(
            is_eligible=False,
            power_w=None,
            tier=tier,
            price_source="",
            reason=reason,
            relaxation=relaxation,
            engine=_engine_name(candidate),
        ),
    )


def _engine_name(candidate: Candidate) -> str:
    engine = candidate.engine
    return f"{engine.name} {engine.version}".strip() if engine else ""


def _key(candidate: Candidate) -> Key:
    split = candidate.layout.is_disaggregated
    return str(candidate.accelerator), candidate.precision, split


def pareto_rows(rows: Sequence[PricedRow]) -> tuple[ParetoRow, ...]:
    """Fleets that no other of their workload beats in cost, latency, power and risk at once."""
    points = [point for each in rows if (point := _point(each)) is not None]
    return tuple(
        one for one in points if not any(_beats(other, one) for other in points if other != one)
    )


def _point(each: PricedRow) -> ParetoRow | None:
    row, sized = each.row, each.sized
    if sized is None or row.usd_per_month is None or row.probability_frac is None:
        return None
    used = [limit.reached_s.value / limit.limit_s for limit in sized.limits]
    return ParetoRow(
        workload=row.workload,
        accelerator=row.accelerator,
        precision=row.precision,
        n_accelerators=row.n_accelerators,
        usd_per_month=row.usd_per_month,
        latency_frac=max(used, default=0.0),
        power_w=row.evidence.power_w,
        risk_frac=1.0 - row.probability_frac,
    )


def _beats(one: ParetoRow, other: ParetoRow) -> bool:
    """No worse in anything and better in something; a draw that is unknown beats none."""
    if one.workload != other.workload:
        return False
    mine, yours = _measures(one), _measures(other)
    return all(a <= b for a, b in zip(mine, yours, strict=True)) and mine != yours


def _measures(point: ParetoRow) -> tuple[float, ...]:
    power = float("inf") if point.power_w is None else point.power_w
    return point.usd_per_month, point.latency_frac, power, point.risk_frac
