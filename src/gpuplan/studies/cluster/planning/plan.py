"""A cluster file and its jobs in; the cheapest nodes, policy and quotas for the targets out."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import NamedTuple

from gpuplan.domain.cluster.answer import ClusterRequest, ClusterSimulation
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.plan import (
    ClusterPlan,
    ClusterPlanRequest,
    FleetRejection,
    FleetRow,
    PlannedNodes,
    PlanOdds,
)
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.errors import InputError, one
from gpuplan.studies.cluster.described import described
from gpuplan.studies.cluster.planning.judge import OWN, Fleet, Judge, policy_choices
from gpuplan.studies.cluster.planning.prices import Priced, priced_nodes
from gpuplan.studies.cluster.planning.quotas import DESCRIBED, quota_choices
from gpuplan.studies.cluster.planning.relaxation import Limits, missed_text, relaxations
from gpuplan.studies.cluster.planning.search import (
    Bounds,
    cheapest_of,
    descended,
    least_of,
    node_bounds,
    rebalanced,
)
from gpuplan.studies.cluster.simulate import answers

USUAL_PROBABILITY_FRAC = 0.8  # of meeting every target, as in other plans


class Search(NamedTuple):
    """What is searched: the judge, bounds, budget and every way to divide and to schedule."""

    judge: Judge
    bounds: Bounds
    budget_usd: float
    ways: tuple[Fleet, ...]  # policy and quotas; counts mean nothing yet
    least_frac: float  # of streams like the trace's that must meet every target

    def is_sure(self, fleet: Fleet) -> bool:
        """Whether the fleet meets every target under the trace and often enough beside it."""
        least, judge = self.least_frac, self.judge
        return judge.is_met(fleet) and judge.met_frac(fleet, least) >= least


class Found(NamedTuple):
    """What the search found."""

    trace: Fleet | None  # the cheapest that the trace alone asks for
    best: Fleet | None  # the same, sure enough


def plan_cluster(request: ClusterPlanRequest) -> ClusterPlan:
    """The plan; raises InputError where the files cannot be read or say no target."""
    cluster, jobs = described(request.cluster_file, request.jobs_file)
    return planned(cluster, jobs, request, priced_nodes(cluster, request))


def planned(
    cluster: Cluster, jobs: Jobs, request: ClusterPlanRequest, priced: Priced
) -> ClusterPlan:
    """The same of nouns."""
    cluster = replace(cluster, seed=request.seed)
    _check(cluster, jobs)
    judge = Judge(cluster, priced.nodes, jobs, n_draws=request.n_draws, seed=request.seed)
    budget = request.budget_usd_per_month or cluster.plan.budget_usd_per_month
    least = request.min_probability_frac
    search = Search(
        judge=judge,
        bounds=node_bounds(judge),
        budget_usd=budget or inf,
        ways=_ways(cluster, jobs, judge),
        least_frac=USUAL_PROBABILITY_FRAC if least is None else least,
    )
    return _answer(search, _found(search), request, priced)


def _check(cluster: Cluster, jobs: Jobs) -> None:
    has_waits = any(team.wait_p90_s is not None for team in cluster.teams)
    if has_waits or cluster.services or len(jobs.terms.deadline_s):
        return
    fix = "give teams a wait_p90_min, jobs a deadline_s, or services"
    raise one(InputError, "plan", "teams", "no target that a fleet could be judged by", fix)


def _ways(cluster: Cluster, jobs: Jobs, judge: Judge) -> tuple[Fleet, ...]:
    none = (0,) * len(judge.nodes)
    return tuple(
        Fleet(none, policy, quotas)
        for policy in policy_choices(cluster, jobs)
        for quotas in quota_choices(cluster, jobs)
    )


def _found(search: Search) -> Found:
    """The described way first; others only where they are cheaper."""
    judge, below = search.judge, search.budget_usd * (1 + 1e-9)
    best = cheapest_of(judge, search.bounds, search.ways, judge.is_met, below)
    if best is None:
        return Found(None, None)
    best = _requoted(search, best) or best
    sure = _sure(search, best)
    if sure is not None:
        sure = descended(judge, search.bounds, sure, search.is_sure, search.ways)
    return Found(best, sure and _simplest(search, sure))


def _simplest(search: Search, fleet: Fleet) -> Fleet:
    """The same nodes under the rules that change least and still do."""
    able = (way._replace(counts=fleet.counts) for way in search.ways)
    return next((other for other in able if search.is_sure(other)), fleet)


def _requoted(search: Search, best: Fleet) -> Fleet | None:
    """A node less of a kind, with quota moved to the teams that then wait too long."""
    if search.judge.cluster.plan.keeps_quotas:
        return None
    usd = search.judge.usd_per_month
    for kind, n in sorted(enumerate(best.counts), key=lambda pair: -pair[1]):
        if n > search.bounds.low[kind]:
            found = rebalanced(search.judge, best.with_count(kind, n - 1))
            if found is not None and usd(found.counts) < usd(best.counts):
                return found
    return None


def _sure(search: Search, best: Fleet) -> Fleet | None:
    """The fleet with as many more nodes of one kind as streams like the trace's ask for."""
    judge, able = search.judge, []
    if search.is_sure(best):
        return best
    for kind, most in enumerate(search.bounds.high):
        n = least_of(judge, best, kind, search.is_sure, most=most)
        if n is not None:
            able.append(best.with_count(kind, n))
    able = [fleet for fleet in able if judge.usd_per_month(fleet.counts) <= search.budget_usd]
    return min(able, key=lambda fleet: judge.usd_per_month(fleet.counts), default=None)


