"""Demand of one workload: what a scenario says about arrivals, hours and growth, in figures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.demand.statistics import (
    constant_hours,
    hours_of_profile,
    hours_of_steps,
    periods_of,
    summary,
)
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.sizing import DemandProfile, HourLoads, Periods
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Generic, LoadBand, Serving, Training, Workload
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import InputError, one
from gpuplan.studies.replay.closed_loop import users_of
from gpuplan.units import HOUR, MONTH

ReadTrace = Callable[[Path], Requests]
LEAST_FRAC = 1e-6  # of the peak: below, a band of the load is empty


def demand_of(
    workload: Workload, scenario: Scenario, *, read_trace: ReadTrace | None = None
) -> DemandProfile:
    """The peak, the hours of the week and the years, and how they were found."""
    whole = _whole_demand(workload, scenario, read_trace=read_trace)
    return whole if workload.band is None else _in_band(whole, workload.band)


def _in_band(whole: DemandProfile, band: LoadBand) -> DemandProfile:
    """What lies between two loads, from the first period on in which there is any.

    Hours are those of the highest period: in others that is never less than their true load.
    """
    peak, most = whole.peak_requests_per_s or 0.0, band.high_requests_per_s or np.inf

    def part(load: Floats) -> Floats:
        return floats(np.clip(load, band.low_requests_per_s, most) - band.low_requests_per_s)

    loads = part(floats(peak * whole.periods.load_ratio))
    first = int((loads[0] > LEAST_FRAC * peak).argmax())
    hours = part(floats(peak * whole.periods.load_ratio.max() * whole.hours.load_frac))
    shares = replace(whole.hours, load_frac=floats(hours / hours.max()))
    now, periods = float(loads[0, first]), whole.periods
    return replace(
        whole,
        peak_requests_per_s=now,
        mean_requests_per_s=now * shares.mean_frac,
        hours=shares,
        periods=replace(
            periods,
            start_s=floats(periods.start_s[first:]),
            length_s=floats(periods.length_s[first:]),
            load_ratio=floats(loads[:, first:] / now),
        ),
        lines=(*whole.lines, f"{now:.4g} of them are carried by this fleet{_from(periods, first)}"),
    )


def _from(periods: Periods, first: int) -> str:
    return f" from month {float(periods.start_s[first]) / MONTH + 1:.0f} on" if first else ""


def _whole_demand(
    workload: Workload, scenario: Scenario, *, read_trace: ReadTrace | None
) -> DemandProfile:
    work = workload.work
    periods = periods_of(scenario.growth, scenario.budget.horizon_s)
    if isinstance(work, Serving):
        return _serving(workload, work, periods, read_trace=read_trace)
    if isinstance(work, Batch):
        return _batch(workload, work, periods)
    if isinstance(work, Generic):
        return _generic(workload, work, periods)
    return _training(workload, work, periods)


def _serving(
    workload: Workload, work: Serving, periods: Periods, *, read_trace: ReadTrace | None
) -> DemandProfile:
    arrivals, shape = work.arrivals, work.request
    lines: list[str] = []
    peak, mean = arrivals.peak_requests_per_s, arrivals.mean_requests_per_s
    inputs, outputs = shape.input.mean_tokens, shape.output.mean_tokens
    if arrivals.trace is not None and peak is None:
        observed = summary(_traced(workload, arrivals.trace, read_trace))
        peak, mean = observed.peak_hour_requests_per_s, observed.mean_requests_per_s
        inputs, outputs = observed.input_tokens_per_s / mean, observed.output_tokens_per_s / mean
        lines.append(f"trace {arrivals.trace}: busiest hour {peak:.3g} requests/s")
    if peak is None and arrivals.n_concurrent is None:
        fix = "give users, requests per second, tokens per second or a trace"
        raise one(InputError, "plan", f"{workload.name}.demand", "no rate is known", fix)
    lines += _rate_lines(work, peak, mean)
    n_users = arrivals.n_concurrent if peak is None else None
    if n_users is not None:
        peak = n_users / users_of(work).cycle_s
        mean = peak * _hours(work).mean_frac
    return DemandProfile(
        workload=workload.name,
        unit="requests",
        peak_requests_per_s=peak,
        mean_requests_per_s=mean,
        n_users=n_users,
        input_tokens=inputs,
        output_tokens=outputs,
        hours=_hours(work),
        periods=periods,
        lines=tuple(lines),
        assumptions=_hour_assumptions(work),
    )


def _traced(workload: Workload, trace: str, read_trace: ReadTrace | None) -> Requests:
    if read_trace is None:
        fix = "hand in a reader of traces"
        raise one(InputError, "plan", f"{workload.name}.demand.trace", "cannot be read", fix)
    return read_trace(Path(trace))


def _rate_lines(work: Serving, peak: float | None, mean: float | None) -> list[str]:
    arrivals, lines = work.arrivals, []
    if arrivals.n_users is not None and peak is not None:
        each = HOUR * peak / arrivals.n_users
        lines.append(
            f"{arrivals.n_users:.0f} users x {each:.3g} requests an hour at the peak "
            f"= {peak:.3g} requests/s"
        )
    elif peak is not None:
        lines.append(f"peak {peak:.4g} requests/s")
    if arrivals.n_concurrent is not None:
        lines.append(_loop_line(work, arrivals.n_concurrent))
    if mean is not None and peak is not None and mean < peak:
        lines.append(f"mean {mean:.3g} requests/s, peak over mean {peak / mean:.2g}")
    return lines


def _loop_line(work: Serving, n_users: float) -> str:
    think_s = work.request.think_s or 0.0
    what = f"{n_users:,.0f} clients of a closed loop, {think_s:g} s of think time"
    rate = n_users / users_of(work).cycle_s
    return f"{what}: N = X (R + Z), so {rate:.3g} requests/s where responses just meet the SLOs"


def _hours(work: Serving) -> HourLoads:
    arrivals = work.arrivals
    if arrivals.hourly_profile:
        return hours_of_profile(arrivals.hourly_profile)
    if arrivals.steps:
        return hours_of_steps(arrivals.steps, [s.requests_per_s or 0.0 for s in arrivals.steps])
    return constant_hours()


def _hour_assumptions(work: Serving) -> tuple[Assumption, ...]:
    if work.arrivals.hourly_profile or work.arrivals.steps:
        return ()
    return (
        assume(
            "hours of the day",
            "the peak lasts all day",
            "no hourly profile is given: off-peak hours are not counted on to save money",
            "workloads[].demand.hourly_profile",
        ),
    )


def _batch(workload: Workload, work: Batch, periods: Periods) -> DemandProfile:
    item = work.request.media.item
    if work.docs_per_s is not None:
        rate = work.docs_per_s
        line = f"{rate:.4g} {item}/s, each within {work.deadline_s / HOUR:.3g} h"
    else:
        rate = (work.n_docs or 0.0) / work.deadline_s
        line = (
            f"{work.n_docs:.4g} {item} within {work.deadline_s / HOUR:.3g} h = {rate:.4g} {item}/s"
        )
    return DemandProfile(
        workload=workload.name,
        unit="requests",
        peak_requests_per_s=rate,
        mean_requests_per_s=rate,
        input_tokens=work.request.input.mean_tokens,
        output_tokens=work.request.output.mean_tokens,
        hours=constant_hours(),
        periods=periods,
        lines=(line, "deferrable: it runs in the off-peak hours of others"),
    )


def _generic(workload: Workload, work: Generic, periods: Periods) -> DemandProfile:
    counts = [step.n_accelerators for step in work.steps if step.n_accelerators is not None]
    rate = work.samples_per_s
    if rate is None and work.n_samples is not None and work.deadline_s is not None:
        rate = work.n_samples / work.deadline_s
    n = max(counts) if counts else work.n_accelerators
    if rate is None and n is None:
        fix = "give accelerators, or samples per second, or samples and a deadline"
        raise one(InputError, "plan", f"{workload.name}.work", "no load is known", fix)
    hours = constant_hours()
    if counts and len(counts) == len(work.steps):
        hours = hours_of_steps(work.steps, counts)
    elif work.hourly_profile:
        hours = hours_of_profile(work.hourly_profile)
    line = f"{n:g} accelerators at the peak" if rate is None else f"{rate:.4g} samples/s"
    return DemandProfile(
        workload=workload.name,
        unit="accelerators" if rate is None else "samples",
        peak_requests_per_s=rate,
        n_accelerators=n,
        mean_requests_per_s=None if rate is None else rate * hours.mean_frac,
        hours=hours,
        periods=periods,
        lines=(line,),
    )


def _training(workload: Workload, work: Training, periods: Periods) -> DemandProfile:
    n_tokens = training_tokens(work)
    return DemandProfile(
        workload=workload.name,
        unit="samples",
        input_tokens=n_tokens,
        hours=constant_hours(),
        periods=periods,
        lines=(f"{n_tokens:.4g} tokens in total",),
    )


def training_tokens(work: Training) -> float:
    """Tokens of all epochs together."""
    each = work.n_tokens
    if each is None:
        each = (work.n_samples or 0.0) * work.sequence_tokens
    return each * work.n_epochs
