"""Rules across the keys of one workload."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gpuplan.domain.model.precision import FORMATS, format_named
from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.documents.problems import Finding, nearest
from gpuplan.inputs.scenario.assumptions import (
    ACTIVE_FRAC,
    PEAK_TO_MEAN_OF_DAY,
    REQUESTS_PER_USER_PER_H,
)
from gpuplan.inputs.schema.keys import Strict
from gpuplan.inputs.schema.workload import (
    BatchInferenceSpec,
    CapacitySpec,
    DemandSpec,
    FinetuningSpec,
    FinetuningWorkloadSpec,
    GenericSpec,
    GenericWorkloadSpec,
    LengthSpec,
    LoadStepSpec,
    ModelSpec,
    OnlineSpec,
    PlainWorkload,
    PretrainingWorkloadSpec,
    RequestSpec,
    SloSpec,
    TrainingSpec,
)
from gpuplan.units import DAY, HOUR, MONTH, WEEK

ALONE = ("concurrent_requests", "load_duration", "trace")  # say all about the load
LOADS = ("users", "requests_per_s", "requests_per_day", "output_tokens_per_s", *ALONE)
AGREEMENT = 0.01
PERIODS_S = {"day": DAY, "week": WEEK, "month": MONTH}
SCHEDULES_S = {
    "hourly": HOUR,
    "daily": DAY,
    "nightly": DAY,
    "weekly": WEEK,
    "monthly": MONTH,
}


def workload_findings(spec: PlainWorkload, path: KeyPath) -> Iterator[Finding]:
    """What contradicts itself within one workload."""
    if spec.model is not None:
        yield from _model(spec.model, (*path, "model"))
    yield from precision_findings(spec.precision, (*path, "precision"))
    if spec.kv_precision is not None:
        yield from precision_findings([spec.kv_precision], (*path, "kv_precision"))
    yield from _capacities(spec.capacity, (*path, "capacity"))
    if isinstance(spec, OnlineSpec):
        yield from _online(spec, path)
    elif isinstance(spec, BatchInferenceSpec):
        yield from _one_of(spec.batch, ("docs_per_day", "docs"), (*path, "batch"))
        yield from _request(spec.request, (*path, "request"))
        yield from _context(spec, path)
    elif isinstance(spec, PretrainingWorkloadSpec | FinetuningWorkloadSpec):
        yield from _training(spec.training, (*path, "training"))
    elif isinstance(spec, GenericWorkloadSpec):
        yield from _generic(spec.work, (*path, "work"))
    yield from _schedule(spec, path)


def precision_findings(names: Sequence[str] | None, path: KeyPath) -> Iterator[Finding]:
    """A finding for every name that is no known number format."""
    for name in names or ():
        if format_named(name) is None:
            guess = nearest(name, list(FORMATS))
            known = f"must be one of {', '.join(FORMATS)}"
            yield Finding(path, f"got {name!r}", f"did you mean {guess}?" if guess else known)


def _given(spec: Strict, names: Sequence[str]) -> list[str]:
    return [name for name in names if getattr(spec, name) is not None]


def _one_of(spec: Strict, names: Sequence[str], path: KeyPath) -> Iterator[Finding]:
    given = _given(spec, names)
    if not given:
        yield Finding(path, "does not state the amount of work", f"add one of {', '.join(names)}")
    elif len(given) > 1:
        yield Finding(path, f"has {' and '.join(given)}", "keep one of them")


def _model(spec: ModelSpec, path: KeyPath) -> Iterator[Finding]:
    if (spec.name is None) == (spec.params_b is None):
        what = "has a name and a size" if spec.name else "has neither a name nor a size"
        yield Finding(path, what, "give name or params_b, one of them")
    if spec.active_params_b is None:
        return
    if spec.params_b is None:
        fix = "remove it: the catalog knows it from the name"
        yield Finding((*path, "active_params_b"), "stands beside a name", fix)
    elif spec.active_params_b > spec.params_b:
        what = f"got {spec.active_params_b:g}"
        yield Finding((*path, "active_params_b"), what, f"must be at most {spec.params_b:g}")


def _capacities(specs: Sequence[CapacitySpec], path: KeyPath) -> Iterator[Finding]:
    rates = ("output_tokens_per_s", "input_tokens_per_s", "requests_per_s", "samples_per_s")
    known: dict[tuple[str, str], int] = {}
    for i, spec in enumerate(specs):
        here = (*path, i)
        given = _given(spec, rates)
        if not given and spec.mfu_frac is None:
            yield Finding(here, "holds no figure", f"add one of {', '.join((*rates, 'mfu_frac'))}")
        if len(given) > 1:
            yield Finding(here, f"has {' and '.join(given)}", "keep the one that you measured")
        if spec.mfu_frac is not None and spec.mfu_frac.low <= 0:
            yield Finding((*here, "mfu_frac"), "got 0", "must be above 0")
        first = known.setdefault((spec.accelerator.lower(), spec.per), i)
        if first != i:
            what = f"{spec.accelerator} was given before, at capacity[{first}]"
            yield Finding((*here, "accelerator"), what, "keep one of them")


def _online(spec: OnlineSpec, path: KeyPath) -> Iterator[Finding]:
    demand = (*path, "demand")
    yield from _loads(spec.demand, demand)
    yield from _rates(spec, demand)
    yield from profile_findings(spec.demand.hourly_profile, (*demand, "hourly_profile"))
    yield from _peak(spec.demand, demand)
    yield from _steps(spec.demand.load_duration, (*demand, "load_duration"))
    yield from _request(spec.request, (*path, "request"))
    yield from _slo(spec.slo, (*path, "slo"))
    yield from _decode(spec, path)
    yield from _context(spec, path)


def _loads(spec: DemandSpec, path: KeyPath) -> Iterator[Finding]:
    given = _given(spec, LOADS)
    alone = [name for name in given if name in ALONE]
    if not given:
        yield Finding(path, "does not state the load", f"add one of {', '.join(LOADS)}")
    if alone and len(given) > 1:
        fix = f"keep {alone[0]} or the others"
        yield Finding(path, f"has {' and '.join(given)}, which may contradict", fix)
    if spec.users is None:
        for name in _given(spec, ("active_frac", "requests_per_user_per_h")):
            yield Finding((*path, name), "stands without users", "add users, or remove it")
    if alone:
        for name in _given(spec, ("peak_to_mean", "hourly_profile")):
            fix = f"remove it: {alone[0]} states when the load is high"
            yield Finding((*path, name), f"stands beside {alone[0]}", fix)


def _rates(spec: OnlineSpec, path: KeyPath) -> Iterator[Finding]:
    """Peak rates by each way that was given; all must agree."""
    rates = peak_rates(spec)
    if len(rates) < 2:
        return
    if max(rates.values()) > (1 + AGREEMENT) * min(rates.values()):
        says = ", ".join(f"{name} says {rate:.4g}" for name, rate in rates.items())
        what = f"contradicts itself about the requests per second at the peak: {says}"
        yield Finding(path, what, "keep one, or make them agree")


def peak_rates(spec: OnlineSpec) -> dict[str, float]:
    """Requests per second at the peak, by each key that says so."""
    demand, rates = spec.demand, {}
    if demand.users is not None:
        active = demand.users * (demand.active_frac or ACTIVE_FRAC)
        per_hour = demand.requests_per_user_per_h or REQUESTS_PER_USER_PER_H
        rates["users"] = active * per_hour / HOUR
    if demand.requests_per_s is not None:
        rates["requests_per_s"] = demand.requests_per_s
    if demand.requests_per_day is not None:
        ratio = peak_to_mean(demand) or PEAK_TO_MEAN_OF_DAY
        rates["requests_per_day"] = demand.requests_per_day / DAY * ratio
    mean_output = length_mean(spec.request.output_tokens)
    if demand.output_tokens_per_s is not None and mean_output:
        rates["output_tokens_per_s"] = demand.output_tokens_per_s / mean_output
    return rates


def peak_to_mean(spec: DemandSpec) -> float | None:
    """Given, or read off the profile; None where neither is."""
    if spec.peak_to_mean is not None:
        return spec.peak_to_mean
    profile = spec.hourly_profile
    total = sum(profile) if profile else 0.0
    return max(profile) * len(profile) / total if profile and total > 0 else None


def length_mean(spec: LengthSpec) -> float | None:
    """Mean tokens: given, or that of the distribution through what is given."""
    if spec.mean is not None:
        return spec.mean
    if spec.distribution == "uniform" and spec.max is not None:
        return spec.max / 2
    if spec.p50 is None:
        return None
    if spec.distribution == "exponential":
        return spec.p50 / math.log(2)
    return spec.p50 * math.exp(lognormal_sigma(spec) ** 2 / 2)


def lognormal_sigma(spec: LengthSpec) -> float:
    """Spread of the logarithm, from the outermost percentile known; 0 where none is."""
    for value, z in ((spec.p99, 2.326348), (spec.p95, 1.644854)):
        if value and spec.p50:
            return max(0.0, math.log(value / spec.p50)) / z
    return 0.0


def profile_findings(profile: Sequence[float] | None, path: KeyPath) -> Iterator[Finding]:
    """Profiles of a wrong length, or of nothing."""
    if profile is None:
        return
    if len(profile) not in (24, 168):
        fix = "must hold 24 (a day) or 168 (a week)"
        yield Finding(path, f"holds {len(profile)} numbers", fix)
    if not any(profile):
        yield Finding(path, "is 0 in every hour", "give the busiest hour a number above 0")


def _peak(spec: DemandSpec, path: KeyPath) -> Iterator[Finding]:
    profile = spec.hourly_profile
    if profile is None or spec.peak_to_mean is None or not any(profile):
        return
    observed = max(profile) * len(profile) / sum(profile)
    # Within the hour the load may still peak above the profile, never below it.
    if spec.peak_to_mean < observed * (1 - AGREEMENT):
        what = f"got {spec.peak_to_mean:g}, but hourly_profile alone reaches {observed:.3g}"
        yield Finding((*path, "peak_to_mean"), what, "raise it, or leave it out")


def _steps(steps: Sequence[LoadStepSpec] | None, path: KeyPath) -> Iterator[Finding]:
    units: set[str] = set()
    for i, step in enumerate(steps or ()):
        given = _given(step, ("requests_per_s", "accelerators"))
        units.update(given)
        if len(given) != 1:
            what = "has two loads" if given else "has no load"
            yield Finding((*path, i), what, "give requests_per_s or accelerators, one of them")
    if len(units) > 1:
        yield Finding(path, "mixes requests_per_s and accelerators", "use one of them throughout")
        return
    ordered = sorted(steps or (), key=lambda s: s.requests_per_s or s.accelerators or 0)
    for lower, higher in pairwise(ordered):
        if higher.hours_per_week > lower.hours_per_week:
            what = f"a higher load lasts {higher.hours_per_week:g} h and a lower one for "
            fix = "count in each step all hours with at least that load"
            yield Finding(path, f"{what}{lower.hours_per_week:g} h", fix)


def _request(spec: RequestSpec, path: KeyPath) -> Iterator[Finding]:
    yield from _length(spec.input_tokens, (*path, "input_tokens"))
    yield from _length(spec.output_tokens, (*path, "output_tokens"))
    if length_mean(spec.input_tokens) == 0:
        yield Finding((*path, "input_tokens"), "got 0", "must be above 0: a request has a prompt")


def _length(spec: LengthSpec, path: KeyPath) -> Iterator[Finding]:
    if length_mean(spec) is None:
        fix = "add mean or p50, or max with distribution: uniform"
        yield Finding(path, "does not state the length", fix)
    yield from _rising(spec, ("p50", "p95", "p99", "max"), path)
    yield from _rising(spec, ("mean", "max"), path)
    is_lognormal = spec.distribution in (None, "lognormal")
    if spec.cv is not None and not is_lognormal:
        yield Finding((*path, "cv"), f"stands beside {spec.distribution}", "it is for lognormal")
    if spec.cv is not None and spec.mean is None:
        yield Finding((*path, "cv"), "stands without mean", "add mean")
    if spec.distribution == "uniform" and spec.max is None:
        yield Finding(path, "uniform without max", "add max")
    if spec.distribution == "lognormal" and spec.cv is None and not lognormal_sigma(spec):
        yield Finding(path, "lognormal without spread", "add cv, or p50 with p95 or p99")


def _rising(spec: Strict, names: Sequence[str], path: KeyPath) -> Iterator[Finding]:
    given = _given(spec, names)
    for low, high in pairwise(given):
        low_value, high_value = getattr(spec, low), getattr(spec, high)
        if low_value > high_value:
            what = f"got {high_value:g}, below {low} with {low_value:g}"
            yield Finding((*path, high), what, f"must be at least {low}")


def _slo(spec: SloSpec, path: KeyPath) -> Iterator[Finding]:
    limits = [name for name in SloSpec.model_fields if name != "availability_frac"]
    if not _given(spec, limits):
        yield Finding(path, "has no latency target", "add one, e.g. ttft_p95_ms: 2000")
    yield from _rising(spec, ("ttft_p50_ms", "ttft_p95_ms", "ttft_p99_ms"), path)
    yield from _rising(spec, ("tpot_p95_ms", "tpot_p99_ms"), path)
    yield from _rising(spec, ("tpot_mean_ms", "tpot_p99_ms"), path)
    yield from _rising(spec, ("itl_p95_ms", "itl_p99_ms"), path)
    yield from _rising(spec, ("e2e_p50_s", "e2e_p95_s", "e2e_p99_s"), path)
    for statistic in ("p50", "p95", "p99"):
        first_ms = getattr(spec, f"ttft_{statistic}_ms")
        whole_s = getattr(spec, f"e2e_{statistic}_s")
        if first_ms is not None and whole_s is not None and whole_s * 1000 < first_ms:
            what = f"got {whole_s:g} s, shorter than the first token's {first_ms:g} ms"
            yield Finding((*path, f"e2e_{statistic}_s"), what, "must be at least that")


def _decode(spec: OnlineSpec, path: KeyPath) -> Iterator[Finding]:
    mean = length_mean(spec.request.output_tokens)
    if mean is None or mean > 1:
        return
    for name in SloSpec.model_fields:
        if name.startswith(("tpot_", "itl_")) and getattr(spec.slo, name) is not None:
            what = f"limits the time between tokens, but output_tokens is {mean:g}"
            yield Finding((*path, "slo", name), what, "limit e2e or ttft instead")
    if mean == 0 and spec.demand.output_tokens_per_s is not None:
        at = (*path, "demand", "output_tokens_per_s")
        yield Finding(at, "counts output, but output_tokens is 0", "give requests_per_s")


def _context(spec: OnlineSpec | BatchInferenceSpec, path: KeyPath) -> Iterator[Finding]:
    means = [length_mean(spec.request.input_tokens), length_mean(spec.request.output_tokens)]
    needed = sum(mean or 0 for mean in means)
    if spec.max_context_tokens is not None and spec.max_context_tokens < needed:
        what = f"got {spec.max_context_tokens}, but a mean request takes {needed:g}"
        yield Finding((*path, "max_context_tokens"), what, f"must be at least {needed:g}")


def _training(spec: TrainingSpec, path: KeyPath) -> Iterator[Finding]:
    yield from _one_of(spec, ("tokens", "samples"), path)
    if spec.mfu_frac is not None and spec.mfu_frac.low <= 0:
        yield Finding((*path, "mfu_frac"), "got 0", "must be above 0")
    per_step, whole = spec.tokens_per_accelerator_per_step, spec.global_batch_tokens
    if whole is not None and whole < spec.sequence_tokens:
        what = f"got {whole:g}, less than one sequence of {spec.sequence_tokens}"
        fix = f"must be at least {spec.sequence_tokens}"
        yield Finding((*path, "global_batch_tokens"), what, fix)
    if per_step is not None and whole is not None and per_step > whole:
        what = f"got {per_step:g}, more than global_batch_tokens with {whole:g}"
        yield Finding((*path, "tokens_per_accelerator_per_step"), what, "must be at most that")
    if isinstance(spec, FinetuningSpec) and spec.method == "full" and spec.lora_rank is not None:
        fix = "remove it, or set method: lora"
        yield Finding((*path, "lora_rank"), "stands beside method: full", fix)


def _generic(spec: GenericSpec, path: KeyPath) -> Iterator[Finding]:
    yield from _one_of(spec, ("accelerators", "samples_per_s", "samples", "load_duration"), path)
    yield from _steps(spec.load_duration, (*path, "load_duration"))
    yield from profile_findings(spec.hourly_profile, (*path, "hourly_profile"))
    for i, step in enumerate(spec.load_duration or ()):
        if step.requests_per_s is not None:
            at = (*path, "load_duration", i, "requests_per_s")
            yield Finding(at, "stands in generic work", "give accelerators")
    if spec.deadline_h is not None and spec.samples is None:
        yield Finding((*path, "deadline_h"), "stands without samples", "add samples, or remove it")


def interval_s(schedule: str) -> float | None:
    """Seconds from the start of a run to that of the next; None where the words are unknown."""
    name = schedule.lower().removeprefix("@")
    n, _, period = name.partition("/")
    if not period:
        return SCHEDULES_S.get(name)
    is_count = n.replace(".", "", 1).isdecimal() and float(n) > 0 and period in PERIODS_S
    return PERIODS_S[period] / float(n) if is_count else None


def deadline_s(spec: PlainWorkload) -> tuple[str, float] | None:
    """The key of the deadline of a run or batch job, and the seconds that it gives."""
    if isinstance(spec, PretrainingWorkloadSpec | FinetuningWorkloadSpec):
        days = spec.training.deadline_days
        return None if days is None else ("training.deadline_days", days * DAY)
    if isinstance(spec, BatchInferenceSpec):
        return "batch.deadline_h", spec.batch.deadline_h * HOUR
    hours = spec.work.deadline_h if isinstance(spec, GenericWorkloadSpec) else None
    return None if hours is None else ("work.deadline_h", hours * HOUR)


def _schedule(spec: PlainWorkload, path: KeyPath) -> Iterator[Finding]:
    """A schedule belongs to what ends, and one run ends before the next begins."""
    if spec.schedule is None:
        return
    at, between_s, due = (*path, "schedule"), interval_s(spec.schedule), deadline_s(spec)
    if between_s is None:
        fix = f"use one of {', '.join(SCHEDULES_S)}, or e.g. 2/week"
        yield Finding(at, f"got {spec.schedule!r}", fix)
    elif not _ends(spec):
        what, fix = (
            "stands beside work without an end",
            "remove it, or give training, docs or samples",
        )
        yield Finding(at, what, fix)
    elif due is not None and due[1] > between_s * (1 + AGREEMENT):
        key, due_s = due
        what = f"got {due_s / HOUR:g} h, but the next run starts after {between_s / HOUR:g} h"
        fix = f"must be at most {between_s / HOUR:g} h: a run ends before the next starts"
        yield Finding((*path, *key.split(".")), what, fix)


def _ends(spec: PlainWorkload) -> bool:
    """Whether it is a run or a batch job."""
    if isinstance(spec, BatchInferenceSpec):
        return spec.batch.docs is not None
    if isinstance(spec, GenericWorkloadSpec):
        return spec.work.samples is not None and spec.work.deadline_h is not None
    return not isinstance(spec, OnlineSpec)
