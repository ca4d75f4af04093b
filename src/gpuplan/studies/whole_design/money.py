"""The money of a plan, in: its cost lines; out: the same cents by month, by unit, own or rent."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import get_args

from gpuplan.cost.bill import KINDS
from gpuplan.cost.defaults import purchase_of
from gpuplan.cost.items import loan_interest_usd
from gpuplan.cost.per_unit import price_weights, service_cents, token_costs
from gpuplan.cost.statement import RENT_CATEGORIES, cents, purchase_parts, shares_of
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.money.statement import CAPITAL, CostCategory, CostLine, Statement
from gpuplan.domain.money.worth import Tokens, TokenWeights
from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedLoad, PlannedPool, PurchaseLine
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Serving, Training, Workload
from gpuplan.domain.system.designed import PoolCost
from gpuplan.errors import InputError, one
from gpuplan.studies.inference.roofline import roofline
from gpuplan.studies.planning.chosen import KINDS as RUN_KINDS
from gpuplan.units import HOURS_PER_MONTH, MONTH

RUN_CATEGORIES: dict[str, CostCategory] = {name: KINDS[kind] for kind, name in RUN_KINDS.items()}  # type: ignore[index]
CATEGORIES: dict[str, CostCategory] = {
    **{name: name for name in get_args(CostCategory)},
    **RUN_CATEGORIES,
}
AT_ONCE: tuple[CostCategory, ...] = (*CAPITAL, "porting")
SPLIT: tuple[CostCategory, ...] = ("rent", "reservation", "spot", "other")


def statement_of_plan(answer: Answer, plan: ChosenPlan, scenario: Scenario) -> Statement:
    """The plan's own cost lines by month: outlays today, worth at the end, all else evenly."""
    n_months = max(1, ceil(plan.span_s / MONTH * (1 - 1e-9)))
    lines = [
        CostLine(
            category=category,
            name=name,
            cents=flow,
            source=source,
            low_cents=_scaled(flow, plan.cost_usd_per_month.low / plan.cost_usd_per_month.value),
            high_cents=_scaled(flow, plan.cost_usd_per_month.high / plan.cost_usd_per_month.value),
        )
        for category, name, source, total, part_s in _totals(answer, plan, scenario)
        for flow in (_by_month(category, total, n_months=n_months, span_s=part_s),)
    ]
    return Statement(
        name=answer.name,
        n_months=n_months,
        lines=tuple(lines),
        discount_frac_per_year=scenario.budget.discount_frac_per_year,
        assumptions=(*_month_notes(lines), *_outlay_notes(lines, scenario)),
    )


def run_span_s(plan: ChosenPlan) -> float:
    """How long the plan's runs last: their costs are by the month of the runs, not of the plan.

    A plan of services and runs holds both kinds of lines and the total of all; what the services
    leave of it is what the runs cost.
    """
    n_months = plan.span_s / MONTH
    runs = sum(x.usd_per_month for x in plan.cost_lines if x.what in RUN_CATEGORIES)
    rest = sum(x.usd_per_month for x in plan.cost_lines if x.what not in RUN_CATEGORIES)
    if not runs or all(x.what in RUN_CATEGORIES for x in plan.cost_lines):
        return plan.span_s
    found_s = (plan.total_usd - rest * n_months) / runs * MONTH
    # A total that leaves nothing for the runs is not the lines' own: the statement's difference
    # from the plan tells it.
    is_short = 0.0 < found_s < plan.span_s * (1 - 1e-9)
    return found_s if is_short else plan.span_s


def span_of(plan: ChosenPlan, work: Workload | None) -> float:
    """How long this work is paid for."""
    is_run = work is not None and isinstance(work.work, Training)
    return run_span_s(plan) if is_run else plan.span_s


def _scaled(flow: Sequence[int], ratio: float) -> tuple[int, ...]:
    return tuple(round(value * ratio) for value in flow)


Total = tuple[CostCategory, str, str, int, float]  # category, name, source, cents, span


def _totals(answer: Answer, plan: ChosenPlan, scenario: Scenario) -> Iterator[Total]:
    """Category, name, source and cents; a line that purchases explain is split by them."""
    for line in plan.cost_lines:
        category = CATEGORIES.get(line.what)
        if category is None:
            what = f"{line.what!r} is no cause of cost that is known"
            raise one(InputError, answer.name, "plan.cost_lines", what, "make the plan anew")
        part_s = run_span_s(plan) if line.what in RUN_CATEGORIES else plan.span_s
        total = cents(line.usd_per_month * part_s / MONTH)
        if category == "hardware":
            for kind, name, source, share in _outlay(total, plan, scenario):
                yield kind, name, source, share, part_s
            continue
        bought = _explaining(plan, line.usd_per_month, category) if category in SPLIT else ()
        if not bought:
            yield category, "plan", "", total, part_s
            continue
        parts = shares_of(total, [p.usd_per_month for p in bought])
        for found, part in zip(bought, parts, strict=True):
            yield _category(found), found.offer, _source(found), part, part_s


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


