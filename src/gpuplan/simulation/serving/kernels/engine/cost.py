"""Time of one iteration in exact ticks: what it carries in, fixed-point picoseconds out.

A step that only decodes is the greatest of a few lines in the tokens of context, with integer
coefficients; any number of such steps is summed in closed form. A step that reads prompts is one
evaluation in floating point, rounded once.
"""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part

# Attention and host, all for one engine.
DECODE_FLOP, WINDOW_DECODE_FLOP, SCAN_FLOP = range(3)
CACHE_BYTES, WINDOW_CACHE_BYTES, STATE_BYTES = range(3, 6)
PREFILL_FLOP, WINDOW_PREFILL_FLOP = range(6, 8)
DEVICE_S_PER_FLOP, DEVICE_S_PER_BYTE, PEAK_S_PER_FLOP, PEAK_S_PER_BYTE = range(8, 12)
SERIAL_FRAC, HOST_S, HOST_SEQUENCE_S, PROMPT_FLOOR_S = range(12, 16)
PROMPT_SCAN_FLOP = 16
N_MIX = 17
DEVICE, ARITHMETIC, MEMORY, LINK = range(4)
# Lines of a decode step: arithmetic leads, cache reads lead, and the three limits of the device.
COMPUTE_LINE, READ_LINE, ARITHMETIC_LINE, MEMORY_LINE, LINK_LINE = range(5)
N_LINES = 5
SOLE = 5  # beside the lines: the one that is never below another; -1 where none is
N_REGIMES = 2  # mean context inside the attention window, or beyond it
SCALE = st.TICKS_PER_S * (1 << st.FRAC_BITS)
UNIT_S = 1 / SCALE


@part
def mixed_step_s(e: AnyEngine) -> tuple[float, float, float]:
    """The step that the engine has scheduled; arithmetic and memory at their peaks beside it."""
    s, mix = e.scalar, e.mix
    n_decodes, context = float(s[st.N_DECODES]), float(s[st.CONTEXT])
    n_prefill, pairs = float(s[st.PREFILL_TOKENS]), 0.5 * s[st.PREFILL_PAIRS]
    resident = min(context, n_decodes * e.limit[st.WINDOW])
    observed = min(pairs, n_prefill * e.limit[st.WINDOW])
    decode = mix[DECODE_FLOP] * context + mix[WINDOW_DECODE_FLOP] * resident
    decode += mix[SCAN_FLOP] * n_decodes
    if e.limit[st.CHECKED] != 1:
        decode *= e.limit[st.CHECKED]
    prefill = mix[PREFILL_FLOP] * pairs + mix[WINDOW_PREFILL_FLOP] * observed
    prefill += mix[PROMPT_SCAN_FLOP] * n_prefill
    read = mix[CACHE_BYTES] * context + mix[WINDOW_CACHE_BYTES] * resident
    read += mix[STATE_BYTES] * n_decodes
    n_checked = s[st.N_DECODES] * e.limit[st.CHECKED]
    n_tokens, n_rows = s[st.PREFILL_TOKENS] + n_checked, s[st.N_ENDED] + n_checked
    decode_s, read_s = decode * mix[DEVICE_S_PER_FLOP], read * mix[DEVICE_S_PER_BYTE]
    attention_s = max(decode_s, read_s) + mix[SERIAL_FRAC] * min(decode_s, read_s)
    attention_s += prefill * mix[DEVICE_S_PER_FLOP]
    device_s = e.tokens_s[n_tokens, DEVICE] + e.rows_s[n_rows, 0] + attention_s
    arithmetic_s = e.tokens_s[n_tokens, ARITHMETIC] + e.rows_s[n_rows, 1]
    arithmetic_s += (decode + prefill) * mix[PEAK_S_PER_FLOP]
    memory_s = e.tokens_s[n_tokens, MEMORY] + read * mix[PEAK_S_PER_BYTE]
    # What is known last is compared last.
    longest_s = max(e.tokens_s[n_tokens, LINK], memory_s, arithmetic_s, device_s)
    if n_prefill > 0.0:
        longest_s = max(longest_s, mix[PROMPT_FLOOR_S])
    step_s = longest_s + mix[HOST_S] + mix[HOST_SEQUENCE_S] * (s[st.N_ENDED] + s[st.N_DECODES])
    return step_s, arithmetic_s, memory_s


@part
def ticks(seconds: float) -> int:
    """Fixed-point picoseconds, rounded to even."""
    return int(np.rint(seconds * SCALE))


@part
def decode_line(e: AnyEngine) -> tuple[int, int, int]:
    """What a decode step now costs, the line that says so, and its regime."""
    n, context = e.scalar[st.N_DECODES], e.scalar[st.CONTEXT]
    regime = 1 if context > n * e.limit[st.WINDOW] else 0
    sole = e.lines[regime, n, SOLE]
    if sole >= 0:
        return e.lines[regime, n, sole] + e.slopes[regime, sole] * context, sole, regime
    best, line = e.lines[regime, n, 0] + e.slopes[regime, 0] * context, 0
    for other in range(1, N_LINES):
        value = e.lines[regime, n, other] + e.slopes[regime, other] * context
        if value > best:
            best, line = value, other
    return best, line, regime


@part
def peaks_s(e: AnyEngine, regime: int, k: int, moved: int) -> tuple[float, float]:
    """Seconds that k decode steps would take at peak arithmetic and at peak memory rate.

    `moved` is the sum over these steps of the tokens that each sequence had gained before.
    """
    n, context = e.scalar[st.N_DECODES], e.scalar[st.CONTEXT]
    observed = k * float(context) + n * float(moved)
    arithmetic = k * float(e.lines[regime, n, ARITHMETIC_LINE])
    memory = k * float(e.lines[regime, n, MEMORY_LINE])
    arithmetic += e.slopes[regime, ARITHMETIC_LINE] * observed
    memory += e.slopes[regime, MEMORY_LINE] * observed
    host_s = k * (e.mix[HOST_S] + e.mix[HOST_SEQUENCE_S] * n)  # every line includes it
    return arithmetic * UNIT_S - host_s, memory * UNIT_S - host_s
