"""Workloads as nouns: the kind of work, its precisions, and what had to be assumed.

Arrivals, request shapes and SLOs as nouns, with what had to be assumed about them.
"""

from dataclasses import replace
from typing import cast

from gpuplan.domain.model.precision import format_named
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
from gpuplan.domain.scenario.workload import (
    Batch,
    Capacity,
    Generic,
    Schedule,
    Serving,
    Training,
    TrainingMethod,
    Work,
    Workload,
)
from gpuplan.errors import InvariantError, one
from gpuplan.inputs.documents.document import KeyPath, show_path
from gpuplan.inputs.scenario.assumptions import (
    ACTIVE_FRAC,
    LORA_RANK,
    PEAK_TO_MEAN_OF_DAY,
    REQUESTS_PER_USER_PER_H,
    Assumptions,
)
from gpuplan.inputs.scenario.check_workload import (
    interval_s,
    length_mean,
    lognormal_sigma,
    peak_rates,
    peak_to_mean,
)
from gpuplan.inputs.scenario.terms import precision_names
from gpuplan.inputs.schema.nouns import noun_of, range_of
from gpuplan.inputs.schema.workload import (
    BatchInferenceSpec,
    CapacitySpec,
    DemandSpec,
    FinetuningSpec,
    GenericWorkloadSpec,
    LengthSpec,
    LoadStepSpec,
    OnlineSpec,
    PlainWorkload,
    RequestSpec,
    SloSpec,
    TrainingSpec,
)
from gpuplan.units import DAY, HOURS_PER_WEEK, MS, WEEK

RATES = ("output_tokens_per_s", "input_tokens_per_s", "requests_per_s", "samples_per_s")


def workload(spec: PlainWorkload, path: KeyPath, assumptions: Assumptions) -> Workload:
    """One workload; what had to be assumed is noted."""
    _note_precisions(spec, path, assumptions)
    kv_format = format_named(spec.kv_precision) if spec.kv_precision else None
    between_s = interval_s(spec.schedule) if spec.schedule else None
    return noun_of(
        spec,
        Workload,
        work=_due(_work(spec, path, assumptions), between_s, path, assumptions),
        extent=Schedule(interval_s=between_s) if between_s else None,
        precisions=precision_names(spec.precision),
        cache_precision=kv_format.name if kv_format else None,
        capacities=tuple(_capacity(capacity) for capacity in spec.capacity),
    )


def _due(work: Work, between_s: float | None, path: KeyPath, assumptions: Assumptions) -> Work:
    """The work; a run that starts again and again ends before the next one."""
    if between_s is None or not isinstance(work, Training) or work.deadline_s is not None:
        return work
    why = "a run ends before the next one of its schedule starts"
    at = (*path, "training", "deadline_days")
    assumptions.add(at, between_s / DAY, why, what="Deadline of the run")
    return replace(work, deadline_s=between_s)


def _note_precisions(spec: PlainWorkload, path: KeyPath, assumptions: Assumptions) -> None:
    if spec.model is not None and spec.precision is None:
        why = "weights are never quantized unasked: quality is your call"
        what = "Precision of the weights"
        assumptions.add((*path, "precision"), "as published", why, what=what)
    if isinstance(spec, OnlineSpec | BatchInferenceSpec) and spec.kv_precision is None:
        why = "the default of engines: 16 bits, or what the model's configuration asks"
        what = "Precision of the KV cache"
        assumptions.add((*path, "kv_precision"), "as published", why, what=what)


def _work(spec: PlainWorkload, path: KeyPath, assumptions: Assumptions) -> Work:
    if isinstance(spec, OnlineSpec):
        return Serving(
            arrivals=arrivals(spec, (*path, "demand"), assumptions),
            request=request(spec.request, (*path, "request"), assumptions),
            slo=slo(spec.slo),
            max_context_tokens=spec.max_context_tokens,
        )
    if isinstance(spec, BatchInferenceSpec):
        shape = request(spec.request, (*path, "request"), assumptions)
        limit = spec.max_context_tokens
        return noun_of(spec.batch, Batch, request=shape, max_context_tokens=limit)
    if isinstance(spec, GenericWorkloadSpec):
        at = (*path, "work", "load_duration")
        return noun_of(spec.work, Generic, steps=steps(spec.work.load_duration, at, assumptions))
    method, rank = _method(spec.training, (*path, "training"), assumptions)
    return noun_of(spec.training, Training, method=method, lora_rank=rank)


def _capacity(spec: CapacitySpec) -> Capacity:
    given = next((name for name in RATES if getattr(spec, name) is not None), None)
    if given is None:
        return noun_of(spec, Capacity)
    metric, rate = given.removesuffix("_per_s"), range_of(getattr(spec, given))
    return noun_of(spec, Capacity, metric=metric, rate_per_s=rate)


def _method(
    spec: TrainingSpec, path: KeyPath, assumptions: Assumptions
) -> tuple[TrainingMethod, int | None]:
    if not isinstance(spec, FinetuningSpec):
        return "pretraining", None
    if spec.method == "full" or spec.lora_rank is not None:
        return spec.method, spec.lora_rank
    why = "a common rank; adapter memory grows with it and is small"
    assumptions.add((*path, "lora_rank"), LORA_RANK, why, what="Rank of the LoRA adapter")
    return spec.method, LORA_RANK


