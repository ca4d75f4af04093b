"""Which targets a changed cluster misses: the simulation is the judge, each fleet is run once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.demand.jobs import draw_jobs, fit_jobs
from gpuplan.domain.cluster.cluster import Cluster, SchedulingPolicy
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import ClusterOutcome
from gpuplan.domain.cluster.plan import MissedTarget
from gpuplan.errors import InputError, one
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.compare import NAMED
from gpuplan.studies.cluster.planning.prices import PricedNode
from gpuplan.studies.cluster.planning.quotas import QuotaShares, with_shares
from gpuplan.studies.cluster.waits import team_rows
from gpuplan.units import DAY, HOURS_PER_MONTH

SHORT_FRAC = 1e-3  # of what services reserve: less is the instant of a preemption
LONGEST_S = 14 * DAY  # of a drawn stream
OWN = "as described"


class Fleet(NamedTuple):
    """Nodes of every kind, a policy by name, and a division of the quotas."""

    counts: tuple[int, ...]
    policy: str
    quotas: QuotaShares

    def with_count(self, kind: int, n: int) -> "Fleet":
        """The fleet with another number of nodes of one kind."""
        return self._replace(counts=(*self.counts[:kind], n, *self.counts[kind + 1 :]))


class Verdict(NamedTuple):
    """Targets that a run missed, and the team whose wait is closest to its target."""

    missed: tuple[MissedTarget, ...]
    tightest_team: str
    tightest_ratio: float


class Judge:
    """Runs fleets of a described cluster under the trace and under streams like it."""

    def __init__(
        self, cluster: Cluster, nodes: Sequence[PricedNode], jobs: Jobs, *, n_draws: int, seed: int
    ) -> None:
        self.cluster, self.nodes, self.jobs = cluster, tuple(nodes), jobs
        self.draws = tuple(_draws(jobs, n_draws, seed))
        self._known: dict[tuple[Fleet, int], Verdict] = {}

    def changed(self, fleet: Fleet) -> Cluster:
        """The cluster that the fleet makes; maintenance windows name nodes, and are left out."""
        pairs = zip(self.nodes, fleet.counts, strict=True)
        groups = tuple(replace(node.group, n_nodes=n) for node, n in pairs)
        return replace(
            self.cluster,
            groups=groups,
            teams=with_shares(self.cluster, groups, fleet.quotas),
            policy=policy_of(self.cluster, fleet.policy),
            maintenance=(),
        )

    def usd_per_month(self, counts: Sequence[int]) -> float:
        """What so many nodes of every kind cost."""
        pairs = zip(self.nodes, counts, strict=True)
        return HOURS_PER_MONTH * sum(n * node.usd_per_h.mid for node, n in pairs)

    def missed(self, fleet: Fleet, stream: int = -1) -> tuple[MissedTarget, ...]:
        """Targets that the fleet misses under the trace, or under one of the draws."""
        return self.verdict(fleet, stream).missed

    def verdict(self, fleet: Fleet, stream: int = -1) -> Verdict:
        """What the run of the fleet says; every fleet and stream is run once."""
        key = (fleet, stream)
        if key not in self._known:
            jobs = self.jobs if stream < 0 else self.draws[stream]
            self._known[key] = self._run(fleet, jobs)
        return self._known[key]

    def _run(self, fleet: Fleet, jobs: Jobs) -> Verdict:
        cluster = self.changed(fleet)
        if cluster.n_accelerators == 0:
            unfit = MissedTarget(kind="unfit", who="jobs", n_jobs=len(jobs))
            return Verdict((unfit,), "", 0.0)
        found = simulate_cluster(cluster, jobs, n_bins=1)
        ratios = [
            (row.wait_p90_s / max(row.target_p90_s, 1.0), row.name)
            for row in team_rows(cluster.teams, jobs, found)
            if row.target_p90_s is not None
        ]
        ratio, team = max(ratios, default=(0.0, ""))
        return Verdict(tuple(missed_targets(cluster, jobs, found)), team, ratio)

    def is_met(self, fleet: Fleet) -> bool:
        """Whether the fleet meets every target under the trace."""
        return not self.missed(fleet)

    def met_frac(self, fleet: Fleet, least_frac: float = 0.0) -> float:
        """Share of the draws whose targets are met; stops where the least cannot be reached."""
        n, n_missed = len(self.draws), 0
        for stream in range(n):
            n_missed += bool(self.missed(fleet, stream))
            if 1 - n_missed / n < least_frac:
                break
        return 1 - n_missed / n if n else 1.0

    def often_missed(self, fleet: Fleet) -> str:
        """Whose target most of the draws that miss one miss; empty where none does."""
        who = Counter(
            "deadlines" if one.kind == "deadline" else one.who
            for stream in range(len(self.draws))
            for one in self.missed(fleet, stream)
        )
        return who.most_common(1)[0][0] if who else ""


def policy_of(cluster: Cluster, name: str) -> SchedulingPolicy:
    """The described policy, or one by name with the described placement and depth."""
    if name == OWN:
        return cluster.policy
    own, named = cluster.policy, NAMED[name]
    return replace(
        named, placement=own.placement, depth=own.depth, saves_on_preemption=own.saves_on_preemption
    )


def _draws(jobs: Jobs, n: int, seed: int) -> Iterator[Jobs]:
    """Streams that could have been the trace's, each as long as it, a fortnight at most."""
    span_s = min(jobs.span_s, LONGEST_S)
    if span_s < DAY:
        return
    fitted = fit_jobs(jobs)
    for k in range(n):
        drawn = draw_jobs(fitted, span_s=span_s, week_s=jobs.week_s, seed=seed * 1_000_003 + k)
        if len(drawn):
            yield drawn


