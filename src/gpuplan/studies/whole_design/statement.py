"""The statement of a plan: its own cost lines by month, and how long each part is paid for."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple, get_args

from gpuplan.cost.bill import KINDS
from gpuplan.cost.defaults import purchase_of
from gpuplan.cost.statement import RENT_CATEGORIES, cents, purchase_parts, shares_of
from gpuplan.domain.money.statement import CAPITAL, CostCategory, CostLine, Statement
from gpuplan.domain.plan.answer import Answer, ChosenPlan, PurchaseLine
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Workload
from gpuplan.errors import InputError, one
from gpuplan.studies.planning.chosen import KINDS as RUN_KINDS
from gpuplan.units import MONTH

RUN_CATEGORIES: dict[str, CostCategory] = {name: KINDS[kind] for kind, name in RUN_KINDS.items()}  # type: ignore[index]
CATEGORIES: dict[str, CostCategory] = {
    **{name: name for name in get_args(CostCategory)},
    **RUN_CATEGORIES,
}
AT_ONCE: tuple[CostCategory, ...] = (*CAPITAL, "porting")
SPLIT: tuple[CostCategory, ...] = ("rent", "reservation", "spot", "other")


class Total(NamedTuple):
    """A sum of cents by cause, with what it buys, the source of its price and its time."""

    category: CostCategory
    name: str
    source: str
    cents: int
    span_s: float


def statement_of_plan(answer: Answer, plan: ChosenPlan, scenario: Scenario) -> Statement:
    """The plan's own cost lines by month: outlays today, residual at the end, the rest evenly."""
    n_months = max(1, ceil(plan.span_s / MONTH * (1 - 1e-9)))
    cost = plan.cost_usd_per_month
    lines = []
    for total in _totals(answer, plan, scenario):
        flow = _by_month(total, n_months)
        lines.append(
            CostLine(
                category=total.category,
                name=total.name,
                cents=flow,
                low_cents=tuple(round(value * (cost.low / cost.value)) for value in flow),
                high_cents=tuple(round(value * (cost.high / cost.value)) for value in flow),
                source=total.source,
            )
        )
    return Statement(
        name=answer.name,
        n_months=n_months,
        lines=tuple(lines),
        discount_frac_per_year=scenario.budget.discount_frac_per_year,
        assumptions=tuple(_notes(lines, scenario)),
    )


def run_span_s(plan: ChosenPlan) -> float:
    """How long the plan's runs last: their costs are by the month of the runs, not of the plan.

    A plan of services and runs holds both kinds of lines and the total of all; what the services
    leave of it is what the runs cost.
    """
    span_s = billed_s(plan)
    runs = sum(x.usd_per_month for x in plan.cost_lines if x.what in RUN_CATEGORIES)
    rest = sum(x.usd_per_month for x in plan.cost_lines if x.what not in RUN_CATEGORIES)
    if not runs or all(x.what in RUN_CATEGORIES for x in plan.cost_lines):
        return span_s
    found_s = (plan.total_usd - rest * span_s / MONTH) / runs * MONTH
    # A total that leaves nothing for the runs is not the lines' own: the statement's difference
    # from the plan shows it.
    is_short = 0.0 < found_s < span_s * (1 - 1e-9)
    return found_s if is_short else span_s


def billed_s(plan: ChosenPlan) -> float:
    """The time that monthly costs are paid for: a run of days is billed in its one month."""
    return max(plan.span_s, MONTH)


def span_of(plan: ChosenPlan, work: Workload | None) -> float:
    """How long this work is paid for."""
    is_run = work is not None and work.has_end
    return run_span_s(plan) if is_run else billed_s(plan)


def _totals(answer: Answer, plan: ChosenPlan, scenario: Scenario) -> Iterator[Total]:
    """The plan's lines as totals; a line that purchases explain is split by them."""
    for line in plan.cost_lines:
        category = CATEGORIES.get(line.what)
        if category is None:
            what = f"{line.what!r} is not a known cost category"
            raise one(InputError, answer.name, "plan.cost_lines", what, "make the plan again")
        span_s = run_span_s(plan) if line.what in RUN_CATEGORIES else billed_s(plan)
        total = Total(category, "plan", "", cents(line.usd_per_month * span_s / MONTH), span_s)
        if category == "hardware":
            yield from _outlay(total, plan, scenario)
            continue
        bought = _explaining(plan, line.usd_per_month, category) if category in SPLIT else ()
        parts = shares_of(total.cents, [p.usd_per_month for p in bought]) if bought else ()
        yield from () if bought else (total,)
        for found, part in zip(bought, parts, strict=True):
            yield Total(_category(found), found.offer, _source(found), part, span_s)


def _explaining(
    plan: ChosenPlan, usd_per_month: float, category: CostCategory
) -> tuple[PurchaseLine, ...]:
    """Purchases that add up to a line: those of its cause; of runs, which are billed by the hour
    whatever they run on, all. Empty where none do."""
    known = [p for pool in plan.pools for p in pool.purchases if p.usd_per_month > 0]
    alike = [p for p in known if _category(p) == category]
    for found in (alike, known):
        # A line and its purchases are rounded apart: half a cent a month each.
        near = 0.005 * (1 + len(found))
        if found and abs(sum(p.usd_per_month for p in found) - usd_per_month) <= near:
            return tuple(found)
    return ()


def _outlay(total: Total, plan: ChosenPlan, scenario: Scenario) -> Iterator[Total]:
    """The outlay for servers by cause: their price, and what the user's terms add to it."""
    buy, _ = purchase_of(exactly(1.0), scenario.prices.extras)
    parts = purchase_parts(buy)
    bought = [p for pool in plan.pools for p in pool.purchases if p.purchase == "owned"]
    name = ", ".join(dict.fromkeys(p.offer for p in bought)) or "plan"
    source = "; ".join(dict.fromkeys(_source(p) for p in bought))
    shares = shares_of(total.cents, list(parts.values()))
    for category, share in zip(parts, shares, strict=True):
        if share:
            yield Total(category, name, source, share, total.span_s)


def _category(line: PurchaseLine) -> CostCategory:
    return RENT_CATEGORIES.get(line.purchase, "other")


def _source(line: PurchaseLine) -> str:
    return ", ".join(text for text in (line.price_source, line.price_date) if text)


def _by_month(total: Total, n_months: int) -> tuple[int, ...]:
    n_paid = total.span_s / MONTH
    if total.category in AT_ONCE:
        end = min(n_months, max(1, ceil(n_paid * (1 - 1e-9))))
        paid = end if total.category == "residual" else 0
        return tuple(total.cents if month == paid else 0 for month in range(n_months + 1))
    # The last month of a run is paid up to its end.
    weights = [max(0.0, min(1.0, n_paid - month)) for month in range(n_months)]
    return (0, *shares_of(total.cents, weights))


def _notes(lines: Sequence[CostLine], scenario: Scenario) -> Iterator[Assumption]:
    value, why = "that of the plan's whole bill, on every line", "a plan file holds one range"
    yield assume("ranges of the statement", value, why, "prices.offers")
    change = "plan each period by itself"
    if any(line.category not in AT_ONCE for line in lines):
        why = "a plan file holds their mean over its span"
        yield assume("running costs by month", "the same every month", why, change)
    if any(line.category in AT_ONCE for line in lines):
        value = "all today; residual value at the very end"
        why = "a plan file does not say in which month something is bought"
        yield assume("outlays by month", value, why, change)
    if any(line.category == "hardware" for line in lines):
        yield from purchase_of(exactly(1.0), scenario.prices.extras)[1]
