"""Unit costs of a plan: each pool by accelerator-hour, token and run; and the bill by team."""

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.cost.per_unit import price_weights, service_cents, team_costs, token_costs
from gpuplan.cost.statement import cents
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.money.worth import TeamCost, Tokens, TokenWeights
from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedLoad, PlannedPool
from gpuplan.domain.plan.bill import CashLine
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import (
    LoadRequest,
    PredictRequest,
    ReplicaSpan,
)
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Serving, Workload
from gpuplan.domain.system.designed import PoolCost
from gpuplan.studies.inference.roofline import roofline
from gpuplan.studies.whole_design.statement import cash_flow_of, span_of
from gpuplan.units import HOURS_PER_MONTH, MONTH


def pool_costs(
    answer: Answer, plan: ChosenPlan, scenario: Scenario
) -> Iterator[PoolCost | Assumption]:
    """The cost by hour, token and run of each pool, over the whole span."""
    loads = {load.workload: load for load in answer.load}
    for pool in merged(plan.pools):
        work, load = scenario.workload(pool.workload), loads.get(pool.workload)
        n_months = span_of(plan, pool.workload) / MONTH
        mine = pool_lines(plan, pool)
        total = cents(sum(line.usd for line in mine))
        hours = paid_hours(plan, mine)
        per_h = total / 100.0 / hours if hours else None
        busy = pool.use.mean_frac
        tokens = _tokens(work, load, plan.span_s, scenario) if work else None
        weights, notes = _weights(scenario, pool, load=load, work=work) if tokens else (None, ())
        n = tokens.n_input + tokens.n_cached + tokens.n_output if tokens else 0.0
        drawn = plan.energy_j_per_month if len(merged(plan.pools)) == 1 else None
        sold = scenario.prices.tokens if tokens else ()
        yield PoolCost(
            workload=pool.workload,
            total_cents=total,
            n_paid_accelerator_hours=hours,
            usd_per_paid_h=per_h,
            usd_per_used_h=per_h / busy if per_h is not None and busy else None,
            tokens=token_costs(total, tokens, weights) if tokens and weights else None,
            services=tuple((p.name, service_cents(tokens, p)) for p in sold if tokens),
            run_usd=total / 100.0 / _n_runs(work, plan) if work and work.has_end else None,
            energy_j_per_token=drawn * n_months / n if drawn is not None and n else None,
        )
        yield from notes
        yield from _growth_notes(scenario) if tokens else ()


def _n_runs(work: Workload, plan: ChosenPlan) -> float:
    """How often the run is made while the plan lasts."""
    return plan.span_s / work.interval_s if work.interval_s else 1.0


def costs_by_team(
    costs: tuple[PoolCost, ...], plan: ChosenPlan, scenario: Scenario
) -> tuple[TeamCost, ...]:
    """The bill by team, where workloads name theirs; pools without a team are paid by all.

    Hours in which a pool is not utilized are idle hours of the team that holds it.
    """
    teams = {work.name: work.team for work in scenario.workloads if work.team}
    busy = {pool.workload: pool.use.mean_frac for pool in plan.pools}
    used: dict[str, float] = {}
    idle: dict[str, float] = {}
    unassigned = 0.0
    for cost in costs:
        team, share = teams.get(cost.workload), busy.get(cost.workload)
        if team is None:
            unassigned += cost.total_cents
            continue
        worked = cost.total_cents * (1.0 if share is None else min(1.0, share))
        used[team] = used.get(team, 0.0) + worked
        idle[team] = idle.get(team, 0.0) + cost.total_cents - worked
    total = sum(cost.total_cents for cost in costs)
    return team_costs(total, used, idle=idle, unassigned=unassigned) if used and total else ()


def pool_lines(plan: ChosenPlan, pool: PlannedPool) -> list[CashLine]:
    """The sums that a pool pays: its workload's; of several pools of it, those for its nodes.

    What is for no node, such as staff, stands under the first of them.
    """
    lines = [line for line in cash_flow_of(plan) if line.workload == pool.workload]
    alike = [each for each in plan.pools if each.workload == pool.workload]
    known = {p.offer for each in alike for p in each.purchases}
    here = {p.offer for p in pool.purchases}
    is_first = alike[0] is pool
    return [x for x in lines if x.name in here or (is_first and x.name not in known)]


