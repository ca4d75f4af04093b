"""A problem as arrays: nouns come in, tables indexed by position leave.

Hours may be merged (`compress`): means of an hour's rows over a cluster are sums of rows, so what
the merged tables allow contains what the full ones allow, and their optimum is a lower bound.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.plan.selection import SelectionProblem
from gpuplan.units import HOUR


@dataclass(frozen=True)
class Terms:
    """Terms of one kind as columns."""

    index: Ints  # position in the problem
    pool: Ints
    n_max: Floats  # inf: no quota
    useful: Floats
    usd_per_h: Floats  # [terms, scenario, period]


@dataclass(frozen=True)
class Orders:
    """Every order that could be placed: terms, period, scenario (-1: all)."""

    terms: Ints
    pool: Ints
    period: Ints
    scenario: Ints
    first: Ints  # period in which service begins
    last: Ints  # one past the last period of service

    def served(self, order: int | np.integer[Any]) -> tuple[slice, slice]:
        """Scenarios and periods in which the nodes of an order are there."""
        s = self.scenario[order]
        scenarios = slice(None) if s < 0 else slice(s, s + 1)
        return scenarios, slice(self.first[order], self.last[order])


@dataclass(frozen=True)
class Shares:
    """Ways to run deferrable work."""

    work: Ints  # position of the work
    pool: Ints
    rate: Floats
    may_spot: Ints


@dataclass(frozen=True)
class Tables:
    """The numbers of a problem."""

    problem: SelectionProblem
    hour_h: Floats
    workload: Ints  # of each option
    pool: Ints  # of each option
    need: Floats  # [option, scenario, period, hour]
    orders: Orders
    burst: Terms
    spot: Terms
    shares: Shares
    work: Floats  # [work, scenario, period]
    carbon: Floats  # [pool, hour] kg per J
    least_carbon: Floats  # the same, of the cleanest hour merged: rented nodes may keep to it

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many scenarios, periods and hours there are."""
        n_scenarios, n_periods, _ = self.problem.horizon.shape
        return n_scenarios, n_periods, len(self.hour_h)

    @cached_property
    def n_per_node(self) -> Floats:
        """Accelerators in a node of each pool."""
        return np.array([p.n_accelerators_per_node for p in self.problem.pools], dtype=float)

    @cached_property
    def slices(self) -> tuple[str, ...]:
        """Kinds of slices in use, whole accelerators first."""
        kinds = {option.slice_kind for option in self.problem.options}
        return ("", *sorted(kinds - {""}))

    @cached_property
    def slice_kind(self) -> Ints:
        """Of each option: position in `slices`."""
        place = {kind: i for i, kind in enumerate(self.slices)}
        return np.array([place[o.slice_kind] for o in self.problem.options], dtype=np.int64)

    @cached_property
    def used_pools(self) -> Ints:
        """Pools in which anything could run."""
        mixed = [self.place(part.pool) for m in self.problem.mixed for part in m.parts]
        return np.unique(np.concatenate([self.pool, self.shares.pool, np.array(mixed, dtype=int)]))

    @cached_property
    def places(self) -> dict[str, int]:
        """Position of each pool by its name."""
        return {pool.name: i for i, pool in enumerate(self.problem.pools)}

    def place(self, pool: str) -> int:
        """Position of the pool of this name."""
        return self.places[pool]


def tables(problem: SelectionProblem) -> Tables:
    """The problem as arrays, indexed by position."""
    places = {pool.name: i for i, pool in enumerate(problem.pools)}
    names = {name: i for i, name in enumerate(problem.workloads)}
    shape = problem.horizon.shape
    options = problem.options
    need = np.zeros((len(options), *shape))
    for i, option in enumerate(options):
        need[i] = option.need
    carbon = _carbon(problem)
    return Tables(
        problem=problem,
        hour_h=problem.horizon.hour_s / HOUR,
        workload=np.array([names[o.workload] for o in options], dtype=np.int64),
        pool=np.array([places[o.pool] for o in options], dtype=np.int64),
        need=need,
        orders=_orders(problem, places),
        burst=_terms(problem, "on_demand", places=places),
        spot=_terms(problem, "spot", places=places),
        shares=_shares(problem, places),
        work=np.array([w.n_work for w in problem.deferrable]).reshape(-1, *shape[:2]),
        carbon=carbon,
        least_carbon=carbon,
    )


