"""Simulate without keeping a request: blocks of any source -> engines -> running sums."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from gpuplan.demand.generate import request_blocks
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.demand import Arrivals, RequestShape
from gpuplan.domain.simulation.outcome import RequestTimes, SloTargets, StreamedOutcome
from gpuplan.domain.simulation.simulation import (
    PreparedFleet,
    SimulateRequest,
    SmallestFleet,
    StreamedSimulation,
)
from gpuplan.domain.traffic.drawn import DrawnLoad
from gpuplan.domain.traffic.stream import Requests
from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import InputError, Problem, one
from gpuplan.execution.cases import OnProgress
from gpuplan.inputs.traces.read import TraceStream, stream_trace
from gpuplan.simulation.serving.groups import without_hybrid
from gpuplan.simulation.serving.sketch import ERROR_FRAC
from gpuplan.simulation.serving.stream import ServingStream
from gpuplan.simulation.serving.tally import Spent, Tally
from gpuplan.simulation.serving.text import without_cache
from gpuplan.studies.replay.judge import check_measured
from gpuplan.studies.replay.load import bad_assumed, bad_lines, settled_load
from gpuplan.studies.replay.power import power_over_time
from gpuplan.studies.replay.sizes import smallest_holding
from gpuplan.units import HOUR

N_BLOCK = 200_000
N_FINER = 64
Sink = Callable[[Requests, RequestTimes], None]


class Blocks(NamedTuple):
    """Requests to come, and what is known of them."""

    blocks: Iterator[Requests]
    first: Requests  # the first block: it is among the blocks, too
    n_expected: int | None
    source: str
    assumptions: tuple[Assumption, ...]
    file: TraceStream | None = None  # whose oddities are known when its rows have passed

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was odd about the file so far."""
        return (
            ()
            if self.file is None
            else (*self.file.remarks, *bad_lines(self.file.n_bad, self.file.bad))
        )


def traced_blocks(path: Path, query: TraceQuery | None = None) -> Blocks:
    """A file of any size, block by block; its rows must be in order."""
    file = stream_trace(path, query)
    return _peeked(iter(file), None, "trace", ())._replace(file=file)


def drawn_blocks(load: DrawnLoad, *, seed: int = 0) -> Blocks:
    """A load drawn block by block: Poisson or Gamma gaps, with or without a profile."""
    settled, assumptions = settled_load(load)
    terms = settled.terms
    problems = []
    if settled.law not in ("poisson", "gamma"):
        problems.append(Problem("--arrivals", f"{settled.law} with --stream", "use gamma"))
    if terms is not None and terms.growth_frac_per_month:
        problems.append(Problem("--growth", "with --stream", "give the grown --rate"))
    if problems:
        raise InputError("simulate", problems)
    assert settled.input is not None
    assert settled.output is not None
    rate = settled.requests_per_s or 0.0
    arrivals = Arrivals(
        peak_requests_per_s=rate,
        mean_requests_per_s=rate,
        burstiness_ratio=settled.burstiness_ratio or 1.0,
        hourly_profile=terms.hourly_profile if terms else (),
    )
    shape = RequestShape(
        input=settled.input, output=settled.output, prefix_hit_frac=exactly(0.0), n_turns=1.0
    )
    n = settled.n_requests
    duration_s = _long_enough_s(settled) if settled.duration_s is None else settled.duration_s
    drawn = request_blocks(arrivals, shape, duration_s=duration_s, seed=seed, n_block=N_BLOCK)
    expected = n if n is not None else round(rate * duration_s)
    return _peeked(_first_n(drawn, n), expected, "drawn", assumptions)


def _long_enough_s(load: DrawnLoad) -> float:
    """Time in which as many requests as were asked for come; what is more is cut.

    Eight deviations of the count of a renewal process, and a whole profile, which may begin at
    night.
    """
    n, spread = load.n_requests or 0, load.burstiness_ratio or 1.0
    hours = len(load.terms.hourly_profile) if load.terms else 0
    n_mean = n + 8.0 * spread * math.sqrt(n) + 50.0 * spread**2
    return n_mean / (load.requests_per_s or 1.0) + hours * HOUR