def arrivals(spec: OnlineSpec, path: KeyPath, assumptions: Assumptions) -> Arrivals:
    """When requests arrive; what had to be assumed is noted."""
    demand = spec.demand
    _note_users(demand, path, assumptions)
    if demand.concurrent_requests is not None and spec.request.think_time_s is None:
        why = "every client asks again at once, as with a benchmark's max concurrency: people who "
        why += "read and type, and agents whose tools take long, need fewer replicas"
        at = (*path[:-1], "request", "think_time_s")
        assumptions.add(at, 0.0, why, what="Think time between response and next request (s)")
    load_steps = steps(demand.load_duration, (*path, "load_duration"), assumptions)
    peak, mean = _rates_from_steps(load_steps)
    rates = peak_rates(spec)
    if rates:
        ratio = _peak_to_mean(demand, path, assumptions)
        peak = next(iter(rates.values()))
        is_daily = demand.requests_per_day is not None
        mean = (demand.requests_per_day or 0) / DAY if is_daily else peak / ratio
    return noun_of(
        demand, Arrivals, peak_requests_per_s=peak, mean_requests_per_s=mean, steps=load_steps
    )


def _note_users(spec: DemandSpec, path: KeyPath, assumptions: Assumptions) -> None:
    if spec.users is None:
        return
    if spec.active_frac is None:
        why = "a planning figure, not a measurement; demand is proportional to it"
        what = "Share of users active at the peak"
        assumptions.add((*path, "active_frac"), ACTIVE_FRAC, why, what=what)
    if spec.requests_per_user_per_h is None:
        why = "a planning figure: one request in six minutes; demand is proportional to it"
        at = (*path, "requests_per_user_per_h")
        what = "Requests per hour of one active user"
        assumptions.add(at, REQUESTS_PER_USER_PER_H, why, what=what)


def _peak_to_mean(spec: DemandSpec, path: KeyPath, assumptions: Assumptions) -> float:
    known = peak_to_mean(spec)
    if known is not None:
        return known
    ratio = 1.0
    why = "only the peak is given, so it is taken to last: no valley is counted on to save money"
    if spec.requests_per_day is not None:
        ratio = PEAK_TO_MEAN_OF_DAY
        why = "a day's total hides its peak; public traces of services lie between 1.7 and 6.7"
    assumptions.add((*path, "peak_to_mean"), ratio, why, what="Peak rate over mean rate")
    return ratio


def steps(
    specs: list[LoadStepSpec] | None, path: KeyPath, assumptions: Assumptions
) -> tuple[LoadStep, ...]:
    """A load-duration curve, lowest load first."""
    if not specs:
        return ()
    why = "a load-duration curve counts in each step all hours with at least that load"
    assumptions.add(path, "cumulative", why, what="How the hours of the steps are counted")
    idle_h = HOURS_PER_WEEK - max(spec.hours_per_week for spec in specs)
    if idle_h > 0:
        why = "no step covers these hours of the week"
        assumptions.add(path, f"{idle_h:g} h", why, what="Hours of a week without load")
    ordered = sorted(specs, key=lambda spec: spec.requests_per_s or spec.accelerators or 0)
    return tuple(noun_of(spec, LoadStep) for spec in ordered)


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
    """The shape of one request; what had to be assumed about its lengths is noted."""
    return noun_of(
        spec,
        RequestShape,
        input=_lengths(spec.input_tokens, (*path, "input_tokens"), assumptions),
        output=_lengths(spec.output_tokens, (*path, "output_tokens"), assumptions),
    )


def _lengths(spec: LengthSpec, path: KeyPath, assumptions: Assumptions) -> TokenLengths:
    mean = length_mean(spec)
    if mean is None:
        fix = "this is a defect of gpuplan; please report it"
        what = "passed the checks without a mean"
        raise one(InvariantError, "scenario", show_path(path), what, fix)
    shape = _shape(spec, path, assumptions)
    if spec.mean is None:
        why = f"mean of the {shape} distribution through the figures given"
        assumptions.add((*path, "mean"), mean, why, what="Mean length in tokens")
    return noun_of(spec, TokenLengths, shape=shape, mean_tokens=mean)


def _shape(spec: LengthSpec, path: KeyPath, assumptions: Assumptions) -> LengthShape:
    if spec.distribution is not None:
        return spec.distribution
    has_spread = spec.cv is not None or lognormal_sigma(spec) > 0
    shape: LengthShape = "lognormal" if has_spread else "near"
    why = "no percentiles are given: within a tenth of the mean, for no two requests are alike"
    if has_spread:
        why = "prompt and output lengths have long tails"
    assumptions.add((*path, "distribution"), shape, why, what="Distribution of the lengths")
    return shape


def slo(spec: SloSpec) -> Slo:
    """The SLOs in seconds: a key such as ttft_p95_ms names metric, statistic and unit."""
    limits = []
    for name, value in spec:
        metric, _, rest = name.partition("_")
        statistic, _, unit = rest.partition("_")
        if value is not None and metric != "availability":
            limit = LatencyLimit(
                metric=cast("LatencyMetric", metric),
                statistic=cast("Statistic", statistic),
                limit_s=value * (MS if unit == "ms" else 1.0),
            )
            limits.append(limit)
    return Slo(limits=tuple(limits), availability_frac=spec.availability_frac)
