"""Where a phase of inference sits: arithmetic, bytes and links against the peaks, and the step."""

from gpuplan.domain.inference.prediction import PhasePoint
from gpuplan.performance.kernels.step import (
    StepConstants,
    StepLoad,
    StepWork,
    attention_flop,
    cache_read_bytes,
    device_s,
    n_touched,
    on_fullest,
    step_parts,
    step_time_s,
)


def phase_point(phase: str, work: StepWork, k: StepConstants, load: StepLoad) -> PhasePoint:
    """One iteration of one accelerator under its roofline [Williams2009]."""
    parts = step_parts(work, k, load)
    flop, compute_s = _arithmetic(work, load)
    moved = _moved_bytes(work, k, load)
    step_s = step_time_s(work, k, load)
    return PhasePoint(
        phase=phase,
        n_tokens=round(load.prefill_tokens + load.n_decodes),
        flop=flop,
        traffic_bytes=moved,
        compute_s=compute_s,
        memory_s=moved / work.memory_bytes_per_s,
        link_s=float(parts.exchange_s),
        # All that the device waits for: planning, and launches that outlast its work.
        host_s=float(step_s - device_s(parts)),
        step_s=float(step_s),
    )


def _arithmetic(work: StepWork, load: StepLoad) -> tuple[float, float]:
    """Operations of one accelerator, and their time at the dense peaks of their precisions."""
    m, e = work.matrices, work.experts
    n_all, here = load.prefill_tokens + load.n_decodes, on_fullest(work, load)
    n_here, n_rows = here.prefill_tokens + here.n_decodes, here.n_prefills + here.n_decodes
    parts = [
        (m.quantized_flop * n_here, m.quantized_peak_flop_per_s),
        (m.base_flop * n_here + m.head_flop * n_rows, m.base_peak_flop_per_s),
        (e.flop * e.n_active * n_all, e.peak_flop_per_s),
        (attention_flop(work.mixing, here), work.mixing.peak_flop_per_s),
    ]
    return sum(flop for flop, _ in parts), sum(flop / peak for flop, peak in parts)


def _moved_bytes(work: StepWork, k: StepConstants, load: StepLoad) -> float:
    m, e = work.matrices, work.experts
    n_all = load.prefill_tokens + load.n_decodes
    touched = n_touched(e, n_all, k.expert_evenness)
    weights = m.quantized_bytes + m.base_bytes + m.head_bytes + touched * e.expert_bytes
    return float(weights + cache_read_bytes(work.mixing, on_fullest(work, load)))