def streamed(
    ready: PreparedFleet,
    coming: Blocks,
    request: SimulateRequest,
    *,
    on_progress: OnProgress | None = None,
    sink: Sink | None = None,
) -> StreamedSimulation:
    """One run; `sink` gets every request that has passed, in order of arrival.

    A queue that outgrows memory ends the run: the fleet is overloaded, and the rest is not asked.
    """
    if request.scheduler is None or request.scheduler.caches_prefixes is None:
        # What a cache holds is not kept in a stream; where no text is shared, nobody misses it.
        bare = replace(ready.fleet, limits=without_cache(ready.fleet.limits))
        stated = tuple(each for each in ready.assumptions if each.what != "prefix caching")
        ready = replace(ready, fleet=bare, assumptions=stated)
    # Of a stream, blocks are counted as those of equal layers.
    stream = ServingStream(
        replace(ready.fleet, limits=without_hybrid(ready.fleet.limits)), bin_s=request.bin_s
    )
    # Finer than the bins that are shown, and folded into them: a short run has a backlog, too.
    tally = Tally(slo=request.slo, warmup_s=request.warmup_s, bin_s=request.bin_s / N_FINER)
    start_s = perf_counter()
    for block in coming.blocks:
        passed = stream.feed(block)
        _take(passed.requests, passed.times, tally, sink)
        if on_progress is not None:
            on_progress(stream.n_submitted)
        if stream.is_full:
            break
    if not stream.is_full:
        passed = stream.finish()
        _take(passed.requests, passed.times, tally, sink)
    outcome = _outcome(ready, coming, stream, tally)
    _check_file(coming, outcome.n_requests)
    check_measured(outcome.statistics, outcome)
    return StreamedSimulation(
        setup=ready.setup,
        fleet=ready.fleet,
        outcome=outcome,
        statistics=outcome.statistics,
        slo=request.slo or SloTargets(),
        wall_s=perf_counter() - start_s,
        flow=outcome.flow,
        power=power_over_time(ready.setup, outcome),
        holding=_holding(ready, coming.first, request)
        if outcome.statistics.is_overloaded
        else None,
    )


def _holding(ready: PreparedFleet, first: Requests, request: SimulateRequest) -> SmallestFleet:
    """The smallest fleet for the first block: no more of the load is kept."""
    smallest = smallest_holding(ready, first, router=request.router, slo=request.slo)
    return replace(
        smallest, criterion=f"{smallest.criterion}; by the first {len(first):,} requests"
    )


def _check_file(coming: Blocks, n_read: int) -> None:
    """Where more lines are bad than good it is another file than it was taken for."""
    file = coming.file
    if file is not None and file.n_bad > n_read:
        what = f"{file.n_bad:,} lines are bad, {n_read:,} are good"
        first = Problem("trace", what, "map its columns, or fix it")
        raise InputError("trace", [first, *file.bad])


def _outcome(
    ready: PreparedFleet, coming: Blocks, stream: ServingStream, tally: Tally
) -> StreamedOutcome:
    tally.close()
    use, totals, n_engines = stream.use(), stream.totals(), ready.fleet.n_engines
    spent = Spent(totals=totals, paid_s=totals.span_s * n_engines, last_s=stream.last_s)
    n_left = stream.n_held
    return StreamedOutcome(
        n_requests=stream.n_submitted,
        n_completed=tally.n_finished,
        n_left=n_left,
        use=use,
        flow=tally.flow(len(use.busy_frac), use.bin_s),
        totals=totals,
        statistics=tally.statistics(spent, n_left=n_left),
        n_engines=n_engines,
        refused=tuple(stream.refused.items()),
        assumptions=(
            *coming.assumptions,
            *_left_out(coming),
            *ready.assumptions,
            _sketched(),
            *_given_up(n_left),
        ),
    )


def _take(requests: Requests, times: RequestTimes, tally: Tally, sink: Sink | None) -> None:
    tally.add(requests, times)
    if sink is not None:
        sink(requests, times)


def _peeked(
    blocks: Iterator[Requests],
    n_expected: int | None,
    source: str,
    assumptions: tuple[Assumption, ...],
) -> Blocks:
    first = next((block for block in blocks if len(block)), None)
    if first is None:
        raise one(InputError, "simulate", "trace", "holds no request", "give at least one")
    return Blocks(chain([first], blocks), first, n_expected, source, assumptions)


def _first_n(blocks: Iterable[Requests], n: int | None) -> Iterator[Requests]:
    left = n
    for block in blocks:
        if left is None:
            yield block
            continue
        yield block.take(np.arange(min(left, len(block))))
        left -= len(block)
        if left <= 0:
            return


def _left_out(coming: Blocks) -> list[Assumption]:
    """What of the file has no part in the run."""
    file = coming.file
    if file is None:
        return []
    found = bad_assumed(file.n_bad, file.bad)
    if file.has_text:
        why = "shared prefixes of prompts are not stored in a stream"
        value, change = "off", "leave out --stream"
        found.append(Assumption(what="prefix caching", value=value, why=why, change=change))
    return found


def _sketched() -> Assumption:
    return Assumption(
        what="percentiles",
        value=f"within {100 * ERROR_FRAC:.2f} %",
        why="a stream keeps counts, not requests; times and means are exact",
        change="leave out --stream",
    )


def _given_up(n_left: int) -> tuple[Assumption, ...]:
    if not n_left:
        return ()
    why = "the queue outgrew memory, so the run was ended there"
    return (Assumption(what="given up", value=f"{n_left:,} left", why=why, change="--replicas"),)