def _answer(
    search: Search, found: Found, request: ClusterPlanRequest, priced: Priced
) -> ClusterPlan:
    judge, requested = search.judge, request.min_probability_frac
    best = found.best
    if best is None and requested is None:
        best = found.trace  # nobody asked for more than the trace; the odds say how sure it is
    odds = PlanOdds(
        n_draws=len(judge.draws),
        asked_frac=search.least_frac,
        met_frac=judge.met_frac(best) if best and judge.draws else None,
        on_trace_usd_per_month=found.trace and judge.usd_per_month(found.trace.counts),
    )
    return ClusterPlan(
        request=request,
        described=judge.cluster,
        nodes=tuple(_nodes(judge, best)) if best else (),
        chosen=best and fleet_row(judge, "plan", best, is_drawn=True),
        simulation=best and _simulated(judge, best, request),
        alternatives=tuple(_alternatives(search, found, best)),
        rejected=(*priced.rejected, *_rejected(search, found)),
        binding=tuple(_binding(search, best)) if best else (),
        relaxations=() if best else _helps(search, is_sure=requested is not None),
        odds=odds,
        assumptions=tuple(_assumptions(search, priced)),
    )


def _helps(search: Search, *, is_sure: bool) -> tuple[str, ...]:
    """Changes that would make a plan: as sure as was asked, where that was asked."""
    holds = search.is_sure if is_sure else search.judge.is_met
    limits = Limits(search.bounds, search.budget_usd)
    return relaxations(search.judge, limits, search.ways, holds)


def _nodes(judge: Judge, fleet: Fleet) -> Iterator[PlannedNodes]:
    now = {group.accelerator: group.n_nodes for group in judge.cluster.groups}
    for node, n in zip(judge.nodes, fleet.counts, strict=True):
        group = node.group
        yield PlannedNodes(
            accelerator=group.accelerator,
            n_nodes=n,
            n_nodes_now=now.get(group.accelerator, 0),
            n_accelerators_per_node=group.n_accelerators_per_node,
            node_usd_per_h=node.usd_per_h,
            source=node.source,
            speed_ratio=group.speed_ratio or 1.0,
            node_max_w=node.max_w,
        )


