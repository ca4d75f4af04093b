"""Power of a simulated fleet over time: what its bins did, through the performance room's law.

What each class of requests felt: the mean of all hides who waits.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.power import LEAST_BUSY_FRAC, busy_frac, power_constants, power_estimate
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.hardware.power import Utilization
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.simulation.fleet import FleetOutcome
from gpuplan.domain.simulation.outcome import (
    ClassStatistics,
    EngineTotals,
    Outcome,
    ServingStatistics,
    SloTargets,
    StreamedOutcome,
    UseOverTime,
)
from gpuplan.domain.simulation.simulation import PowerOverTime
from gpuplan.performance.power import accelerator_power_w
from gpuplan.performance.serving.work import peak_flop_per_s
from gpuplan.simulation.serving.intervals import summary
from gpuplan.simulation.serving.statistics import within_slo
from gpuplan.studies.power.serving import serving_work, touched_params

MOST_CLASSES = 20


class Doing(NamedTuple):
    """What equal engines did in a run."""

    use: UseOverTime
    engine_s: Floats  # that they are on, by whole bins
    totals: EngineTotals
    n_output_tokens: int


def power_over_time(
    setup: ServingSetup, outcome: Outcome | StreamedOutcome
) -> PowerOverTime | None:
    """Watts of all accelerators by bins and the energy they come to; None without a limit."""
    use = outcome.use
    on_s = floats(np.full(len(use.busy_frac), use.bin_s * outcome.n_engines))
    doing = Doing(use, on_s, outcome.totals, _output_tokens(outcome))
    return joint_power([(setup, doing)], n_output_tokens=doing.n_output_tokens)


def fleet_power(setups: Sequence[ServingSetup], found: FleetOutcome) -> PowerOverTime | None:
    """The same of pools whose replicas come and go: what is off or failed draws nothing."""
    outcome = found.outcome
    n_tokens = _output_tokens(outcome)
    n_served = max(1, sum(pool.n_served for pool in found.pools))
    parts = [
        (
            setup,
            Doing(
                pool.use,
                pool.on_s,
                replace(outcome.totals, n_steps=pool.n_steps, busy_s=pool.busy_s),
                round(n_tokens * pool.n_served / n_served),
            ),
        )
        for setup, pool in zip(setups, found.pools, strict=True)
    ]
    return joint_power(parts, n_output_tokens=n_tokens)


def joint_power(
    parts: Sequence[tuple[ServingSetup, Doing]], *, n_output_tokens: int
) -> PowerOverTime | None:
    """Draw and energy of several kinds of engines; None where one's limit is not published."""
    first = parts[0][1]
    span_s, bin_s = first.totals.span_s, first.use.bin_s
    if span_s <= 0 or any(setup.accelerator.power.limit_w is None for setup, _ in parts):
        return None
    lasts_s = np.full(len(first.use.busy_frac), bin_s)
    lasts_s[-1] = first.use.last_s(span_s)
    power_w, energies = np.zeros(len(lasts_s)), []
    for setup, doing in parts:
        each_w = _each_w(setup, doing)
        n_on = doing.engine_s / bin_s * setup.layout.n_accelerators / setup.n_engines
        power_w += each_w * n_on
        energies.append(_energy(setup, each_w, n_on * lasts_s))
    energy = total_estimate(energies)
    return PowerOverTime(
        bin_s=bin_s,
        power_w=floats(power_w),
        mean_power_w=energy.scaled(1.0 / span_s),
        energy_j=energy,
        energy_j_per_output_token=energy.scaled(1.0 / n_output_tokens) if n_output_tokens else None,
    )


def _each_w(setup: ServingSetup, doing: Doing) -> Floats:
    """Draw of one accelerator that is on, by bins."""
    use, work = doing.use, serving_work(setup)
    weight_frac = _weight_frac(setup, doing)
    constants = power_constants(setup.accelerator, work)
    ratio = _peak_ratio(setup)
    requested = ratio * use.compute_frac + use.bandwidth_frac
    working = max(float(use.busy_frac.mean()), LEAST_BUSY_FRAC)
    running = _running_frac(setup, doing.totals, work, asked_frac=float(requested.mean()) / working)
    each_w = []
    shares = (use.busy_frac, use.compute_frac, use.bandwidth_frac)
    span_s = doing.totals.span_s
    for busy, compute, memory in zip(*(use.covered(s, span_s) for s in shares), strict=True):
        at = Utilization(
            compute_frac=float(compute) * ratio,
            weight_memory_frac=float(memory) * weight_frac,
            other_memory_frac=float(memory) * (1.0 - weight_frac),
            weight_bytes_per_param=_width(setup),
            busy_frac=min(1.0, float(busy) * running),
        )
        each_w.append(accelerator_power_w(setup.accelerator, at, constants))
    return floats(each_w)


