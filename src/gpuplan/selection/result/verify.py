"""Does a choice keep every rule? Written from the nouns, apart from the program that found it."""

from collections.abc import Iterable

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.plan.selection import (
    DeferrableWork,
    LimitKind,
    MixedFleet,
    NamedLimit,
    NodePool,
    Objective,
    Selection,
    SelectionProblem,
    Share,
    needed_accelerators,
)
from gpuplan.units import HOUR

SLACK = 1e-6


def breaches(problem: SelectionProblem, selection: Selection) -> list[str]:
    """Every rule that the choice breaks, in words; empty is right."""
    found = list(_choices(problem, selection))
    if found:
        return found
    for pool in problem.pools:
        found += _pool(problem, selection, pool)
    found += [text for work in problem.deferrable for text in _work(selection, work)]
    found += [text for fleet in problem.mixed for text in _mixed(selection, fleet)]
    found += _quotas(problem, selection)
    found += [text for limit in problem.limits for text in _limit(problem, selection, limit)]
    return found


def _choices(problem: SelectionProblem, selection: Selection) -> Iterable[str]:
    names = sorted(option.workload for option in selection.chosen)
    if names != sorted(problem.workloads):
        yield f"workloads run once each: {names}"
    for option in selection.chosen:
        if not any(option is given for given in problem.options):
            yield f"{option.name}: not among the options"


def _nodes(selection: Selection, pool: str, *, firm: bool, shape: tuple[int, ...]) -> Floats:
    nodes = np.zeros(shape)
    for provisioned in selection.provisioned:
        if provisioned.pool == pool and (provisioned.purchase == "spot") != firm:
            nodes = nodes + provisioned.n_nodes
    return nodes


def _pool(problem: SelectionProblem, selection: Selection, pool: NodePool) -> Iterable[str]:
    shape = problem.horizon.shape
    firm = _nodes(selection, pool.name, firm=True, shape=shape)
    spot = _nodes(selection, pool.name, firm=False, shape=shape)
    if pool.n_nodes_max is not None and np.any(firm + spot > pool.n_nodes_max + SLACK):
        yield f"{pool.name}: more nodes than there are"
    free = firm * pool.n_accelerators_per_node - _used(problem, selection, pool)
    if np.any(free < -SLACK * (1.0 + firm)):
        yield f"{pool.name}: short of {-free.min():g} accelerators"
    yield from _batch(problem, selection, pool, free=free)
    yield from _slices(problem, selection, pool)


def _used(problem: SelectionProblem, selection: Selection, pool: NodePool) -> Floats:
    here = [option for option in selection.chosen if option.pool == pool.name]
    used = np.zeros(problem.horizon.shape)
    for option in here:
        if not option.slice_kind:
            used = used + option.need
    used += max((option.n_reserve for option in here), default=0)
    for name, _, n_cut in selection.sliced:
        if name == pool.name:
            used = used + n_cut[:, :, None]
    for fleet in problem.mixed:
        for part, share in zip(fleet.parts, _shares(selection, fleet.workload), strict=True):
            if part.pool == pool.name:
                used = used + part.n_accelerators_per_replica * share.n_amount
    return used


def _shares(selection: Selection, workload: str) -> list[Share]:
    return [share for share in selection.shares if share.workload == workload]


def _batch(
    problem: SelectionProblem, selection: Selection, pool: NodePool, *, free: Floats
) -> Iterable[str]:
    hours = problem.horizon.hour_s / HOUR
    firm_h = (free * hours).sum(axis=2)
    spot_h = np.zeros_like(firm_h)
    useful = {terms.name: terms.useful_frac for terms in problem.terms}
    for provisioned in selection.provisioned:
        if provisioned.pool == pool.name and provisioned.purchase == "spot":
            size = pool.n_accelerators_per_node * useful[provisioned.terms]
            spot_h += size * (provisioned.n_nodes * hours).sum(axis=2)
    requested = {True: np.zeros_like(firm_h), False: np.zeros_like(firm_h)}
    for work in problem.deferrable:
        for share in _shares(selection, work.workload):
            if share.pool == pool.name:
                requested[work.may_use_spot] += share.n_amount
    slack = SLACK * (1.0 + firm_h + spot_h)
    if np.any(requested[False] > firm_h + slack):
        yield f"{pool.name}: batch work that may not use spot has too little room"
    if np.any(requested[False] + requested[True] > firm_h + spot_h + slack):
        yield f"{pool.name}: batch work has too little room"


def _slices(problem: SelectionProblem, selection: Selection, pool: NodePool) -> Iterable[str]:
    counts = {(g.pool, g.name): dict(g.counts) for g in problem.geometries}
    here = [o for o in selection.chosen if o.pool == pool.name and o.slice_kind]
    for kind in {option.slice_kind for option in here}:
        requested = sum(option.need for option in here if option.slice_kind == kind)
        given = np.zeros(problem.horizon.shape[:2])
        for name, geometry, n_cut in selection.sliced:
            if name == pool.name:
                given = given + counts[name, geometry].get(kind, 0) * n_cut
        if np.any(requested > given[:, :, None] + SLACK):
            yield f"{pool.name}: short of slices {kind}"


def _work(selection: Selection, work: DeferrableWork) -> Iterable[str]:
    rates = {option.name: option.n_work_per_accelerator_h for option in work.options}
    shares = _shares(selection, work.workload)
    done = sum((rates[s.option] * s.n_amount for s in shares), start=np.zeros_like(work.n_work))
    if np.any(done < work.n_work * (1 - SLACK) - SLACK):
        yield f"{work.workload}: work is left over"


