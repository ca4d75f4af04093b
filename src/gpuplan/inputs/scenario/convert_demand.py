"""From the file's units to base units: arrivals, request shapes and limits."""

from gpuplan.domain.scenario.demand import (
    Arrivals,
    LatencyLimit,
    LatencyMetric,
    LengthShape,
    LoadStep,
    RequestShape,
    Slo,
    Statistic,
    TokenLengths,
)
from gpuplan.errors import InvariantError, one
from gpuplan.inputs.documents.document import KeyPath, show_path
from gpuplan.inputs.scenario.assumptions import (
    ACTIVE_FRAC,
    PEAK_TO_MEAN_OF_DAY,
    REQUESTS_PER_USER_PER_H,
    Assumptions,
)
from gpuplan.inputs.scenario.check_workload import (
    length_mean,
    lognormal_sigma,
    peak_rates,
    peak_to_mean,
)
from gpuplan.inputs.scenario.convert_site import range_of
from gpuplan.inputs.schema.workload import (
    DemandSpec,
    LengthSpec,
    LoadStepSpec,
    OnlineSpec,
    RequestSpec,
    SloSpec,
)
from gpuplan.units import DAY, HOUR, MS, WEEK

LIMITS: dict[str, tuple[LatencyMetric, Statistic, float]] = {
    "ttft_p50_ms": ("ttft", "p50", MS),
    "ttft_p95_ms": ("ttft", "p95", MS),
    "ttft_p99_ms": ("ttft", "p99", MS),
    "tpot_mean_ms": ("tpot", "mean", MS),
    "tpot_p95_ms": ("tpot", "p95", MS),
    "tpot_p99_ms": ("tpot", "p99", MS),
    "itl_p95_ms": ("itl", "p95", MS),
    "itl_p99_ms": ("itl", "p99", MS),
    "e2e_p50_s": ("e2e", "p50", 1.0),
    "e2e_p95_s": ("e2e", "p95", 1.0),
    "e2e_p99_s": ("e2e", "p99", 1.0),
}


def arrivals(spec: OnlineSpec, path: KeyPath, assumptions: Assumptions) -> Arrivals:
    """When requests come; what had to be assumed is noted."""
    demand = spec.demand
    _note_users(demand, path, assumptions)
    load_steps = steps(demand.load_duration, (*path, "load_duration"), assumptions)
    peak, mean = _rates_from_steps(load_steps)
    rates = peak_rates(spec)
    if rates:
        ratio = _peak_to_mean(demand, path, assumptions)
        peak = next(iter(rates.values()))
        is_daily = demand.requests_per_day is not None
        mean = (demand.requests_per_day or 0) / DAY if is_daily else peak / ratio
    return Arrivals(
        peak_requests_per_s=peak,
        mean_requests_per_s=mean,
        burstiness_ratio=demand.burstiness_cv,
        n_users=demand.users,
        n_concurrent=demand.concurrent_requests,
        hourly_profile=tuple(demand.hourly_profile or ()),
        steps=load_steps,
        trace=demand.trace,
    )


def _note_users(spec: DemandSpec, path: KeyPath, assumptions: Assumptions) -> None:
    if spec.users is None:
        return
    if spec.active_frac is None:
        why = "a planning figure, not a measurement; demand is in proportion to it"
        what = "Share of users active at the peak"
        assumptions.add((*path, "active_frac"), ACTIVE_FRAC, why, what=what)
    if spec.requests_per_user_per_h is None:
        why = "a planning figure: one request in six minutes; demand is in proportion to it"
        at = (*path, "requests_per_user_per_h")
        what = "Requests of one active user in an hour"
        assumptions.add(at, REQUESTS_PER_USER_PER_H, why, what=what)


