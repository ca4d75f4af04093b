"""SLOs of a plan, in: claims and a fresh replay; out: checks of verdicts, latencies and Little.

Statistics over the replayed requests are reckoned here, with intervals by batch means: requests
that follow each other share their queue, so blocks of them are taken as the draws. A claim and its
replay are two runs of one fleet: they may lie apart as far as the errors of both let them.
"""

from collections.abc import Iterator
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from gpuplan.domain.columns import Floats
from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts, ReplayedRequests
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.verification.claims import (
    Document,
    at_least,
    at_most,
    equal,
    pools_of,
    same,
    same_verdict,
)

WARMUP_FRAC, COOLDOWN_FRAC = 0.2, 0.05  # a fleet that fills, and one that runs empty
N_BATCHES = 8
# The plan's own bound is the 90 % point of Student's law with 9 degrees of freedom above its value.
BOUND_DEVIATIONS = float(stdtrit(9, 0.90))
# Both runs have about 16 degrees of freedom together; a sound plan is refused once in 10,000 times.
N_DEVIATIONS = float(stdtrit(16, 1.0 - 0.5e-4))
# Bursts outlast blocks: twelve runs at a CV of 4 had 1.6 times the deviation that blocks show.
BURST_RATIO = 1.6
MOST_RATIO = 2.0  # of the claimed error to the replay's
# A percentile is an order statistic: between its neighbours, definitions differ by so much.
LEAST_TOLERANCE = 0.02
STATISTICS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class _Slo(NamedTuple):
    """One claimed latency with the limit that the scenario sets."""

    workload: str
    metric: str
    statistic: str
    limit_s: float
    reached_s: float
    error_s: float | None  # deviation of the planner's own run; None: not in the plan

    @property
    def name(self) -> str:
        """Workload, metric and statistic, as the plan writes them."""
        return f"{self.workload} {self.metric} {self.statistic}"


def service_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Verdicts against their own numbers, limits against the scenario, latencies by a replay."""
    slo = document["plan"]["slo"]
    for row in slo["promises"]:
        if row["reached_s"] is not None:
            is_met = row["reached_s"]["value"] <= row["limit_s"] * (1.0 + 1e-9)
            name = f"{row['workload']} {row['what']}: verdict"
            yield same_verdict(name, row["is_kept"], is_met)
    all_met = all(row["is_kept"] for row in slo["promises"])
    yield same_verdict("all SLOs: verdict", slo["is_kept"], all_met)
    for workload in facts.scenario.workloads:
        yield from _requested_checks(document, workload)
        yield from _deadline_checks(document, workload)
    for load in document["load"]:
        yield from _flight_checks(load)
    for name in dict.fromkeys(pool["workload"] for pool in pools_of(document)):
        yield from _replay_checks(document, facts, name)


def _requested_checks(document: Document, workload: Workload) -> Iterator[Check]:
    """Every SLO that the scenario sets stands in the plan, with its own limit."""
    if not isinstance(workload.work, Serving) or workload.capacities:
        return
    rows = {
        row["what"]: row["limit_s"]
        for row in document["plan"]["slo"]["promises"]
        if row["workload"] == workload.name
    }
    for limit in workload.work.slo.limits:
        what = f"{limit.metric} {limit.statistic}"
        name = f"{workload.name} {what}: target"
        if what in rows:
            yield equal(name, rows[what], limit.limit_s, "s")
        else:
            yield same(name, "not in the plan", f"{limit.limit_s:g} s")


def _deadline_checks(document: Document, workload: Workload) -> Iterator[Check]:
    deadline_s = getattr(workload.work, "deadline_s", None)
    for row in document["plan"]["slo"]["promises"]:
        if row["workload"] == workload.name and row["what"] == "deadline" and deadline_s:
            yield equal(f"{workload.name} deadline: target", row["limit_s"], deadline_s, "s")


def _flight_checks(load: Document) -> Iterator[Check]:
    """Little's law: arrivals times residence are in flight."""
    peak, residence = load["peak_requests_per_s"], load["residence_s"]
    if peak is not None and residence is not None and load["n_in_flight"] is not None:
        name = f"{load['workload']}: Little's law"
        yield equal(name, load["n_in_flight"], peak * residence, "requests")
    if peak is not None and load["mean_requests_per_s"] is not None:
        name = f"{load['workload']}: mean within the peak"
        yield at_most(name, load["mean_requests_per_s"], peak, "requests/s", tolerance=1e-9)


def _slos(document: Document, workload: str) -> Iterator[_Slo]:
    for row in document["plan"]["slo"]["promises"]:
        metric, _, statistic = row["what"].partition(" ")
        is_latency = metric in ("ttft", "tpot", "e2e") and row["reached_s"] is not None
        if row["workload"] == workload and is_latency:
            value, bound = row["reached_s"]["value"], row.get("bound_s")
            error_s = None if bound is None else max(0.0, bound - value) / BOUND_DEVIATIONS
            yield _Slo(workload, metric, statistic, row["limit_s"], value, error_s)