def missed_targets(cluster: Cluster, jobs: Jobs, found: ClusterOutcome) -> Iterator[MissedTarget]:
    """Wait targets, services that are short, deadlines, and jobs that fit nowhere."""
    n_never = int(np.isnan(found.jobs.start_s).sum())
    if n_never:
        yield MissedTarget(kind="unfit", who="jobs", n_jobs=n_never)
    for row in team_rows(cluster.teams, jobs, found):
        if row.is_violated and row.target_p90_s is not None:
            yield MissedTarget(
                kind="wait",
                who=row.name,
                wait_p90_s=row.wait_p90_s,
                target_p90_s=row.target_p90_s,
            )
    short, wanted = found.service_short_accelerator_s, found.service_accelerator_s
    if wanted and short > SHORT_FRAC * wanted:
        yield MissedTarget(kind="service", who="services", short_accelerator_s=short)
    yield from _deadlines(cluster, jobs, found)


def _deadlines(cluster: Cluster, jobs: Jobs, found: ClusterOutcome) -> Iterator[MissedTarget]:
    deadline = jobs.terms.deadline_s
    if not len(deadline):
        return
    requested = deadline < 1e299
    if requested.any():
        met = float((found.jobs.end_s[requested] <= deadline[requested]).mean())
        if met < cluster.plan.deadlines_frac:
            least = cluster.plan.deadlines_frac
            yield MissedTarget(kind="deadline", who="jobs", met_frac=met, asked_frac=least)


def policy_choices(cluster: Cluster, jobs: Jobs) -> tuple[str, ...]:
    """The described policy first, then those that suit what the file and the trace say."""
    names = [*cluster.plan.policies]
    if not names:
        names = ["easy", "fair"]
        names += ["kueue"] if any(team.cohort for team in cluster.teams) else []
        names += ["edf"] if len(jobs.terms.deadline_s) else []
        names += ["priority"] if len(np.unique(jobs.terms.priority)) > 1 else []
    unknown = [name for name in names if name not in NAMED]
    if unknown:
        what, fix = f"unknown policy {unknown[0]!r}", f"use one of {', '.join(NAMED)}"
        raise one(InputError, "plan", "plan.policies", what, fix)
    return (OWN, *(name for name in names if policy_of(cluster, name) != cluster.policy))
