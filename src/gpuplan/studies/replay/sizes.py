"""The same stream against fleets of several sizes: the smallest that holds, and the best balance.

All sizes see the same requests, so they differ by merit, not by luck.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt
from typing import NamedTuple

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome, SloTargets
from gpuplan.domain.simulation.simulation import (
    CurveRequest,
    FleetSizeCurve,
    FleetTried,
    PreparedFleet,
    SimulateRequest,
    SmallestFleet,
)
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.errors import InputError, Problem
from gpuplan.execution.cases import OnProgress, map_cases
from gpuplan.simulation.serving.statistics import statistics_of
from gpuplan.studies.replay.routed import routed_outcome

MOST_REPLICAS = 4096


class Stream(NamedTuple):
    """What every size is given."""

    requests: Requests
    fleet: Fleet
    router: str
    slo: SloTargets
    n_accelerators: int  # of one replica
    n_engines: int  # of one replica
    blocks: PrefixBlocks | None = None  # text of the prompts, where it is known


def tried(stream: Stream, n_replicas: int) -> FleetTried:
    """One size, replayed."""
    fleet = replace(
        stream.fleet,
        n_engines=n_replicas * stream.n_engines,
        router=stream.router if n_replicas * stream.n_engines > 1 else "round_robin",
    )
    outcome = routed_outcome(stream.requests, fleet, blocks=stream.blocks)
    paid_s = outcome.paid_s / stream.n_engines * stream.n_accelerators
    return tried_point(outcome, n_replicas, stream.slo, paid_s=paid_s)


def tried_point(outcome: Outcome, n_replicas: int, slo: SloTargets, *, paid_s: float) -> FleetTried:
    """What one size did, paid for so many accelerator-seconds."""
    found = statistics_of(outcome, slo=slo)
    return FleetTried(
        n_replicas=n_replicas,
        precision_frac=found.precision_frac,
        recall_frac=found.recall_frac,
        busy_frac=found.busy_frac,
        ttft_p99_s=found.ttft.p99_s if found.ttft else None,
        is_overloaded=found.is_overloaded,
        paid_accelerator_s=paid_s,
        useful_accelerator_s=paid_s * found.precision_frac,
        n_late=round((1.0 - found.recall_frac) * outcome.n_requests),
    )


def smallest_holding(
    ready: PreparedFleet,
    requests: Requests,
    *,
    router: str,
    slo: SloTargets | None,
    blocks: PrefixBlocks | None = None,
) -> SmallestFleet:
    """The fewest replicas that are not overloaded and keep the objective, found by replaying."""
    stream = _stream(ready, requests, router, slo or SloTargets())._replace(blocks=blocks)
    n_given = ready.fleet.n_engines // ready.setup.n_engines
    return smallest(lambda n: tried(stream, n), stream.slo, n_given=n_given)


def smallest(run: Callable[[int], FleetTried], slo: SloTargets, *, n_given: int) -> SmallestFleet:
    """The fewest replicas whose run holds; the one below them was tried and does not."""
    n_most = MOST_REPLICAS
    n_first = min(max(1, n_given), n_most)
    is_enough = partial(holds, slo=slo)
    return first_enough(run, is_enough, criterion(slo), n_first=n_first, n_most=n_most)


def first_enough(
    run: Callable[[int], FleetTried],
    is_enough: Callable[[FleetTried], bool],
    aim: str,
    *,
    n_first: int,
    n_most: int,
    n_below: int = 0,
) -> SmallestFleet:
    """Doubling finds a size that is enough, halving the gap finds the first above `n_below`."""
    known: dict[int, FleetTried] = {}

    def is_held(n: int) -> bool:
        known[n] = run(n)
        return is_enough(known[n])

    low, high = n_below, n_first
    while not is_held(high) and high < n_most:
        low, high = high, min(2 * high, n_most)
    is_found = is_enough(known[high])
    while is_found and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_held(middle) else (middle, high)
    return SmallestFleet(
        n_replicas=known[high].n_replicas if is_found else None,
        criterion=aim,
        tried=tuple(known[n] for n in sorted(known)),
    )


def fleet_curve(
    ready: PreparedFleet,
    requests: Requests,
    curve: CurveRequest,
    *,
    request: SimulateRequest | None = None,
    blocks: PrefixBlocks | None = None,
    on_progress: OnProgress | None = None,
) -> FleetSizeCurve:
    """Precision and recall over the fleet size, and the size with the greatest F that keeps up."""
    _check(curve)
    request = request or SimulateRequest()
    stream = _stream(ready, requests, request.router, request.slo or SloTargets())._replace(
        blocks=blocks
    )
    sizes = sorted(set(curve.sizes))
    points = tuple(
        map_cases(tried, sizes, shared=stream, n_workers=curve.n_workers, on_progress=on_progress)
    )
    each_s = _useful_s(points, len(requests))
    beta = sqrt(curve.delay_usd_per_request / (curve.waste_usd_per_accelerator_s * each_s))
    useful_s = [each_s * (len(requests) - point.n_late) for point in points]
    precision = tuple(u / p.paid_accelerator_s for u, p in zip(useful_s, points, strict=True))
    f_frac = tuple(
        f_measure(share, point.recall_frac, beta)
        for share, point in zip(precision, points, strict=True)
    )
    return FleetSizeCurve(
        setup=ready.setup,
        slo=stream.slo,
        points=points,
        waste_usd_per_accelerator_s=curve.waste_usd_per_accelerator_s,
        delay_usd_per_request=curve.delay_usd_per_request,
        useful_accelerator_s_per_request=each_s,
        precision_frac=precision,
        beta_ratio=beta,
        f_frac=f_frac,
        cost_usd=tuple(
            _cost_usd(point, u, curve) for u, point in zip(useful_s, points, strict=True)
        ),
        # A growing queue breaks every SLO in a longer run: a short one must not recommend it.
        best=max(
            range(len(points)),
            key=lambda k: (not points[k].is_overloaded, f_frac[k], -points[k].n_replicas),
        ),
        assumptions=(*ready.assumptions, _free(stream.slo))
        if not stream.slo.is_given
        else ready.assumptions,
    )


def f_measure(precision_frac: float, recall_frac: float, beta: float) -> float:
    """(1 + β²)·P·R / (β²·P + R): missed work weighs β² times wasted time [VanRijsbergen1979]."""
    below = beta**2 * precision_frac + recall_frac
    return (1.0 + beta**2) * precision_frac * recall_frac / below if below > 0 else 0.0


def _useful_s(points: Sequence[FleetTried], n_requests: int) -> float:
    """Accelerator time that a kept request takes in the size that makes the most of it.

    An engine that runs a small batch is busy all the time and yet wasteful: what a larger batch
    would have saved is waste too.
    """
    each = [
        p.useful_accelerator_s / (n_requests - p.n_late) for p in points if p.n_late < n_requests
    ]
    if not each:
        what = f"no request is within SLO in any fleet of up to {points[-1].n_replicas} replicas"
        fix = "loosen the objective, or try larger fleets"
        raise InputError("simulate", [Problem("--sweep-replicas", what, fix)])
    return min(each)


def _cost_usd(point: FleetTried, useful_s: float, request: CurveRequest) -> float:
    waste_usd = request.waste_usd_per_accelerator_s * (point.paid_accelerator_s - useful_s)
    return waste_usd + request.delay_usd_per_request * point.n_late


def _stream(ready: PreparedFleet, requests: Requests, router: str, slo: SloTargets) -> Stream:
    layout = ready.setup.layout
    return Stream(requests, ready.fleet, router, slo, layout.n_accelerators, ready.setup.n_engines)


def holds(point: FleetTried, slo: SloTargets) -> bool:
    """The queue does not grow, and the objective is kept where there is one."""
    return not point.is_overloaded and (not slo.is_given or point.recall_frac >= slo.kept_frac)


def criterion(slo: SloTargets) -> str:
    """What a fleet must do to hold."""
    if not slo.is_given:
        return "the queue does not grow"
    return f"the queue does not grow, and {100 * slo.kept_frac:g} % of requests keep the objective"


def _free(slo: SloTargets) -> Assumption:
    return Assumption(
        what="objective",
        value="none",
        why="every request that is served counts as within SLO",
        change="--slo-ttft-ms, --slo-tpot-ms, --slo-e2e-s",
    )


def _check(request: CurveRequest) -> None:
    problems, sizes = [], request.sizes
    if not sizes or min(sizes) < 1 or max(sizes) > MOST_REPLICAS:
        what, fix = f"got {list(sizes)[:5]}", f"use sizes from 1 to {MOST_REPLICAS:,}, e.g. 1..12"
        problems.append(Problem("--sweep-replicas", what, fix))
    for flag, value in (
        ("--cost-waste", request.waste_usd_per_accelerator_s),
        ("--cost-delay", request.delay_usd_per_request),
    ):
        if not 0 < value < float("inf"):
            problems.append(Problem(flag, f"got {value:g}", "must be above 0 USD, and finite"))
    if problems:
        raise InputError("simulate", problems)