def _replay_checks(document: Document, facts: PlanFacts, name: str) -> Iterator[Check]:
    """The planned replicas on draws that the planner never saw."""
    claims = list(_slos(document, name))
    replay = facts.replay(name) if claims else None
    if replay is None:
        return
    # A pool that waits for growth has no part of today's load.
    mine = [pool for pool in pools_of(document) if pool["workload"] == name]
    pools = [pool for pool in mine if pool["use"].get("load_frac", 1.0) > 0]
    serving = sum(pool["n_replicas"] - pool["n_spare_replicas"] for pool in pools)
    yield equal(f"{name} replay: replicas without spares", serving, replay.n_replicas, "replicas")
    n_lost = len(replay.is_finished) - int(np.sum(replay.is_finished))
    yield equal(f"{name} replay: requests without a response", 0, n_lost, "requests")
    burst_ratio = _burst_ratio(facts.scenario.workload(name))
    for claim in claims:
        yield from _latency_checks(claim, replay, burst_ratio)
    yield from _residence_checks(document, name, replay, burst_ratio)


def _burst_ratio(workload: Workload | None) -> float:
    """How much larger deviations are than blocks show; a trace is taken as bursty."""
    if workload is None or not isinstance(workload.work, Serving):
        return 1.0
    arrivals = workload.work.arrivals
    is_bursty = arrivals.trace is not None or arrivals.burstiness_ratio > 1.0
    return BURST_RATIO if is_bursty else 1.0


def _latency_checks(claim: _Slo, replay: ReplayedRequests, burst_ratio: float) -> Iterator[Check]:
    values = _measured(claim.metric, replay)
    if len(values) < 20 * N_BATCHES:
        return
    found = _statistic(values, claim.statistic)
    error_s = _error(values, claim.statistic)
    # Both runs are of one fleet and of like length: a claim is not let off by an error of its own.
    claimed_s = error_s if claim.error_s is None else min(claim.error_s, MOST_RATIO * error_s)
    tolerance = _tolerance(found, hypot(error_s, claimed_s) * burst_ratio)
    tolerance = max(tolerance, _rank_tolerance(values, claim.statistic, found))
    named = f"{claim.name}: fresh replay"
    yield equal(named, claim.reached_s, found, "s", tolerance=tolerance)
    if claim.reached_s <= claim.limit_s:
        limit_s = claim.limit_s
        yield at_least(f"{named} meets the SLO", limit_s, found, "s", tolerance=tolerance)


def _tolerance(found: float, error: float) -> float:
    """How far a claim may lie from what was found, over it, if both differ by chance alone."""
    return max(LEAST_TOLERANCE, N_DEVIATIONS * error / found if found > 0 else 1.0)


def _rank_tolerance(values: Floats, statistic: str, found: float) -> float:
    """As `_tolerance`, by the ranks that chance moves a percentile by: latencies may jump there."""
    share = STATISTICS.get(statistic, 0.0)
    half = N_DEVIATIONS * sqrt(2.0 * share * (1.0 - share) / len(values))  # of both runs
    ends = np.quantile(values, [max(0.0, share - half), min(1.0, share + half)])
    return float(np.abs(ends - found).max()) / found if share and found > 0 else 0.0


def _measured(metric: str, replay: ReplayedRequests) -> Floats:
    """Latencies in steady state; of one-token responses there is no time per token."""
    n = len(replay.arrive_s)
    rows = np.arange(int(WARMUP_FRAC * n), int((1.0 - COOLDOWN_FRAC) * n))
    if metric == "tpot":
        rows = rows[np.asarray(replay.output_tokens)[rows] > 1]
    column = {"ttft": replay.ttft_s, "tpot": replay.tpot_s, "e2e": replay.e2e_s}[metric]
    return np.asarray(column)[rows]


def _statistic(values: Floats, statistic: str) -> float:
    if statistic == "mean":
        return float(values.mean())
    return float(np.quantile(values, STATISTICS[statistic]))


def _error(values: Floats, statistic: str) -> float:
    """The deviation of a statistic of one run, by batch means."""
    means = np.array([_statistic(part, statistic) for part in np.array_split(values, N_BATCHES)])
    return float(means.std(ddof=1) / sqrt(N_BATCHES))


def _residence_checks(
    document: Document, name: str, replay: ReplayedRequests, burst_ratio: float
) -> Iterator[Check]:
    load = next((x for x in document["load"] if x["workload"] == name), None)
    if load is None or load["residence_s"] is None:
        return
    values = _measured("e2e", replay)
    found, error_s = float(values.mean()), sqrt(2.0) * _error(values, "mean")
    named = f"{name}: residence by the fresh replay"
    tolerance = _tolerance(found, error_s * burst_ratio)
    yield equal(named, load["residence_s"], found, "s", tolerance=tolerance)
