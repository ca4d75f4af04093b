"""What a run says, measured as asked: after its warm-up, against its objective.

What is asked of a simulation, before anything is computed: every fault at once.
"""

import math
from dataclasses import replace

from gpuplan.domain.hardware.catalog import AcceleratorChoice
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.outcome import Outcome, ServingStatistics, StreamedOutcome
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.errors import InputError, Problem, one
from gpuplan.inputs.step_times import read_step_times
from gpuplan.simulation.serving.statistics import statistics_of
from gpuplan.studies.inference.admission import SGLANG

MOST_REPLICAS = 65_536
LEAST_BIN_S = 0.001
ROUTERS = ("least_outstanding", "round_robin", "power_of_two", "prefix_affinity", "session")


def judged(outcome: Outcome, request: SimulateRequest) -> ServingStatistics:
    """The run's measures; InputError where the warm-up leaves nothing to measure."""
    found = statistics_of(outcome, warmup_s=request.warmup_s, slo=request.slo)
    check_measured(found, outcome)
    if request.warmup_s is None and found.is_overloaded:
        return _uncut(outcome, request)
    return found


def _uncut(outcome: Outcome, request: SimulateRequest) -> ServingStatistics:
    """A queue that grows has no steady part, even where a cut would make its mean surer."""
    whole = statistics_of(outcome, warmup_s=0.0, slo=request.slo)
    note = "nothing cut: the fleet is overloaded"
    warmup = replace(whole.delivery.warmup, is_automatic=True, is_settled=False, note=note)
    return replace(whole, delivery=replace(whole.delivery, warmup=warmup))


def check_measured(found: ServingStatistics, outcome: Outcome | StreamedOutcome) -> None:
    """A warm-up as long as the arrivals would pass for a fleet that serves nobody."""
    warmup = found.delivery.warmup
    if warmup.cut_s > 0 and warmup.n_requests >= outcome.n_requests:
        span_s = outcome.totals.span_s
        what = f"{warmup.cut_s:g} s of a run of {span_s:,.1f} s leave no request to measure"
        raise one(InputError, "simulate", "--warmup", what, "cut less, or run longer")


def check_request(request: SimulateRequest) -> None:
    """Figures that no run could have; InputError with all of them."""
    problems = []
    if not 1 <= request.n_replicas <= MOST_REPLICAS:
        fix = f"must be 1 to {MOST_REPLICAS:,}"
        problems.append(Problem("--replicas", f"got {request.n_replicas}", fix))
    if not (math.isfinite(request.bin_s) and request.bin_s >= LEAST_BIN_S):
        fix = f"give seconds from {LEAST_BIN_S:g} on, e.g. 60"
        problems.append(Problem("--bin-s", f"got {request.bin_s:g}", fix))
    if request.router not in ROUTERS:
        what, fix = f"got {request.router!r}", f"use one of {', '.join(ROUTERS)}"
        problems.append(Problem("--router", what, fix))
    if problems:
        raise InputError("simulate", problems)


def has_own_steps(request: SimulateRequest) -> bool:
    """Step times are the user's, not predicted."""
    replica = None if request.scheduler is None else request.scheduler.replica
    return replica is not None and replica.steps is not None


def with_steps_read(request: SimulateRequest) -> SimulateRequest:
    """The file of step times read; InputError where a layout has none of its own."""
    scheduler = request.scheduler
    replica = None if scheduler is None else scheduler.replica
    if scheduler is None or replica is None or replica.steps is None:
        return request
    is_apart = replica.pp > 1 and request.engine == SGLANG
    if replica.dp > 1 or is_apart or scheduler.batching is not None:
        what = "with --dp, SGLang's stages, or static or dynamic batching"
        raise one(InputError, "simulate", "--step-time", what, "time one engine without them")
    if not isinstance(replica.steps, str):
        return request
    replica = replace(replica, steps=read_step_times(replica.steps))
    return replace(request, scheduler=replace(scheduler, replica=replica))


def unused_accelerators(choice: AcceleratorChoice, layout: ServingLayout) -> list[Assumption]:
    """Accelerators that were named for a replica and have no part in it are told: who pays?"""
    n_named, n_used = choice.n_accelerators, layout.n_accelerators
    if n_named in (1, n_used):
        return []
    value = f"{n_used} of the {n_named} that were named"
    why = "the layout decides what a replica uses and is paid for; others are not simulated"
    change = "--tp, --pp, --dp or --replicas"
    return [Assumption(what="accelerators of a replica", value=value, why=why, change=change)]
