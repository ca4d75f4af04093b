"""Is a problem sound? Every fault is named at once; a price of nothing is never a bargain."""

from collections import Counter
from collections.abc import Iterable
from math import isfinite

import numpy as np

from gpuplan.domain.plan.selection import (
    DeferrableWork,
    FleetOption,
    Horizon,
    MixedFleet,
    NamedLimit,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.errors import InputError, Problem
from gpuplan.units import HOUR

SOURCE = "selection"


def check(problem: SelectionProblem) -> None:
    """Raise InputError with every fault of the problem."""
    found = [
        *_horizon(problem.horizon),
        *_names(problem),
        *(fault for pool in problem.pools for fault in _pool(problem, pool)),
        *(fault for terms in problem.terms for fault in _terms(problem, terms)),
        *(fault for option in problem.options for fault in _option(problem, option)),
        *(fault for work in problem.deferrable for fault in _work(problem, work)),
        *(fault for fleet in problem.mixed for fault in _mixed(problem, fleet)),
        *(fault for limit in problem.limits for fault in _limit(problem, limit)),
    ]
    if not problem.options and not problem.deferrable and not problem.mixed:
        found.append(Problem("options", "nothing is to be run", "give at least one option"))
    if found:
        raise InputError(SOURCE, found)


def price_fault(terms: NodeTerms, horizon: Horizon) -> str:
    """Why the price cannot be right; empty where it can."""
    prices = (terms.usd_per_node_h, terms.upfront_usd)
    if not all(isfinite(price) for price in prices):
        return "the price is not a number"
    if min(prices) < 0:
        return "the price is negative"
    if sum(prices) <= 0 or (terms.purchase != "owned" and terms.usd_per_node_h <= 0):
        return "the price is zero"
    ratio = terms.price_ratio
    if ratio is not None and not (np.all(np.isfinite(ratio)) and np.all(ratio > 0)):
        return "a price ratio is not above zero"
    return _residual_fault(terms, horizon) if terms.residual_usd is not None else ""


def _residual_fault(terms: NodeTerms, horizon: Horizon) -> str:
    retained = terms.residual_usd
    n_periods = horizon.shape[1]
    if retained is None or len(retained) <= n_periods - terms.n_lead_periods:
        return f"residual values must cover ages 0 to {n_periods - terms.n_lead_periods} periods"
    if not np.all(np.isfinite(retained)) or np.any(retained < 0):
        return "a residual value is negative or not a number"
    for period in range(n_periods - terms.n_lead_periods):
        first = period + terms.n_lead_periods
        last = min(n_periods, first + (terms.n_term_periods or n_periods))
        lowest = 1.0 if terms.price_ratio is None else float(terms.price_ratio[:, period].min())
        running = horizon.running_discount_frac[first:last].sum() * horizon.period_s / HOUR
        upfront = terms.upfront_usd * horizon.upfront_discount_frac[period]
        paid = lowest * (upfront + terms.usd_per_node_h * running)
        if paid <= retained[last - first] * horizon.end_discount_frac:
            return f"ordered in period {period}, what is left at the end is worth more than is paid"
    return ""


def _horizon(horizon: Horizon) -> Iterable[Problem]:
    n_scenarios, n_periods, n_hours = horizon.shape
    if not n_scenarios or not n_periods or not n_hours:
        yield Problem("horizon", "no scenario, period or hour", "give at least one of each")
        return
    if len(horizon.upfront_discount_frac) != n_periods:
        yield Problem("horizon.upfront_discount_frac", "not one for each period", "give them all")
    for name in ("hour_s", "upfront_discount_frac", "running_discount_frac"):
        values = getattr(horizon, name)
        if not (np.all(np.isfinite(values)) and np.all(values > 0)):
            yield Problem(f"horizon.{name}", "not all above zero", "give numbers above zero")
    probability = horizon.probability_frac
    if abs(float(probability.sum()) - 1.0) > 1e-9 or np.any(probability < 0):
        yield Problem("horizon.probability_frac", "does not add up to 1", "make it so")


def _names(problem: SelectionProblem) -> Iterable[Problem]:
    groups = {
        "pools": [pool.name for pool in problem.pools],
        "terms": [terms.name for terms in problem.terms],
        "options": [f"{o.workload}/{o.name}" for o in problem.options],
        "limits": [limit.name for limit in problem.limits],
        "workloads": [
            *problem.workloads,
            *(work.workload for work in problem.deferrable),
            *(fleet.workload for fleet in problem.mixed),
        ],
    }
    for group, names in groups.items():
        for name, n_times in Counter(names).items():
            if n_times > 1:
                yield Problem(f"{group}.{name}", "named twice", "give each a name of its own")
    if "existing" in groups["terms"]:
        yield Problem("terms.existing", "means nodes that are there already", "choose another name")


def _unknown_pool(problem: SelectionProblem, where: str, pool: str) -> Iterable[Problem]:
    if not any(given.name == pool for given in problem.pools):
        yield Problem(where, f"pool {pool} is not among the pools", "name one that is")


def _pool(problem: SelectionProblem, pool: NodePool) -> Iterable[Problem]:
    where = f"pools.{pool.name}"
    if pool.n_accelerators_per_node < 1:
        yield Problem(where, "a node without accelerators", "count a CPU node as one")
    numbers = (pool.max_w, pool.mean_w, pool.n_racks_per_node, pool.existing_usd_per_node_h)
    if not all(isfinite(number) and number >= 0 for number in numbers):
        yield Problem(where, "a power, rack or price below zero", "give numbers of zero or more")
    if pool.n_nodes_existing < 0 or (pool.n_nodes_max or 0) < 0:
        yield Problem(where, "a negative count of nodes", "give whole numbers of zero or more")
    carbon = pool.carbon_kg_per_j
    if carbon is not None and len(carbon) not in (1, problem.horizon.shape[2]):
        yield Problem(f"{where}.carbon_kg_per_j", "not one figure nor one an hour", "give either")
    counted = {name for name, _ in problem.weights} | {x.kind for x in problem.limits}
    needs_carbon = problem.objective == "carbon" or "carbon" in counted
    if needs_carbon and carbon is None:
        yield Problem(f"{where}.carbon_kg_per_j", "not known, and carbon counts", "give it")


def _terms(problem: SelectionProblem, terms: NodeTerms) -> Iterable[Problem]:
    where = f"terms.{terms.name}"
    yield from _unknown_pool(problem, where, terms.pool)
    ratio = terms.price_ratio
    if ratio is not None and ratio.shape != problem.horizon.shape[:2]:
        yield Problem(f"{where}.price_ratio", "not [scenario, period]", "give one for each")
        return
    fault = price_fault(terms, problem.horizon)
    if fault:
        yield Problem(where, fault, "give the price, or leave the terms out")
    if terms.n_lead_periods < 0 or (terms.n_term_periods is not None and terms.n_term_periods < 1):
        yield Problem(where, "a lead below 0 or a term below 1", "count whole periods")
    if terms.n_nodes_max is not None and terms.n_nodes_max < 0:
        yield Problem(where, "a negative quota", "give a whole number of zero or more")
    if not 0.0 < terms.useful_frac <= 1.0:
        yield Problem(where, "useful_frac is not within 0 and 1", "give a share")


def _option(problem: SelectionProblem, option: FleetOption) -> Iterable[Problem]:
    where = f"options.{option.workload}/{option.name}"
    yield from _unknown_pool(problem, where, option.pool)
    if option.need.shape != problem.horizon.shape:
        yield Problem(f"{where}.need", "not [scenario, period, hour]", "give one for each")
    elif np.any(option.need < 0):
        yield Problem(f"{where}.need", "below zero", "give whole numbers of zero or more")
    numbers = (option.once_usd, option.time_s, float(option.n_reserve))
    if not all(isfinite(number) and number >= 0 for number in numbers):
        yield Problem(where, "a cost, time or reserve below zero", "give numbers of zero or more")
    kinds = {kind for g in problem.geometries if g.pool == option.pool for kind, _ in g.counts}
    if option.slice_kind and option.slice_kind not in kinds:
        what = f"no geometry of {option.pool} has slices {option.slice_kind}"
        yield Problem(where, what, "give the geometries of the pool")


def _work(problem: SelectionProblem, work: DeferrableWork) -> Iterable[Problem]:
    where = f"deferrable.{work.workload}"
    if work.n_work.shape != problem.horizon.shape[:2]:
        yield Problem(f"{where}.n_work", "not [scenario, period]", "give one for each")
    elif not (np.all(np.isfinite(work.n_work)) and np.all(work.n_work >= 0)):
        yield Problem(f"{where}.n_work", "below zero or not a number", "give numbers")
    if len({option.name for option in work.options}) < len(work.options) or not work.options:
        yield Problem(where, "no options, or two of one name", "name each option once")
    for option in work.options:
        yield from _unknown_pool(problem, f"{where}/{option.name}", option.pool)
        rate = option.n_work_per_accelerator_h
        if not isfinite(rate) or rate <= 0:
            yield Problem(f"{where}/{option.name}", "a rate that is not above zero", "give it")


def _mixed(problem: SelectionProblem, fleet: MixedFleet) -> Iterable[Problem]:
    where = f"mixed.{fleet.workload}"
    if fleet.n_load.shape != problem.horizon.shape:
        yield Problem(f"{where}.n_load", "not [scenario, period, hour]", "give one for each")
    elif not (np.all(np.isfinite(fleet.n_load)) and np.all(fleet.n_load >= 0)):
        yield Problem(f"{where}.n_load", "below zero or not a number", "give numbers")
    for part in fleet.parts:
        yield from _unknown_pool(problem, f"{where}/{part.name}", part.pool)
        if not part.n_load_per_replica > 0 or part.n_accelerators_per_replica < 1:
            yield Problem(f"{where}/{part.name}", "a replica of no size or load", "give both")


def _limit(problem: SelectionProblem, limit: NamedLimit) -> Iterable[Problem]:
    where = f"limits.{limit.name}"
    if not isfinite(limit.most) or limit.most < 0:
        yield Problem(where, f"got {limit.most}", "give a number of zero or more, or leave it out")
    for pool in limit.pools:
        yield from _unknown_pool(problem, where, pool)
    if any(not 0 <= q < problem.horizon.shape[1] for q in limit.periods):
        yield Problem(where, "a period outside the horizon", "count from 0")