def compress(full: Tables, cluster: Ints) -> Tables:
    """Hours merged into clusters by their means, weighted by length."""
    n_clusters = int(cluster.max()) + 1
    share = np.zeros((len(cluster), n_clusters))
    share[np.arange(len(cluster)), cluster] = full.hour_h
    hour_h = share.sum(axis=0)
    share /= hour_h
    least = [full.least_carbon[:, cluster == k].min(axis=1) for k in range(n_clusters)]
    return replace(
        full,
        hour_h=hour_h,
        need=full.need @ share,
        carbon=full.carbon @ share,
        least_carbon=np.stack(least, axis=1),
    )


def _orders(problem: SelectionProblem, places: dict[str, int]) -> Orders:
    n_scenarios, n_periods, _ = problem.horizon.shape
    n_shared = problem.horizon.n_shared_periods
    n_shared = n_periods if n_shared is None else n_shared
    rows = []
    for i, terms in enumerate(problem.terms):
        if not terms.is_committed:
            continue
        for period in range(n_periods - terms.n_lead_periods):
            first = period + terms.n_lead_periods
            term = terms.n_term_periods or n_periods
            last = min(n_periods, first + term)
            branches = [-1] if period < n_shared or n_scenarios == 1 else range(n_scenarios)
            rows += [(i, places[terms.pool], period, s, first, last) for s in branches]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    return Orders(*columns)


def _terms(problem: SelectionProblem, purchase: str, *, places: dict[str, int]) -> Terms:
    n_scenarios, n_periods, _ = problem.horizon.shape
    chosen = [i for i, terms in enumerate(problem.terms) if terms.purchase == purchase]
    usd_per_h = np.zeros((len(chosen), n_scenarios, n_periods))
    for row, i in enumerate(chosen):
        usd_per_h[row] = problem.terms[i].usd_per_node_h * price_ratio(problem, i)
    quotas = [problem.terms[i].n_nodes_max for i in chosen]
    return Terms(
        index=np.array(chosen, dtype=np.int64),
        pool=np.array([places[problem.terms[i].pool] for i in chosen], dtype=np.int64),
        n_max=np.array([np.inf if quota is None else quota for quota in quotas], dtype=float),
        useful=np.array([problem.terms[i].useful_frac for i in chosen], dtype=float),
        usd_per_h=usd_per_h,
    )


def price_ratio(problem: SelectionProblem, terms: int) -> Floats:
    """What multiplies the prices of the terms, [scenario, period]."""
    given = problem.terms[terms].price_ratio
    return np.ones(problem.horizon.shape[:2]) if given is None else given


def _shares(problem: SelectionProblem, places: dict[str, int]) -> Shares:
    rows = [
        (i, places[option.pool], option.n_work_per_accelerator_h, work.may_use_spot)
        for i, work in enumerate(problem.deferrable)
        for option in work.options
    ]
    columns = np.array(rows, dtype=float).reshape(-1, 4).T
    work, pool, rate, may_spot = columns
    return Shares(work.astype(int), pool.astype(int), rate, may_spot.astype(int))


def _carbon(problem: SelectionProblem) -> Floats:
    n_hours = problem.horizon.shape[2]
    carbon = np.full((len(problem.pools), n_hours), np.nan)
    for row, pool in zip(carbon, problem.pools, strict=True):
        if pool.carbon_kg_per_j is not None:
            row[:] = pool.carbon_kg_per_j
    return carbon