def _energy(setup: ServingSetup, each_w: Floats, on_s: Floats) -> Estimate:
    """Of accelerators that are on for so long in each bin; the range is that of their mean draw."""
    total_s = float(on_s.sum())
    mean_w = float((each_w * on_s).sum() / total_s) if total_s > 0 else float(each_w.mean())
    return power_estimate(mean_w, setup.accelerator, serving_work(setup)).scaled(total_s)


def total_estimate(parts: Sequence[Estimate]) -> Estimate:
    """The sum; ranges add, as parts err together."""
    return replace(
        parts[0],
        value=sum(part.value for part in parts),
        low=sum(part.low for part in parts),
        high=sum(part.high for part in parts),
        tier=parts[0].tier if len({part.tier for part in parts}) == 1 else "estimated",
    )


def _output_tokens(outcome: Outcome | StreamedOutcome) -> int:
    if isinstance(outcome, StreamedOutcome):
        return int(outcome.flow.output_tokens.sum())
    return int(outcome.requests.output_tokens[outcome.finished].sum())


def _running_frac(
    setup: ServingSetup, totals: EngineTotals, work: str, *, asked_frac: float
) -> float:
    """Share of an iteration in which kernels run, at the mean length of an iteration."""
    if totals.n_steps == 0:
        return 0.0
    step_s = totals.busy_s / totals.n_steps
    n = setup.layout.n_accelerators
    return busy_frac(work, step_s=step_s, n_accelerators=n, asked_frac=asked_frac)


def _weight_frac(setup: ServingSetup, doing: Doing) -> float:
    """Share of the memory traffic that reads weights, over the whole run."""
    n_steps = doing.totals.n_steps
    read_s = float((doing.use.bandwidth_frac * doing.engine_s).sum())
    if read_s <= 0:
        return 0.0
    n_running = max(1.0, doing.n_output_tokens / max(1, n_steps))
    traffic = setup.layout.n_accelerators * setup.accelerator.memory.bytes_per_s
    weights_s = n_steps * touched_params(setup.model, n_running) * _width(setup) / traffic
    return min(1.0, weights_s / read_s)


def _peak_ratio(setup: ServingSetup) -> float:
    """Peak of the weights' precision over the 16-bit peak that the power law counts in."""
    peaks = setup.accelerator.peak_flop_per_s
    sixteen = peaks.get("bf16", peaks.get("fp16", max(peaks.values())))
    storage = setup.storage
    return peak_flop_per_s(setup.accelerator, storage.quantized or storage.base) / sixteen


def _width(setup: ServingSetup) -> float:
    return (setup.storage.quantized or setup.storage.base).stored_bytes


def by_service(
    outcome: Outcome,
    found: ServingStatistics,
    slo: SloTargets,
    *,
    service: Ints,
    names: Sequence[str],
) -> tuple[ClassStatistics, ...]:
    """One class for each service; none where there is one."""
    return _classes(outcome, found, slo, label=service, names=dict(enumerate(names)))


def by_priority(
    outcome: Outcome, found: ServingStatistics, slo: SloTargets
) -> tuple[ClassStatistics, ...]:
    """One class for each priority number; none where all are alike, or nearly all differ."""
    numbers = np.unique(outcome.requests.priority)
    if len(numbers) > MOST_CLASSES:
        return ()
    names = {int(number): f"priority {number}" for number in numbers}
    return _classes(outcome, found, slo, label=outcome.requests.priority, names=names)


def _classes(
    outcome: Outcome,
    found: ServingStatistics,
    slo: SloTargets,
    *,
    label: Ints,
    names: dict[int, str],
) -> tuple[ClassStatistics, ...]:
    if len(names) < 2:
        return ()
    since_s = outcome.requests.arrive_s - outcome.requests.arrive_s[0]
    is_measured = since_s >= found.delivery.warmup.cut_s
    is_kept, times = within_slo(outcome, slo), outcome.times
    classes = []
    for number, name in names.items():
        is_mine = is_measured & (label == number)
        rows = np.flatnonzero(is_mine & (times.is_finished == 1))
        many = rows[outcome.requests.output_tokens[rows] > 1]
        classes.append(
            ClassStatistics(
                name=name,
                n_requests=int(is_mine.sum()),
                n_completed=len(rows),
                recall_frac=float(is_kept[is_mine].mean()) if is_mine.any() else 0.0,
                ttft=summary(times.ttft_s[rows]),
                tpot=summary(times.tpot_s[many]),
                e2e=summary(times.e2e_s[rows]),
            )
        )
    return tuple(classes)