def _outlay(
    total: int, plan: ChosenPlan, scenario: Scenario
) -> Iterator[tuple[CostCategory, str, str, int]]:
    """What is laid out for machines by cause: their price, and what the user's terms add to it."""
    buy, _ = purchase_of(exactly(1.0), scenario.prices.extras)
    parts = purchase_parts(buy)
    bought = [p for pool in plan.pools for p in pool.purchases if p.purchase == "owned"]
    name = ", ".join(dict.fromkeys(p.offer for p in bought)) or "plan"
    source = "; ".join(dict.fromkeys(_source(p) for p in bought))
    shares = shares_of(total, list(parts.values()))
    for category, share in zip(parts, shares, strict=True):
        if share:
            yield category, name, source, share


def interest(plan: ChosenPlan, scenario: Scenario) -> tuple[tuple[str, Range], ...]:
    """What the described loan costs beside the bill, which holds outlays as cash."""
    usd = loan_interest_usd(plan.once_usd, scenario.prices.extras) if plan.once_usd else None
    return () if usd is None else (("interest of the loan, in all", exactly(usd)),)


def _category(line: PurchaseLine) -> CostCategory:
    return RENT_CATEGORIES.get(line.purchase, "other")


def _source(line: PurchaseLine) -> str:
    return ", ".join(text for text in (line.price_source, line.price_date) if text)


def _by_month(
    category: CostCategory, total: int, *, n_months: int, span_s: float
) -> tuple[int, ...]:
    flow = [0] * (n_months + 1)
    if category in AT_ONCE:
        end = min(n_months, max(1, ceil(span_s / MONTH * (1 - 1e-9))))
        flow[end if category == "residual" else 0] = total
        return tuple(flow)
    # The last month of a run is paid up to its end.
    weights = [max(0.0, min(1.0, span_s / MONTH - month)) for month in range(n_months)]
    return (0, *shares_of(total, weights))


def _month_notes(lines: Sequence[CostLine]) -> Iterator[Assumption]:
    yield Assumption(
        what="ranges of the statement",
        value="that of the plan's whole bill, on every line",
        why="a plan file holds one range",
        change="prices.offers",
    )
    if any(line.category not in AT_ONCE for line in lines):
        yield Assumption(
            what="running costs by month",
            value="the same every month",
            why="a plan file holds their mean over its span",
            change="plan each period by itself",
        )
    if any(line.category in AT_ONCE for line in lines):
        yield Assumption(
            what="outlays by month",
            value="all today; worth at the very end",
            why="a plan file does not say in which month something is bought",
            change="plan each period by itself",
        )


def _outlay_notes(lines: Sequence[CostLine], scenario: Scenario) -> tuple[Assumption, ...]:
    if not any(line.category == "hardware" for line in lines):
        return ()
    return purchase_of(exactly(1.0), scenario.prices.extras)[1]


def pool_costs(
    answer: Answer, plan: ChosenPlan, scenario: Scenario
) -> tuple[tuple[PoolCost, ...], tuple[Assumption, ...]]:
    """Cost by hour, token and run of each pool, over the whole span."""
    loads = {load.workload: load for load in answer.load}
    told: list[Assumption] = []
    found = []
    for pool in plan.pools:
        work = scenario.workload(pool.workload)
        cost, notes = _pool_cost(pool, work, plan, scenario=scenario, load=loads.get(pool.workload))
        found.append(cost)
        told += notes
    return tuple(found), tuple(dict.fromkeys(told))


def _pool_cost(
    pool: PlannedPool,
    work: Workload | None,
    plan: ChosenPlan,
    *,
    scenario: Scenario,
    load: PlannedLoad | None,
) -> tuple[PoolCost, tuple[Assumption, ...]]:
    n_months = span_of(plan, work) / MONTH
    total = cents(sum(p.usd_per_month for p in pool.purchases) * n_months)
    hours = paid_hours(pool) * n_months
    per_h = total / 100.0 / hours if hours else None
    busy = pool.use.mean_frac
    tokens = _tokens(work, load, plan.span_s, scenario) if work else None
    weights, told = _weights(scenario, pool, load=load, work=work) if tokens else (None, ())
    n = tokens.n_input + tokens.n_cached + tokens.n_output if tokens else 0.0
    drawn = plan.energy_j_per_month if len(plan.pools) == 1 else None
    return PoolCost(
        workload=pool.workload,
        total_cents=total,
        n_paid_accelerator_hours=hours,
        usd_per_paid_h=per_h,
        usd_per_used_h=per_h / busy if per_h is not None and busy else None,
        tokens=token_costs(total, tokens, weights) if tokens and weights else None,
        services=tuple((p.name, service_cents(tokens, p)) for p in scenario.prices.tokens)
        if tokens
        else (),
        run_usd=total / 100.0 if work and isinstance(work.work, Training) else None,
        energy_j_per_token=drawn * n_months / n if drawn is not None and n else None,
    ), (*told, *(_growth_notes(scenario) if tokens else ()))