def paid_hours(plan: ChosenPlan, lines: Sequence[CashLine]) -> float:
    """Accelerator-hours over the span that these sums pay for: of shared nodes by their use."""
    # An hour of equal nodes costs the same to run, whoever bought them.
    paid, mine = (
        _by_name(line for line in each if line.span_s) for each in (cash_flow_of(plan), lines)
    )
    return sum(
        p.n_nodes
        * p.n_accelerators_per_node
        * p.paid_frac
        * HOURS_PER_MONTH
        # The purchase is paid as long as the work that its pool is listed under.
        * (span_of(plan, pool.workload) / MONTH)
        * (mine.get(p.offer, 0.0) / paid[p.offer])
        for pool in plan.pools
        for p in pool.purchases
        if paid.get(p.offer)
    )


def _by_name(lines: Iterable[CashLine]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        found[line.name] = found.get(line.name, 0.0) + line.usd
    return found


def _tokens(
    work: Workload, load: PlannedLoad | None, span_s: float, scenario: Scenario
) -> Tokens | None:
    """Tokens over the span: the mean rate of today, growing as the scenario says."""
    run = work.work
    if not isinstance(run, Serving | Batch):
        return None
    n = run.n_docs if isinstance(run, Batch) else None
    if n is None and load is not None and load.mean_requests_per_s is not None:
        growth = scenario.growth.per_month_frac.mid
        n = load.mean_requests_per_s * _grown_s(span_s, growth)
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


def _growth_notes(scenario: Scenario) -> Iterator[Assumption]:
    growth = scenario.growth.per_month_frac.mid
    if growth:
        value = f"today's mean, {growth:+.1%} every month"
        why = "the bill is split over all tokens served"
        yield assume("tokens over the span", value, why, "growth.per_month_frac")


def _weights(
    scenario: Scenario, pool: PlannedPool, *, load: PlannedLoad | None, work: Workload | None
) -> tuple[TokenWeights, tuple[Assumption, ...]]:
    """Weights by time where the pool was sized by our model, by a service's prices, else alike."""
    what, change = f"share of a token in the bill of {pool.workload}", "prices.token_services"
    why, known = "one bill pays for all kinds of tokens", scenario.prices.tokens
    timed, notes = _timed(pool, load, work)
    if timed is not None:
        ratio = timed.output_ratio / timed.input_ratio
        value = (
            f"by accelerator time: an output token takes {ratio:.1f} times an input token; "
            "a cached one none"
        )
        return timed, (assume(what, value, why, ""), *notes)
    if known:
        value = f"in the ratio of the prices of {known[0].name}"
        return price_weights(known[0]), (assume(what, value, why, change),)
    why += ", and the time that each takes is not known"
    alike = TokenWeights(input_ratio=1.0, cached_ratio=1.0, output_ratio=1.0, rule="token count")
    return alike, (assume(what, "every token alike", why, change),)


def _timed(
    pool: PlannedPool, load: PlannedLoad | None, work: Workload | None
) -> tuple[TokenWeights | None, tuple[Assumption, ...]]:
    """Seconds of a replica per prefilled and per decoded token, at the batch of the plan."""
    n, run = pool.n_replicas - pool.n_spare_replicas, work.work if work else None
    if not isinstance(run, Serving | Batch) or load is None or not load.model:
        return None, ()
    if not pool.engine or not load.n_in_flight or n < 1:
        return None, ()
    name, _, number = pool.engine.partition(" ")
    batch = max(1, round(load.n_in_flight / n))
    request = PredictRequest(
        tp=pool.layout.tp,
        pp=pool.layout.pp,
        dp=pool.layout.dp,
        ep=pool.layout.ep,
        span=ReplicaSpan(cp=pool.layout.cp, network_bytes_per_s=pool.layout.network_bytes_per_s),
        engine=name,
        engine_version=number or None,
        precision=pool.precision if format_named(pool.precision) else None,
        load=LoadRequest(
            n_concurrent=batch,
            input_tokens=round(run.request.input.mean_tokens),
            output_tokens=round(run.request.output.mean_tokens),
        ),
    )
    found = roofline(load.model, f"{pool.layout.spread.n_accelerators}x{pool.accelerator}", request)
    read = next(point for point in found.points if point.phase == "prefill")
    written = next(p for p in found.points if p.phase == "decode" and p.n_tokens == batch)
    weights = TokenWeights(
        input_ratio=read.step_s / read.n_tokens,
        cached_ratio=0.0,
        output_ratio=written.step_s / written.n_tokens,
        rule="accelerator time",
    )
    return weights, found.assumptions
