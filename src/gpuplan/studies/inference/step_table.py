"""Step times as columns for a simulation: the performance room's formula, taken apart by probes.

The formula is a sum of parts that depend on tokens, on sampled rows and on contexts. Each column
is that formula at loads where the other parts vanish; nothing is computed here that it does not
compute, except that limits are told apart by lifting the other two.
"""

import math
from math import inf

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.simulation.engine import (
    AttentionRates,
    AttentionWork,
    LockStep,
    StepTable,
    StepTimes,
)
from gpuplan.performance.kernels.step import (
    ExpertMatrices,
    StepConstants,
    StepLoad,
    StepWork,
    launched_s,
    limit_s,
    step_parts,
)


def own_step_table(steps: StepTimes, *, max_tokens: int, max_sequences: int) -> StepTable:
    """The user's own step times as columns; nothing bounds them."""
    n, known = np.arange(max_tokens + 1, dtype=np.float64), steps.tokens
    curve_s = np.interp(n, known, steps.step_s)
    slope = (steps.step_s[-1] - steps.step_s[-2]) / (known[-1] - known[-2])
    curve_s[n > known[-1]] += slope * (n[n > known[-1]] - known[-1])
    none, no_rows = floats(np.zeros(len(n))), floats(np.zeros(max_sequences + 1))
    work = dict.fromkeys(AttentionWork.__dataclass_fields__, 0.0)
    work |= {"decode_flop": steps.context_s, "prefill_flop": steps.pair_s}
    rates = AttentionRates(
        flop_per_s=1.0, bytes_per_s=1.0, peak_flop_per_s=inf, peak_bytes_per_s=inf, serial_frac=0.0
    )
    return StepTable(
        token_device_s=floats(curve_s),
        token_arithmetic_s=none,
        token_memory_s=none,
        token_link_s=none,
        row_device_s=no_rows,
        row_arithmetic_s=no_rows,
        attention=AttentionWork(**work),
        rates=rates,
        host_s=0.0,
        host_sequence_s=0.0,
    )


def step_table(
    work: StepWork, k: StepConstants, *, max_tokens: int, max_sequences: int, beside_s: float = 0.0
) -> StepTable:
    """Columns up to these many tokens and sampled rows of one iteration.

    Attention replicas that share experts carry equal loads: columns are by what one of them has.
    The host's floor is of an iteration as a whole, of which `beside_s` is not in the columns.
    """
    n_equal = float(work.n_data_parallel)
    tokens = _load(n_equal * np.arange(max_tokens + 1, dtype=np.float64), 0.0)
    rows = _load(0.0, n_equal * np.arange(max_sequences + 1, dtype=np.float64))
    bare = _without_attention(work)
    arithmetic = _lifted(bare, is_memory=True, is_link=True)
    row_arithmetic_s = _column(limit_s(arithmetic, rows, k.expert_evenness), rows.n_prefills)
    return StepTable(
        token_device_s=_device_s(bare, k, tokens, tokens.prefill_tokens),
        token_arithmetic_s=_column(
            limit_s(arithmetic, tokens, k.expert_evenness), tokens.prefill_tokens
        ),
        token_memory_s=_column(
            limit_s(_lifted(bare, is_peak=True, is_link=True), tokens, k.expert_evenness),
            tokens.prefill_tokens,
        ),
        # A host that plans ahead bounds an iteration as a link does: by a floor.
        token_link_s=floats(
            np.maximum(
                _column(
                    limit_s(_lifted(bare, is_peak=True, is_memory=True), tokens, k.expert_evenness),
                    tokens.prefill_tokens,
                ),
                k.host_hidden_frac * k.host_s - beside_s,
            )
        ),
        row_device_s=_above_first(_device_s(bare, k, rows, rows.n_prefills)),
        row_arithmetic_s=_above_first(row_arithmetic_s),
        attention=_attention_work(work),
        rates=_attention_rates(work, k),
        host_s=float((1.0 - k.host_hidden_frac) * k.host_s),
        host_sequence_s=float((1.0 - k.host_hidden_frac) * k.host_sequence_s),
        prompt_floor_s=max(0.0, float(launched_s(work, k)) - beside_s),
    )


