"""What a manager asks of a plan first: what drives its cost, three risks, what to do next."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedPool, TornadoBar
from gpuplan.report.formats import percent, plural, span, usd
from gpuplan.report.plan.headline import (
    age_words,
    is_cpu,
    is_growing,
    is_short,
    provider,
    slo_name,
    with_names,
)
from gpuplan.units import KWH, MONTH, YEAR

N_RISKS = 3
SURE_FRAC = 0.95  # more is no risk worth a manager's line
TIGHT_FRAC = 0.85  # of the safe utilization
ORDER = re.compile("order (now|within)").match  # advice on nodes with a lead time
OWN = ("owned", "existing", "buy")
CAUSES = {
    "model error": "the prediction of this stack's speed",
    "demand": "demand",
    "failures": "failures",
}


class Risk(NamedTuple):
    """What could go wrong, in a few words and in a sentence."""

    what: str
    why: str


def cost_driver(answer: Answer) -> str:
    """The input that moves the cost most, and how far; empty where none was varied."""
    bar = _widest(answer)
    if bar is None:
        return ""
    low, high = sorted((bar.low_usd_per_month, bar.high_usd_per_month))
    return f"Driven most by {bar.what} ({bar.span}): {usd(low)} … {usd(high)}{per_month(answer)}."


def per_month(answer: Answer) -> str:
    """What stands behind an amount of the range; nothing where a run ends within the month."""
    return "" if answer.plan is not None and answer.plan.span_s < MONTH else "/month"


def _widest(answer: Answer) -> TornadoBar | None:
    bars = answer.uncertainty.tornado if answer.uncertainty else ()
    moving = [bar for bar in bars if bar.low_usd_per_month != bar.high_usd_per_month]
    return max(
        moving, key=lambda bar: abs(bar.high_usd_per_month - bar.low_usd_per_month), default=None
    )


def risks(answer: Answer) -> tuple[Risk, ...]:
    """The three that matter most, the gravest first."""
    plan = answer.plan
    if plan is None:
        return ()
    found = (
        *_violations(plan),
        *_odds(answer),
        *_headroom(plan),
        *_prices(answer, plan),
        *_moving_cost(answer),
        *_first_failure(plan),
        *_unstated_growth(answer, plan),
    )
    return found[:N_RISKS]


def _violations(plan: ChosenPlan) -> Iterator[Risk]:
    for result in plan.slo.promises:
        if not result.is_kept and result.reached_s is not None:
            reached, target = span(result.reached_s.value), span(result.limit_s)
            what = f"{result.workload}: {slo_name(result.what)} is violated"
            yield Risk(what, f"Predicted {reached}, target {target}.")
    for limit in plan.limits:
        if not limit.is_kept:
            yield Risk(f"{limit.name} is exceeded", f"{limit.used} of {limit.limit}.")


def _odds(answer: Answer) -> Iterator[Risk]:
    """The chance that SLOs are missed, and what would most likely be the cause."""
    risk = answer.decision.risk
    if risk is None or risk.probability_frac >= SURE_FRAC:
        return
    cause = min(risk.by_cause, key=lambda name: risk.by_cause[name], default="")
    words = CAUSES.get(cause, cause)
    safe = [
        f"{with_names(fleet.fleet)} for {usd(fleet.extra_usd_per_month)}/month more"
        for fleet in risk.fleets
        if fleet.level_frac >= SURE_FRAC and fleet.extra_usd_per_month
    ]
    price = f" Insurance: {safe[0]}." if safe else ""
    why = f"Most of it is the uncertainty of {words}.{price}" if words else price.strip()
    yield Risk(f"A {percent(1 - risk.probability_frac)} chance that a target is missed", why)


def _headroom(plan: ChosenPlan) -> Iterator[Risk]:
    for pool in plan.pools:
        peak, safe = pool.use.peak_frac, pool.use.safe_frac
        if peak and safe and peak > TIGHT_FRAC * safe:
            grown = percent(max(0.0, safe / peak - 1))
            more = "any" if grown == percent(0.0) else f"more than {grown}"
            why = f"Peak utilization {percent(peak)}, safe up to {percent(safe)}: {more} "
            why += f"more load needs another {_unit(pool)}."
            yield Risk(f"{pool.workload}: little headroom", why)


def _unit(pool: PlannedPool) -> str:
    """What is added where load grows."""
    return "replica" if pool.engine else "node" if is_cpu(pool) else "accelerator"


def _prices(answer: Answer, plan: ChosenPlan) -> Iterator[Risk]:
    lines = [line for pool in plan.pools for line in pool.purchases if line.price_date]
    words = dict.fromkeys(
        f"{provider(line)}{age_words(answer, line)}" for line in lines if age_words(answer, line)
    )
    if words:
        why = "List prices move and capacity is not reserved until it is ordered."
        yield Risk(f"Price and capacity at {', '.join(words)}", why)


def _moving_cost(answer: Answer) -> Iterator[Risk]:
    bar = _widest(answer)
    if bar is not None:
        high = max(bar.low_usd_per_month, bar.high_usd_per_month)
        what = f"Cost up to {usd(high)}{per_month(answer)}"
        yield Risk(what, f"{_sentence(bar.what)} may be {bar.span}.")


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _first_failure(plan: ChosenPlan) -> Iterator[Risk]:
    for pool in plan.pools:
        if pool.steps.global_batch:
            why = "It restarts from its last checkpoint: have a spare server, or a supplier's word."
            yield Risk(f"{pool.workload}: a failed server stops the run", why)
        elif pool.n_replicas and not pool.n_spare_replicas and not is_cpu(pool):
            what = f"{pool.workload}: no spare replica"
            yield Risk(what, f"A failure takes 1 of {pool.n_replicas} until it is repaired.")


def _unstated_growth(answer: Answer, plan: ChosenPlan) -> Iterator[Risk]:
    if "growth" not in answer.provenance.scenario and plan.span_s > MONTH:
        why = f"Load is taken as constant for {span(plan.span_s)}."
        yield Risk("Growth is not in the plan", why)


def next_steps(answer: Answer) -> tuple[str, ...]:
    """What to do now, in order; commands where gpuplan does it."""
    plan = answer.plan
    if plan is None:
        return tuple(f"Change this first: {line}." for line in answer.explanation.conflicts[1:4])
    advised = (f"{line[:1].upper()}{line[1:]}." for line in answer.explanation.why if ORDER(line))
    rest = (*_quote(plan), *_order(plan), *_deploy(plan), *_follow(plan))
    return (*_measure(answer), *advised, *rest)


def _measure(answer: Answer) -> Iterator[str]:
    risk = answer.decision.risk
    if risk is not None and risk.probability_frac < SURE_FRAC:
        worth = risk.measurement_usd_per_month
        saving = f", worth {usd(worth)}/month on average" if worth and worth > 0 else ""
        yield f"Benchmark one replica before you commit{saving}: gpuplan calibrate takes its runs."


def _quote(plan: ChosenPlan) -> Iterator[str]:
    """Reservations have no published price: what is needed for a year is worth asking for."""
    lines = [line for pool in plan.pools for line in pool.purchases if line.cloud]
    sellers = dict.fromkeys(provider(line) for line in lines if line.purchase == "on_demand")
    if sellers and plan.span_s >= YEAR:
        yield f"Ask {' and '.join(sellers)} for a reserved price: none is published."


def _order(plan: ChosenPlan) -> Iterator[str]:
    sums: dict[tuple[str, str, str], int] = {}
    for line in (line for pool in plan.pools for line in pool.purchases):
        if line.purchase in ("existing", "owned"):
            continue
        verb = "Order" if line.purchase in OWN else "Reserve capacity:"
        key = (verb, line.offer, f" at {provider(line)}" if provider(line) else "")
        sums[key] = sums.get(key, 0) + line.n_nodes
    most, later = ("up to ", " as load grows") if is_growing(plan) else ("", "")
    for (verb, offer, seller), n in sums.items():
        if n:
            yield f"{verb} {most}{plural(n, 'node')} of {offer}{seller}{later}."


def _deploy(plan: ChosenPlan) -> Iterator[str]:
    if any(pool.engine for pool in plan.pools):
        is_run = all(pool.steps.global_batch for pool in plan.pools)
        other = "training" if is_run else "vllm"
        yield f"Deploy: gpuplan render plan.yaml --to kubernetes (or slurm, {other}, skypilot …)."
    elif plan.pools:
        yield "Deploy: gpuplan render plan.yaml --to all writes what fits: no engine is named."


def _follow(plan: ChosenPlan) -> Iterator[str]:
    pool = next((pool for pool in plan.pools if pool.use.safe_frac), None)
    if pool is not None and pool.use.safe_frac is not None:
        at = percent(pool.use.safe_frac)
        what = f"another {_unit(pool)} when {pool.workload} stays above {at}"
        yield f"Watch: add {what} (gpuplan watch, replan)."


def energy_words(plan: ChosenPlan) -> str:
    """Energy and carbon of a month or of a short run, as far as they are known."""
    if plan.energy_j_per_month is None:
        return "unknown: no published power limit"
    per = "" if is_short(plan) else "/month"
    energy = f"{plan.energy_j_per_month / KWH:,.0f} kWh{per}"
    carbon = plan.carbon_kg_per_month
    return energy if carbon is None else f"{energy}, {carbon:,.0f} kg CO₂e{per}"