def _peak_to_mean(spec: DemandSpec, path: KeyPath, assumptions: Assumptions) -> float:
    known = peak_to_mean(spec)
    if known is not None:
        return known
    at = (*path, "peak_to_mean")
    if spec.requests_per_day is not None:
        why = "a day's sum hides its peak; public traces of services lie between 1.7 and 6.7"
        assumptions.add(at, PEAK_TO_MEAN_OF_DAY, why, what="Peak rate over mean rate")
        return PEAK_TO_MEAN_OF_DAY
    why = "only the peak is given, so it is taken to last: no valley is counted on to save money"
    assumptions.add(at, 1.0, why, what="Peak rate over mean rate")
    return 1.0


def steps(
    specs: list[LoadStepSpec] | None, path: KeyPath, assumptions: Assumptions
) -> tuple[LoadStep, ...]:
    """A load-duration curve, lowest load first."""
    if not specs:
        return ()
    why = "a load-duration curve counts in each step all hours with at least that load"
    assumptions.add(path, "cumulative", why, what="How the hours of the steps are counted")
    idle_h = 168 - max(spec.hours_per_week for spec in specs)
    if idle_h > 0:
        why = "the steps leave these hours of the week out"
        assumptions.add(path, f"{idle_h:g} h", why, what="Hours of a week without load")
    ordered = sorted(specs, key=lambda spec: spec.requests_per_s or spec.accelerators or 0)
    return tuple(
        LoadStep(
            held_s=spec.hours_per_week * HOUR,
            requests_per_s=spec.requests_per_s,
            n_accelerators=spec.accelerators,
        )
        for spec in ordered
    )


def _rates_from_steps(load_steps: tuple[LoadStep, ...]) -> tuple[float | None, float | None]:
    """Peak and mean of the curve: the area under it over the week."""
    rates = [step.requests_per_s for step in load_steps if step.requests_per_s is not None]
    if not rates:
        return None, None
    below, requests = 0.0, 0.0
    for step, rate in zip(load_steps, rates, strict=True):
        requests += (rate - below) * step.held_s
        below = rate
    return rates[-1], requests / WEEK


def request(spec: RequestSpec, path: KeyPath, assumptions: Assumptions) -> RequestShape:
    """What one request looks like."""
    return RequestShape(
        input=_lengths(spec.input_tokens, (*path, "input_tokens"), assumptions),
        output=_lengths(spec.output_tokens, (*path, "output_tokens"), assumptions),
        prefix_hit_frac=range_of(spec.prefix_hit_frac),
        n_turns=spec.turns,
        think_s=spec.think_time_s,
    )


def _lengths(spec: LengthSpec, path: KeyPath, assumptions: Assumptions) -> TokenLengths:
    mean = length_mean(spec)
    if mean is None:
        fix = "this is a fault of the program; please report it"
        raise one(InvariantError, "scenario", show_path(path), "checked, yet without mean", fix)
    shape = _shape(spec, path, assumptions)
    if spec.mean is None:
        why = f"mean of the {shape} distribution through the figures given"
        assumptions.add((*path, "mean"), mean, why, what="Mean length in tokens")
    return TokenLengths(
        shape=shape,
        mean_tokens=mean,
        p50_tokens=spec.p50,
        p95_tokens=spec.p95,
        p99_tokens=spec.p99,
        max_tokens=spec.max,
        spread_ratio=spec.cv,
    )


def _shape(spec: LengthSpec, path: KeyPath, assumptions: Assumptions) -> LengthShape:
    if spec.distribution is not None:
        return spec.distribution
    has_spread = spec.cv is not None or lognormal_sigma(spec) > 0
    shape: LengthShape = "lognormal" if has_spread else "fixed"
    why = "no percentiles are given, so every request is as long as the mean"
    if has_spread:
        why = "prompt and answer lengths have long tails"
    assumptions.add((*path, "distribution"), shape, why, what="Shape of the lengths")
    return shape


def slo(spec: SloSpec) -> Slo:
    """What the service promises, in seconds."""
    given = [(getattr(spec, name), limit) for name, limit in LIMITS.items()]
    limits = tuple(
        LatencyLimit(metric=metric, statistic=statistic, limit_s=value * unit)
        for value, (metric, statistic, unit) in given
        if value is not None
    )
    return Slo(limits=limits, availability_frac=spec.availability_frac)
