"""Random small runs for the kernels: fleets that can be checked and loads that hurt."""

import numpy as np

from fakes.steps import USUAL, work
from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.engine import (
    Admission,
    AttentionRates,
    AttentionWork,
    BlockRules,
    EngineLimits,
    Fleet,
    StepTable,
)
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.performance.kernels.step import StepLoad, StepWork, step_time_s
from gpuplan.studies.inference.step_table import step_table

NOTHING = AttentionWork(
    decode_flop=0.0, window_decode_flop=0.0, prefill_flop=0.0, window_prefill_flop=0.0,
    scan_flop=0.0, cache_bytes=0.0, window_cache_bytes=0.0, state_bytes=0.0, window_tokens=0.0,
)  # fmt: skip
UNIT_RATES = AttentionRates(
    flop_per_s=1.0, bytes_per_s=1.0, peak_flop_per_s=1.0, peak_bytes_per_s=1.0, serial_frac=0.0
)


def constant_table(step_s: float, *, max_tokens: int, max_sequences: int) -> StepTable:
    """Every iteration takes the same time."""
    none, rows = np.zeros(max_tokens + 1), np.zeros(max_sequences + 1)
    return StepTable(
        token_device_s=floats(none), token_arithmetic_s=floats(none), token_memory_s=floats(none),
        token_link_s=floats(none), row_device_s=floats(rows), row_arithmetic_s=floats(rows),
        attention=NOTHING, rates=UNIT_RATES, host_s=step_s, host_sequence_s=0.0,
    )  # fmt: skip


def limits_of(
    draw: np.random.Generator,
    requests: Requests,
    *,
    is_ahead: bool = False,
    ends_by_eos: bool = False,
    **changes: object,
) -> EngineLimits:
    """From a cache that holds just the largest request to one that holds all."""
    largest = -(-int((requests.input_tokens + requests.output_tokens).max()) // 16)
    n_sequences = int(draw.integers(1, 40))
    values: dict[str, object] = {
        "max_sequences": n_sequences,
        "max_batch_tokens": n_sequences + int(draw.integers(1, 600)),
        "block_tokens": 16,
        "n_blocks": int(largest * draw.choice([1.0, 1.3, 2.0, 5.0, 50.0])),
        "admission": Admission(
            reserves_prompt=bool(draw.integers(0, 2)),
            is_ahead=is_ahead,
            ends_by_eos=is_ahead and ends_by_eos,
            lone_prompt_is_whole=bool(n_sequences % 2),
            blocks=BlockRules(watermark_blocks=n_sequences % 3),
        ),
    }
    return EngineLimits(**(values | changes))  # type: ignore[arg-type]


def stream_of(draw: np.random.Generator, n: int) -> Requests:
    """Arrivals from a trickle to a flood, some at the same instant; answers from one token."""
    rate = 10.0 ** draw.uniform(-1, 4)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    if draw.integers(0, 2):
        arrive_s = np.round(arrive_s, 1)
    inputs = 1 + draw.geometric(1 / float(draw.integers(5, 400)), n)
    outputs = draw.geometric(1 / float(draw.integers(1, 150)), n)
    return requests_of(arrive_s, inputs, outputs)


def fleet_of(limits: EngineLimits, of: StepWork | None = None, **changes: object) -> Fleet:
    """Engines with the iteration time of a small network."""
    table = step_table(
        of or work(), USUAL,
        max_tokens=limits.max_batch_tokens, max_sequences=limits.max_sequences,
    )  # fmt: skip
    return Fleet(limits=limits, table=table, **changes)  # type: ignore[arg-type]


def true_time_s(
    n_prefill: int, pairs: float, n_ended: int, contexts: list[int], of: StepWork
) -> float:
    """The performance room's own answer."""
    load = StepLoad(
        prefill_tokens=float(n_prefill),
        prefill_context_tokens=pairs / n_prefill if n_prefill else 0.0,
        n_prefills=float(n_ended),
        n_decodes=float(len(contexts)),
        context_tokens=sum(contexts) / len(contexts) if contexts else 0.0,
    )
    return float(step_time_s(of, USUAL, load))


def bent_table(draw: np.random.Generator, limits: EngineLimits) -> StepTable:
    """Step times of no real device: every limit rules somewhere, attention has a window."""
    n_tokens, n_rows = limits.max_batch_tokens + 1, limits.max_sequences + 1
    tokens, rows = np.arange(n_tokens), np.arange(n_rows)
    flop, read = 10.0 ** draw.uniform(-7, -5, 2)  # seconds per token of context, at rates of 1
    window = 0.0 if draw.integers(0, 2) else float(draw.integers(5, 300))
    work_of_window = 0.0 if window == 0.0 else 1.0
    return StepTable(
        token_device_s=floats(0.004 + 10.0 ** draw.uniform(-6, -4) * tokens),
        token_arithmetic_s=floats(10.0 ** draw.uniform(-6, -4) * tokens),
        token_memory_s=floats(np.full(n_tokens, draw.uniform(0, 0.01))),
        token_link_s=floats(np.full(n_tokens, draw.uniform(0, 0.02))),
        row_device_s=floats(1e-6 * rows),
        row_arithmetic_s=floats(1e-6 * rows),
        attention=AttentionWork(
            decode_flop=flop, window_decode_flop=work_of_window * flop * draw.uniform(0, 3),
            prefill_flop=flop, window_prefill_flop=work_of_window * flop, scan_flop=flop,
            cache_bytes=read, window_cache_bytes=work_of_window * read * draw.uniform(0, 3),
            state_bytes=10 * read, window_tokens=window,
        ),
        rates=AttentionRates(
            flop_per_s=draw.uniform(0.5, 1), bytes_per_s=draw.uniform(0.5, 1),
            peak_flop_per_s=draw.uniform(0.4, 2), peak_bytes_per_s=draw.uniform(0.4, 2),
            serial_frac=draw.uniform(0, 1),
        ),
        host_s=0.001, host_sequence_s=1e-5, prompt_floor_s=3000 * flop,
    )  # fmt: skip