def lockstep_of(
    work: StepWork, k: StepConstants, *, layout: ServingLayout, max_tokens: int, max_sequences: int
) -> LockStep | None:
    """How data-parallel ranks that share experts step together; None where there are none.

    Each does everything by itself but the experts and the all-to-all around them.
    """
    if layout.dp == 1:
        return None
    own = work._replace(
        experts=ExpertMatrices(*(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)),
        exchange=work.exchange._replace(n_dispatches=0.0),
    )
    load = _load(np.arange(layout.dp * max_tokens + 1, dtype=np.float64), 0.0)
    whole, alone = step_parts(work, k, load), step_parts(own, k, load)
    together_s = _column(whole.experts_s + whole.exchange_s - alone.exchange_s, load.prefill_tokens)
    most = {"max_tokens": max_tokens, "max_sequences": max_sequences}
    return LockStep(
        n_engines=layout.dp,
        own=step_table(own, k, **most, beside_s=float(together_s[1])),
        shared_s=together_s,
    )


def _load(n_tokens: float | Floats, n_rows: float | Floats) -> StepLoad:
    return StepLoad(n_tokens, 0.0, n_rows, 0.0, 0.0, is_even=1.0)


def _column(values: float | Floats, like: Floats) -> Floats:
    return floats(np.broadcast_to(np.asarray(values, dtype=np.float64), like.shape))


def _above_first(column: Floats) -> Floats:
    """What rows add: the part that is there without any is among the tokens' already."""
    return floats(column - column[0])


def _device_s(work: StepWork, k: StepConstants, load: StepLoad, like: Floats) -> Floats:
    p = step_parts(work, k, load)
    return _column(
        p.matrices_s + p.experts_s + p.activations_s + p.operators_s + p.exchange_s, like
    )


def _without_attention(work: StepWork) -> StepWork:
    """Recurrence costs per token, which is attention's part here."""
    return work._replace(mixing=work.mixing._replace(scan_flop=0.0))


def _lifted(
    work: StepWork, *, is_peak: bool = False, is_memory: bool = False, is_link: bool = False
) -> StepWork:
    """The same work on a device without these limits."""
    if is_peak:
        work = work._replace(
            matrices=work.matrices._replace(
                quantized_peak_flop_per_s=inf, base_peak_flop_per_s=inf
            ),
            experts=work.experts._replace(peak_flop_per_s=inf),
            mixing=work.mixing._replace(peak_flop_per_s=inf),
        )
    if is_memory:
        work = work._replace(memory_bytes_per_s=inf)
    if is_link:
        work = work._replace(exchange=work.exchange._replace(link_bytes_per_s=inf))
    return work


def _attention_work(work: StepWork) -> AttentionWork:
    m = work.mixing
    return AttentionWork(
        decode_flop=float(m.decode_flop),
        window_decode_flop=float(m.limited_decode_flop),
        prefill_flop=float(m.prefill_flop),
        window_prefill_flop=float(m.limited_prefill_flop),
        scan_flop=float(m.scan_flop),
        cache_bytes=float(m.cache_bytes),
        window_cache_bytes=float(m.limited_cache_bytes),
        state_bytes=float(m.state_bytes),
        window_tokens=math.floor(m.limit_tokens) if m.limit_tokens < 2**40 else 2.0**40,
    )


def _attention_rates(work: StepWork, k: StepConstants) -> AttentionRates:
    peak, memory = work.mixing.peak_flop_per_s, work.memory_bytes_per_s
    return AttentionRates(
        flop_per_s=float(peak * k.attention_compute_frac / k.slowdown_frac),
        bytes_per_s=float(memory * k.cache_read_frac / k.slowdown_frac),
        peak_flop_per_s=float(peak),
        peak_bytes_per_s=float(memory),
        serial_frac=float(k.gemm_serial_frac),
    )
