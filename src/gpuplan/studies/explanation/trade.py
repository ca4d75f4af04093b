"""Work per dollar and joule of each accelerator, and what of a plan touches output quality."""

from collections.abc import Iterator, Sequence

from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.model.precision import format_named, quality_risk
from gpuplan.domain.plan.answer import ChosenPlan, PlannedPool
from gpuplan.domain.plan.comparison import TradeRow
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.studies.explanation.rows import PricedRow
from gpuplan.studies.planning.chosen import Choice, held_in
from gpuplan.units import HOUR

ACCURACY = (
    "hardware does not change accuracy: the same weights in the same precision give outputs of the "
    "same quality on any accelerator, faster or slower"
)


def trade_rows(
    rows: Sequence[PricedRow], demand: DemandProfile, catalog: Catalog
) -> Iterator[TradeRow]:
    """One row for each accelerator and precision with a fleet and a capacity."""
    for priced in rows:
        card = catalog.accelerators.get(AcceleratorId(priced.row.accelerator))
        if priced.choice is not None and card is not None:
            yield from _row(priced, priced.choice, demand, card)


def _row(
    priced: PricedRow, choice: Choice, demand: DemandProfile, card: Accelerator
) -> Iterator[TradeRow]:
    row, sized = priced.row, priced.sized
    if sized is None or sized.capacity_per_s is None:
        return
    has_tokens = demand.unit == "requests" and demand.output_tokens > 0
    each = demand.output_tokens if has_tokens else 1.0  # work of one request
    per_s = sized.capacity_per_s.value * each / max(1, sized.candidate.n_accelerators_for(1))
    usd_per_h = _usd_per_h(choice, row.n_accelerators > 0)
    peaks, power_w = card.peak_flop_per_s, row.evidence.power_w
    yield TradeRow(
        workload=row.workload,
        accelerator=row.accelerator,
        precision=row.precision,
        unit="output tokens" if has_tokens else demand.unit,
        n_work_per_s=per_s,
        n_work_per_usd=per_s * HOUR / usd_per_h if usd_per_h else None,
        n_work_per_j=demand.peak_of(0, 0) * each / power_w if power_w else None,
        usd_per_h=usd_per_h,
        memory_bytes=card.memory.visible_bytes,
        memory_bytes_per_s=card.memory.bytes_per_s,
        peak_flop_per_s=max(peaks.get("bf16", 0.0), peaks.get("fp16", 0.0)),
    )


def _usd_per_h(choice: Choice, is_accelerated: bool) -> float | None:
    """Of one accelerator, or of one node without any, as the fleet pays for it on average."""
    pool = choice.pool(choice.selection.chosen[0].pool)
    n_nodes, usd = 0, 0.0
    for held in held_in(choice, pool.name):
        rate, n = choice.table.rates.get(held.terms), int(held.n_nodes[0, 0].max())
        price = rate.price_usd_per_h.mid if rate else pool.existing_usd_per_node_h
        n_nodes, usd = n_nodes + n, usd + n * price
    each = pool.n_accelerators_per_node if is_accelerated else 1
    return usd / n_nodes / each if n_nodes and usd else None


def quality_lines(plan: ChosenPlan) -> tuple[str, ...]:
    """What hardware leaves alone, and each choice of the plan that touches quality."""
    return (ACCURACY, *(line for pool in plan.pools if (line := _quality(pool))))


def _quality(pool: PlannedPool) -> str:
    form = format_named(pool.precision)
    risk = quality_risk(form) if form else ""
    return f"{pool.workload} in {pool.precision}: {risk}" if risk else ""