def paid_hours(pool: PlannedPool) -> float:
    """Accelerator-hours that are paid for in a month."""
    return sum(
        p.n_nodes * p.n_accelerators_per_node * p.paid_frac * HOURS_PER_MONTH
        for p in pool.purchases
    )


def _tokens(
    work: Workload, load: PlannedLoad | None, span_s: float, scenario: Scenario
) -> Tokens | None:
    """Tokens over the span: the mean rate of today, growing as the scenario says."""
    run = work.work
    if not isinstance(run, Serving | Batch):
        return None
    n: float | None
    if isinstance(run, Batch) and run.n_docs is not None:
        n = run.n_docs
    else:
        rate = load.mean_requests_per_s if load else None
        n = None if rate is None else rate * _grown_s(span_s, scenario.growth.per_month_frac.mid)
    if not n:
        return None
    shape, hit = run.request, run.request.prefix_hit_frac.mid
    return Tokens(
        n_input=n * shape.input.mean_tokens * (1 - hit),
        n_cached=n * shape.input.mean_tokens * hit,
        n_output=n * shape.output.mean_tokens,
    )


def _grown_s(span_s: float, growth_frac: float) -> float:
    """Seconds of today's load that the span is worth; growth is compounded by the month."""
    whole, rest = divmod(span_s, MONTH)
    months = [MONTH] * round(whole) + [rest]
    return sum(part * (1 + growth_frac) ** month for month, part in enumerate(months))


def _growth_notes(scenario: Scenario) -> tuple[Assumption, ...]:
    growth = scenario.growth.per_month_frac.mid
    if not growth:
        return ()
    return (
        Assumption(
            what="tokens over the span",
            value=f"today's mean, {growth:+.1%} every month",
            why="the bill is shared out over all that is served",
            change="growth.per_month_frac",
        ),
    )


def _weights(
    scenario: Scenario, pool: PlannedPool, *, load: PlannedLoad | None, work: Workload | None
) -> tuple[TokenWeights, tuple[Assumption, ...]]:
    """By time where the pool was sized by our model; by a service's prices; else alike."""
    what = f"share of a token in the bill of {pool.workload}"
    why, known = "one bill pays for all kinds of tokens", scenario.prices.tokens
    timed, told = _timed(pool, load, work)
    if timed is not None:
        value = (
            f"by accelerator time: an output token takes "
            f"{timed.output_ratio / timed.input_ratio:.1f} times an input token; a cached one none"
        )
        return timed, (Assumption(what=what, value=value, why=why, change=""), *told)
    if known:
        value = f"in the ratio of the prices of {known[0].name}"
        return price_weights(known[0]), (
            Assumption(what=what, value=value, why=why, change="prices.token_services"),
        )
    why += ", and nothing is known of the time that each takes"
    alike = TokenWeights(input_ratio=1.0, cached_ratio=1.0, output_ratio=1.0, rule="token count")
    return alike, (
        Assumption(what=what, value="every token alike", why=why, change="prices.token_services"),
    )


def _timed(
    pool: PlannedPool, load: PlannedLoad | None, work: Workload | None
) -> tuple[TokenWeights | None, tuple[Assumption, ...]]:
    """Seconds of a replica for a token read and for one written, at the batch of the plan."""
    n, run = pool.n_replicas - pool.n_spare_replicas, work.work if work else None
    if not isinstance(run, Serving | Batch) or load is None or not load.model:
        return None, ()
    if not pool.engine or not load.n_in_flight or n < 1:
        return None, ()
    name, _, number = pool.engine.partition(" ")
    batch = max(1, round(load.n_in_flight / n))
    request = PredictRequest(
        tp=pool.tp,
        pp=pool.pp,
        engine=name,
        engine_version=number or None,
        precision=pool.precision if format_named(pool.precision) else None,
        load=LoadRequest(
            n_concurrent=batch,
            input_tokens=round(run.request.input.mean_tokens),
            output_tokens=round(run.request.output.mean_tokens),
        ),
    )
    found = roofline(load.model, f"{pool.tp * pool.pp}x{pool.accelerator}", request)
    read = next(point for point in found.points if point.phase == "prefill")
    written = next(p for p in found.points if p.phase == "decode" and p.n_tokens == batch)
    weights = TokenWeights(
        input_ratio=read.step_s / read.n_tokens,
        cached_ratio=0.0,
        output_ratio=written.step_s / written.n_tokens,
        rule="accelerator time",
    )
    return weights, found.assumptions
