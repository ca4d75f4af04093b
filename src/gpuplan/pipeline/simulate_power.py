"""Power of a simulated fleet over time: what its bins did, through the performance room's law."""

from dataclasses import replace

import numpy as np

from gpuplan.calibration.power import busy_frac, power_constants, power_estimate
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.outcome import Outcome, StreamedOutcome
from gpuplan.domain.performance import ServingSetup
from gpuplan.domain.power import Utilization
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.simulation import PowerOverTime
from gpuplan.performance.power import accelerator_power_w
from gpuplan.performance.work import peak_flop_per_s
from gpuplan.pipeline.serving_power import serving_work, touched_params


def power_over_time(
    setup: ServingSetup, outcome: Outcome | StreamedOutcome
) -> PowerOverTime | None:
    """Watts of all accelerators by bins and the energy they come to; None without a limit."""
    if setup.accelerator.power.limit_w is None or outcome.totals.span_s <= 0:
        return None
    use, work = outcome.use, serving_work(setup)
    n_replicas = outcome.n_engines // setup.layout.n_engines
    n_accelerators = setup.layout.n_accelerators * n_replicas
    weight_frac = _weight_frac(setup, outcome)
    running = _running_frac(setup, outcome, work)
    constants = power_constants(setup.accelerator, work)
    ratio = _peak_ratio(setup)
    each_w = []
    shares = (use.busy_frac, use.compute_frac, use.bandwidth_frac)
    span_s = outcome.totals.span_s
    for busy, compute, memory in zip(*(use.covered(s, span_s) for s in shares), strict=True):
        at = Utilization(
            compute_frac=float(compute) * ratio,
            weight_memory_frac=float(memory) * weight_frac,
            other_memory_frac=float(memory) * (1.0 - weight_frac),
            weight_bytes_per_param=_width(setup),
            busy_frac=min(1.0, float(busy) * running),
        )
        each_w.append(accelerator_power_w(setup.accelerator, at, constants))
    return _summed(setup, outcome, floats(np.array(each_w)), n_accelerators=n_accelerators)


def _summed(
    setup: ServingSetup, outcome: Outcome | StreamedOutcome, each_w: Floats, *, n_accelerators: int
) -> PowerOverTime:
    span_s, bin_s = outcome.totals.span_s, outcome.use.bin_s
    lasts_s = np.full(len(each_w), bin_s)
    lasts_s[-1] = outcome.use.last_s(span_s)
    mean_w = float((each_w * lasts_s).sum() / span_s)
    mean = _times(power_estimate(mean_w, setup.accelerator, serving_work(setup)), n_accelerators)
    energy = _times(mean, span_s)
    n_tokens = _output_tokens(outcome)
    return PowerOverTime(
        bin_s=bin_s,
        power_w=floats(each_w * n_accelerators),
        mean_power_w=mean,
        energy_j=energy,
        energy_j_per_output_token=_times(energy, 1.0 / n_tokens) if n_tokens else None,
    )


def _output_tokens(outcome: Outcome | StreamedOutcome) -> int:
    if isinstance(outcome, StreamedOutcome):
        return int(outcome.flow.output_tokens.sum())
    return int(outcome.requests.output_tokens[outcome.finished].sum())


def _running_frac(setup: ServingSetup, outcome: Outcome | StreamedOutcome, work: str) -> float:
    """Share of an iteration in which kernels run, at the mean length of an iteration."""
    if outcome.totals.n_steps == 0:
        return 0.0
    step_s = outcome.totals.busy_s / outcome.totals.n_steps
    return busy_frac(work, step_s=step_s, n_accelerators=setup.layout.n_accelerators)


def _weight_frac(setup: ServingSetup, outcome: Outcome | StreamedOutcome) -> float:
    """Share of the memory traffic that reads weights, over the whole run."""
    totals, use = outcome.totals, outcome.use
    read_s = float(use.bandwidth_frac.sum()) * use.bin_s * outcome.n_engines
    if read_s <= 0:
        return 0.0
    n_running = max(1.0, _output_tokens(outcome) / max(1, totals.n_steps))
    traffic = setup.layout.n_accelerators * setup.accelerator.memory.bytes_per_s
    weights_s = totals.n_steps * touched_params(setup.model, n_running) * _width(setup) / traffic
    return min(1.0, weights_s / read_s)


def _peak_ratio(setup: ServingSetup) -> float:
    """Peak of the weights' precision over the 16-bit peak that the power law counts in."""
    peaks = setup.accelerator.peak_flop_per_s
    sixteen = peaks.get("bf16", peaks.get("fp16", max(peaks.values())))
    storage = setup.storage
    return peak_flop_per_s(setup.accelerator, storage.quantized or storage.base) / sixteen


def _width(setup: ServingSetup) -> float:
    return (setup.storage.quantized or setup.storage.base).stored_bytes


def _times(estimate: Estimate, factor: float) -> Estimate:
    return replace(
        estimate,
        value=estimate.value * factor,
        low=estimate.low * factor,
        high=estimate.high * factor,
    )
