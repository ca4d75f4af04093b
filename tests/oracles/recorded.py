"""Streams that real engines served in simulated time, and the same streams through the package."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.engine import (
    Admission,
    AttentionRates,
    AttentionWork,
    EngineLimits,
    Fleet,
    StepTable,
)
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Grouping, requests_of
from gpuplan.simulation.serving.run import simulate_serving

HERE = Path(__file__).parent
# Streams with draft tokens, stages or groups of layers, kept by tools/check_vllm.py --record.
DRAFTED = HERE / "vllm" / "drafted.json.gz"
# Recorded to a nanosecond.
TOLERANCE_S = 2e-9


@cache
def recorded(name: str) -> dict[str, Any]:
    """Cases and answers of one engine."""
    found: dict[str, Any] = json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))
    return found


def table_of(step: dict[str, float], limits: dict[str, Any]) -> StepTable:
    """step_s + token_s x tokens + context_s x context of decodes + pair_s x prefill pairs."""
    tokens = np.arange(limits["max_batch_tokens"] + 1)
    n_rows = limits["max_sequences"] * (1 + limits.get("n_drafts", 0)) + 1
    nothing, rows = floats(np.zeros(len(tokens))), floats(np.zeros(n_rows))
    return StepTable(
        token_device_s=floats(step["token_s"] * tokens), token_arithmetic_s=nothing,
        token_memory_s=nothing, token_link_s=nothing, row_device_s=rows, row_arithmetic_s=rows,
        attention=AttentionWork(
            decode_flop=step["context_s"], window_decode_flop=0.0, prefill_flop=step["pair_s"],
            window_prefill_flop=0.0, scan_flop=0.0, cache_bytes=0.0, window_cache_bytes=0.0,
            state_bytes=0.0, window_tokens=0.0,
        ),
        rates=AttentionRates(
            flop_per_s=1.0, bytes_per_s=1.0, peak_flop_per_s=1e9, peak_bytes_per_s=1e9,
            serial_frac=0.0,
        ),
        host_s=step["step_s"], host_sequence_s=0.0,
    )  # fmt: skip


def simulated(
    stream: dict[str, Any], step: dict[str, float], admission: Admission, method: str = "jump"
) -> Outcome:
    """The stream through the package's engine with these rules."""
    limits, columns = stream["limits"], list(zip(*stream["requests"], strict=True))
    arrive_s, n_in, n_out, priority, group, shared = columns
    grouping = Grouping(prefix_group=group, prefix_tokens=shared, priority=priority)
    engine = EngineLimits(
        max_batch_tokens=limits["max_batch_tokens"], max_sequences=limits["max_sequences"],
        n_blocks=limits["n_blocks"], block_tokens=limits["block_tokens"],
        long_prefill_tokens=limits["long_prefill_tokens"], scheduling=limits["scheduling"],
        caches_prefixes=limits["caches_prefixes"], admission=admission,
    )  # fmt: skip
    fleet = Fleet(limits=engine, table=table_of(step, limits))
    return simulate_serving(
        requests_of(arrive_s, n_in, n_out, grouping=grouping), fleet, method=method
    )


def n_differing(outcome: Outcome, answer: dict[str, Any]) -> int:
    """Requests whose first token, end or preemptions differ; all, where the steps do."""
    arrive_s, times = outcome.requests.arrive_s, outcome.times
    is_same = np.isclose(arrive_s + times.ttft_s, answer["first_s"], rtol=0, atol=TOLERANCE_S)
    is_same &= np.isclose(arrive_s + times.e2e_s, answer["end_s"], rtol=0, atol=TOLERANCE_S)
    is_same &= times.n_preemptions == np.array(answer["n_preemptions"])
    n_other = int((~is_same).sum())
    return n_other or (0 if outcome.totals.n_steps == answer["n_steps"] else len(arrive_s))