def _mixed(selection: Selection, fleet: MixedFleet) -> Iterable[str]:
    shares = _shares(selection, fleet.workload)
    rates = [part.n_load_per_replica for part in fleet.parts]
    carried = sum(rate * share.n_amount for rate, share in zip(rates, shares, strict=True))
    if np.any(carried < fleet.n_load * (1 - SLACK)):
        yield f"{fleet.workload}: load is not carried"
    for rate, share in zip(rates, shares, strict=True):
        lost = np.minimum(share.n_amount, fleet.n_lost) * rate
        if np.any(carried - lost < fleet.n_load * (1 - SLACK)):
            yield f"{fleet.workload}: a loss of {share.option} is not survived"


def _quotas(problem: SelectionProblem, selection: Selection) -> Iterable[str]:
    quotas = {terms.name: terms.n_nodes_max for terms in problem.terms}
    existing = {pool.name: pool.n_nodes_existing for pool in problem.pools}
    for provisioned in selection.provisioned:
        most = (
            existing[provisioned.pool]
            if provisioned.terms == "existing"
            else quotas[provisioned.terms]
        )
        if most is not None and np.any(provisioned.n_nodes > most):
            yield f"{provisioned.terms}: more nodes than the quota"
        if np.any(provisioned.n_nodes < 0):
            yield f"{provisioned.terms}: fewer nodes than none"


def _limit(problem: SelectionProblem, selection: Selection, limit: NamedLimit) -> Iterable[str]:
    used = limit_used(problem, selection, limit)
    if used > limit.most * (1 + SLACK) + SLACK:
        yield f"{limit.name}: {used:g} of at most {limit.most:g}"


def limit_used(problem: SelectionProblem, selection: Selection, limit: NamedLimit) -> float:
    """How much of the limit the choice uses, in the worst scenario and hour."""
    if limit.kind == "time":
        here = [o for o in selection.chosen if not limit.pools or o.pool in limit.pools]
        return sum(option.time_s for option in here)
    if limit.kind in ("upfront", "spend"):
        return _money(problem, selection, limit)
    if limit.workloads:
        mine = [o for o in selection.chosen if o.workload in limit.workloads]
        needs = [needed_accelerators(problem, option) for option in mine]
        return float(np.sum(needs, axis=0).max()) if needs else 0.0
    n_periods = problem.horizon.shape[1]
    periods = list(limit.periods or range(n_periods))
    used = np.zeros(problem.horizon.shape)
    on_site = {terms.name for terms in problem.terms if terms.is_on_site} | {"existing"}
    for provisioned in selection.provisioned:
        pool = problem.pool(provisioned.pool)
        is_here = limit.kind not in ("power", "racks") or provisioned.terms in on_site
        is_paid = not limit.purchases or provisioned.purchase in limit.purchases
        if is_here and is_paid and (not limit.pools or pool.name in limit.pools):
            used = used + provisioned.n_nodes * _per_node(problem, pool, limit)
    used = used[:, periods]
    is_sum = limit.kind in ("energy", "carbon")
    return float(used.sum(axis=(1, 2)).max() if is_sum else used.max())


def expected_measure(problem: SelectionProblem, selection: Selection, measure: Objective) -> float:
    """Cost, time, energy or carbon of the choice, weighted by probability."""
    if measure == "cost":
        return selection.worth_usd
    if measure == "time":
        return sum(option.time_s for option in selection.chosen)
    kind: LimitKind = "carbon" if measure == "carbon" else "energy"
    limit = NamedLimit(name="", kind=kind, most=0.0)
    used = np.zeros(problem.horizon.shape)
    for provisioned in selection.provisioned:
        pool = problem.pool(provisioned.pool)
        used = used + provisioned.n_nodes * _per_node(problem, pool, limit)
    return float(used.sum(axis=(1, 2)) @ problem.horizon.probability_frac)


def _per_node(problem: SelectionProblem, pool: NodePool, limit: NamedLimit) -> Floats | float:
    if limit.kind == "power":
        return pool.max_w
    if limit.kind == "racks":
        return pool.n_racks_per_node
    if limit.kind == "nodes":
        return 1.0
    if limit.kind == "accelerators":
        return float(pool.n_accelerators_per_node)
    energy_j = pool.mean_w * problem.horizon.hour_s
    if limit.kind == "energy" or pool.carbon_kg_per_j is None:
        return energy_j
    return energy_j * pool.carbon_kg_per_j


def _money(problem: SelectionProblem, selection: Selection, limit: NamedLimit) -> float:
    purchases = {terms.name: terms.purchase for terms in problem.terms}
    spent = np.zeros(problem.horizon.shape[0])
    kinds = ("upfront",) if limit.kind == "upfront" else ()
    for line in selection.bill:
        if line.kind == "residual" or (kinds and line.kind not in kinds):
            continue
        purchase = "owned" if line.terms == "existing" else purchases.get(line.terms, "")
        is_paid = not limit.purchases or purchase in limit.purchases
        is_in = not limit.periods or line.period in limit.periods
        if is_paid and is_in and (not limit.pools or line.pool in limit.pools):
            where = slice(None) if line.scenario is None else line.scenario
            spent[where] += line.nominal_cents / 100.0
    return float(spent.max())
