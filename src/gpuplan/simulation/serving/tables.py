"""A step table as the arrays that kernels read."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.engine import EngineLimits, StepTable
from gpuplan.errors import InputError, Problem, one
from gpuplan.simulation.serving.kernels.engine import cost
from gpuplan.simulation.serving.kernels.engine.cost import N_LINES, N_MIX, N_REGIMES, SCALE
from gpuplan.simulation.serving.kernels.engine.state import NONE

# Above any context: attention without a window. Products with a batch stay exact.
NO_WINDOW = 1 << 40
LONGEST_STEP_S = 15.0  # sums of many steps must stay within the clock's integers


class KernelTables(NamedTuple):
    """Fixed parts and slopes of decode steps, and floats for steps that read prompts."""

    lines: Ints
    slopes: Ints
    tokens_s: Floats
    rows_s: Floats
    mix: Floats
    window: int


class _Same:
    """A table that equals itself alone: what is known of it is found by identity."""

    __slots__ = ("table",)

    def __init__(self, table: StepTable) -> None:
        self.table = table

    def __hash__(self) -> int:
        return id(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.table is self.table


def kernel_tables(table: StepTable, limits: EngineLimits) -> KernelTables:
    """Arrays for one engine; InputError where the table cannot be summed exactly.

    Kernels only read them, and one deployment is run many times: the last few are kept.
    """
    n_checked = 1 if limits.drafts is None else round(limits.drafts.checked_tokens)
    n_tokens = limits.n_blocks * limits.block_tokens
    known = {
        "tokens": (len(table.token_device_s) - 1, limits.max_batch_tokens),
        "sequences": (len(table.row_device_s) - 1, limits.max_sequences),
    }
    short = [
        Problem("step table", f"ends at {n:,} {what}", f"iterations reach {most:,}: give so many")
        for what, (n, most) in known.items()
        if n < most
    ]
    if short:
        raise InputError("simulate", short)
    return _kernel_tables(_Same(table), limits.max_sequences, n_checked, n_tokens)


@lru_cache(maxsize=16)
def _kernel_tables(
    same: _Same, max_sequences: int, n_checked: int, n_cache_tokens: int
) -> KernelTables:
    table = same.table
    if table.rates.serial_frac > 1.0:
        raise one(InputError, "simulate", "serial_frac", "above 1", "use a share of at most 1")
    lines_s, slopes_s = _lines(table, max_sequences, n_checked)
    window = _window(table)
    if window == NO_WINDOW:
        lines_s[1], slopes_s[1] = lines_s[0], slopes_s[0]
    most = lines_s.max() + slopes_s.max() * n_cache_tokens
    if not most < LONGEST_STEP_S:
        what = f"the longest takes {most:.0f} s"
        fix = f"limit sequences or cache so that it stays below {LONGEST_STEP_S:.0f} s"
        raise one(InputError, "simulate", "iteration", what, fix)
    lines = np.rint(lines_s * SCALE).astype(np.int64)
    slopes = np.rint(slopes_s * SCALE).astype(np.int64)
    tokens_s = (table.token_device_s, table.token_arithmetic_s, table.token_memory_s)
    return KernelTables(
        lines=_with_sole(lines, slopes),
        slopes=slopes,
        tokens_s=np.stack([*tokens_s, table.token_link_s], axis=1),
        rows_s=np.stack([table.row_device_s, table.row_arithmetic_s], axis=1),
        mix=_mix(table),
        window=window,
    )


def _with_sole(lines: Ints, slopes: Ints) -> Ints:
    """Rows by sequences, and in each the one line that no other exceeds at any context."""
    rows = np.moveaxis(lines, 1, 2)
    is_steepest = slopes == slopes.max(axis=1, keepdims=True)
    is_sole = (rows == rows.max(axis=2, keepdims=True)) & is_steepest[:, None]
    sole = np.where(is_sole.any(axis=2), is_sole.argmax(axis=2), NONE)
    return np.ascontiguousarray(np.concatenate([rows, sole[:, :, None]], axis=2))


def _window(table: StepTable) -> int:
    work = table.attention
    if not (work.window_decode_flop or work.window_cache_bytes or work.window_prefill_flop):
        return NO_WINDOW
    return int(min(work.window_tokens, NO_WINDOW))


def _mix(table: StepTable) -> Floats:
    work, rates = table.attention, table.rates
    mix = np.zeros(N_MIX)
    mix[cost.DECODE_FLOP], mix[cost.WINDOW_DECODE_FLOP] = work.decode_flop, work.window_decode_flop
    mix[cost.PREFILL_FLOP] = work.prefill_flop
    mix[cost.WINDOW_PREFILL_FLOP] = work.window_prefill_flop
    mix[cost.SCAN_FLOP] = work.scan_flop + work.prefix_decode_flop
    mix[cost.PROMPT_SCAN_FLOP] = work.scan_flop + work.prefix_prefill_flop
    mix[cost.STATE_BYTES] = work.state_bytes
    mix[cost.CACHE_BYTES], mix[cost.WINDOW_CACHE_BYTES] = work.cache_bytes, work.window_cache_bytes
    mix[cost.DEVICE_S_PER_FLOP] = 1 / rates.flop_per_s
    mix[cost.DEVICE_S_PER_BYTE] = 1 / rates.bytes_per_s
    mix[cost.PEAK_S_PER_FLOP] = 1 / rates.peak_flop_per_s
    mix[cost.PEAK_S_PER_BYTE] = 1 / rates.peak_bytes_per_s
    mix[cost.SERIAL_FRAC], mix[cost.PROMPT_FLOOR_S] = rates.serial_frac, table.prompt_floor_s
    mix[cost.HOST_S], mix[cost.HOST_SEQUENCE_S] = table.host_s, table.host_sequence_s
    return mix


def _lines(table: StepTable, max_sequences: int, n_checked: int) -> tuple[Floats, Floats]:
    """Seconds by number of sequences, and seconds per token of context, per regime and line.

    Every sequence brings so many tokens: its own and the drafted ones.
    """
    n = np.arange(max_sequences + 1, dtype=np.float64)
    part = slice(0, max_sequences * n_checked + 1, n_checked)
    lines, slopes = np.zeros((N_REGIMES, N_LINES, len(n))), np.zeros((N_REGIMES, N_LINES))
    rates, serial = table.rates, table.rates.serial_frac
    device_s = table.token_device_s[part] + table.row_device_s[part]
    arithmetic_s = table.token_arithmetic_s[part] + table.row_arithmetic_s[part]
    for regime in range(N_REGIMES):
        flop, read = _context_work(table, is_beyond=regime == 1)
        flop *= n_checked
        d, r = flop / rates.flop_per_s, read / rates.bytes_per_s
        # max(d, r) + s·min(d, r) is the greater of these two as long as s <= 1.
        both = (
            (device_s, d + serial * r),
            (device_s, r + serial * d),
            (arithmetic_s, flop / rates.peak_flop_per_s),
            (table.token_memory_s[part], read / rates.peak_bytes_per_s),
            (table.token_link_s[part], 0.0 * d),
        )
        for line, (fixed_s, work_s) in enumerate(both):
            host_s = table.host_s + table.host_sequence_s * n
            lines[regime, line] = fixed_s + work_s[0] * n + host_s
            slopes[regime, line] = work_s[1]
    return lines, slopes


def _context_work(table: StepTable, *, is_beyond: bool) -> tuple[Floats, Floats]:
    """Arithmetic and reads of decoding: per sequence, and per token of context."""
    work = table.attention
    scan = work.scan_flop + work.prefix_decode_flop
    if not is_beyond:
        flop = np.array([scan, work.decode_flop + work.window_decode_flop])
        return flop, np.array([work.state_bytes, work.cache_bytes + work.window_cache_bytes])
    window = work.window_tokens
    flop = np.array([scan + work.window_decode_flop * window, work.decode_flop])
    read = np.array([work.state_bytes + work.window_cache_bytes * window, work.cache_bytes])
    return flop, read