def fleet_row(judge: Judge, kind: str, fleet: Fleet, *, is_drawn: bool = False) -> FleetRow:
    """The fleet as it is shown."""
    parts = [
        f"{n} × {node.group.accelerator} ×{node.group.n_accelerators_per_node}"
        for node, n in zip(judge.nodes, fleet.counts, strict=True)
        if n
    ]
    has_quotas = any(team.quotas for team in judge.cluster.teams)
    verdict = judge.verdict(fleet)
    return FleetRow(
        kind=kind,
        fleet=" + ".join(parts) or "nothing",
        policy=fleet.policy,
        quotas=fleet.quotas.name if has_quotas else "none",
        usd_per_month=judge.usd_per_month(fleet.counts),
        missed=verdict.missed,
        tightest_team=verdict.tightest_team,
        tightest_ratio=verdict.tightest_ratio,
        met_frac=judge.met_frac(fleet) if is_drawn and judge.draws else None,
        often_missed=judge.often_missed(fleet) if is_drawn else "",
    )


def _simulated(judge: Judge, fleet: Fleet, request: ClusterPlanRequest) -> ClusterSimulation:
    cluster = judge.changed(fleet)
    retained = tuple(group for group in cluster.groups if group.n_nodes)
    return answers(replace(cluster, groups=retained), judge.jobs, ClusterRequest(seed=request.seed))


def _alternatives(search: Search, found: Found, best: Fleet | None) -> Iterator[FleetRow]:
    """The cluster of today, the trace's own fleet, one kind alone, and other policies."""
    judge, now = search.judge, {g.accelerator: g.n_nodes for g in search.judge.cluster.groups}
    today = tuple(now.get(node.group.accelerator, 0) for node in judge.nodes)
    if any(today):
        yield fleet_row(judge, "as described", Fleet(today, OWN, DESCRIBED))
    if best is None:
        return
    if found.trace is not None and found.trace != best:
        yield fleet_row(judge, "for the trace alone", found.trace)
    for kind, node in enumerate(judge.nodes):
        least = best._replace(counts=search.bounds.low)
        n = least_of(judge, least, kind, search.is_sure, most=search.bounds.high[kind])
        only = least.with_count(kind, n) if n is not None else None
        if only is not None and only.counts != best.counts:
            yield fleet_row(judge, f"{node.group.accelerator} alone", only)
    for way in search.ways:
        other = way._replace(counts=best.counts)
        if (other.policy, other.quotas.name) != (best.policy, best.quotas.name):
            yield fleet_row(judge, "same nodes", other)


def _rejected(search: Search, found: Found) -> Iterator[FleetRejection]:
    """Kinds that cannot do it alone, and ways that are no cheaper."""
    judge, way = search.judge, (found.best or found.trace or search.ways[0])
    for kind, node in enumerate(judge.nodes):
        most = way._replace(counts=search.bounds.low).with_count(kind, search.bounds.high[kind])
        missed = judge.missed(most)
        if missed and len(judge.nodes) > 1:
            yield FleetRejection(
                candidate=f"{node.group.accelerator} alone",
                reason=f"even {most.counts[kind]} nodes miss: {missed_text(missed[0])}",
                relaxation="mix it with another kind, or raise nodes.max_nodes",
            )


def _binding(search: Search, best: Fleet) -> Iterator[FleetRow]:
    """What is missed with one node less of each kind."""
    for kind, n in enumerate(best.counts):
        if n > search.bounds.low[kind]:
            fewer = best.with_count(kind, n - 1)
            name = search.judge.nodes[kind].group.accelerator
            yield fleet_row(search.judge, f"one {name} node less", fewer, is_drawn=True)


def _assumptions(search: Search, priced: Priced) -> Iterator[Assumption]:
    for node in priced.nodes:
        yield from node.notes
    judge = search.judge
    if judge.cluster.maintenance:
        why = "windows name nodes of the described cluster"
        yield assume("maintenance windows", "ignored", why, "maintenance")
    days = judge.jobs.span_s / 86400
    why = "the plan is judged by these jobs, and by streams drawn from a generator fitted to them"
    yield assume("demand", f"that of the trace ({days:.1f} days)", why, "--jobs")
