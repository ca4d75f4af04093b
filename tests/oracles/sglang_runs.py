"""Streams for SGLang's rules: recorded ones, how ours are run, and where two answers differ."""

import gzip
import json
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
    PrefillFirst,
    StepTable,
)
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.simulation.serving.run import simulate_serving

RECORDED = Path(__file__).parent / "sglang" / "recorded.json.gz"
MEASURED = RECORDED.parent / "fresh.json"  # written by tools/check_sglang.py
NEW, OLD = "0.5.23", "0.5.21"
COLUMNS = ("arrive_s", "n_in", "n_out", "n_max", "group", "shared")
RATES = AttentionRates(
    flop_per_s=1.0, bytes_per_s=1.0, peak_flop_per_s=1e9, peak_bytes_per_s=1e9, serial_frac=0.0
)
CLOSE_S = 1e-7

Case = dict[str, Any]


def recorded() -> dict[str, Any]:
    """Cases by name, and answers by version and name."""
    found = json.loads(gzip.decompress(RECORDED.read_bytes()))
    for case in found["cases"].values():
        case["requests"] = found["requests"][case["requests"]]
    return found


def columns_of(requests: list[dict[str, Any]]) -> list[list[float]]:
    """Requests of the plain rules as columns; what is not given is none."""
    blank = {"n_max": 0, "group": -1, "shared": 0}
    return [[r.get(name, blank.get(name)) for r in requests] for name in COLUMNS]


def _most_tokens(case: Case) -> int:
    limits, (_, n_in, n_out, *_) = case["limits"], case["requests"]
    # Without chunks a batch ends after the prompt that reaches the limit.
    whole = limits["max_prefill_tokens"] + int(np.add(n_in, n_out).max())
    return max(limits["chunk_tokens"] or whole, limits["max_sequences"])


def _table(case: Case) -> StepTable:
    """step + token * tokens + context * context of decodes + pair * pairs of prompts."""
    cost, n = case["cost"], np.arange(_most_tokens(case) + 1)
    none, rows = floats(np.zeros(len(n))), floats(np.zeros(case["limits"]["max_sequences"] + 1))
    work = AttentionWork(
        decode_flop=cost["context_s"], window_decode_flop=0.0, prefill_flop=cost["pair_s"],
        window_prefill_flop=0.0, scan_flop=0.0, cache_bytes=0.0, window_cache_bytes=0.0,
        state_bytes=0.0, window_tokens=0.0,
    )  # fmt: skip
    return StepTable(
        token_device_s=floats(cost["token_s"] * n), token_arithmetic_s=none, token_memory_s=none,
        token_link_s=none, row_device_s=rows, row_arithmetic_s=rows, attention=work, rates=RATES,
        host_s=cost["step_s"], host_sequence_s=0.0,
    )  # fmt: skip


def requests_in(case: Case) -> Requests:
    """The stream with what every request asks for: the answer, unless it ends by itself."""
    arrive_s, n_in, n_out, n_max, group, shared = case["requests"]
    asked = n_max if case["ends"] == "eos" else n_out
    grouping = Grouping(prefix_group=group, prefix_tokens=shared, max_tokens=asked)
    return requests_of(arrive_s, n_in, n_out, grouping=grouping)


def fleet_in(case: Case, *, version: str = NEW, n_engines: int = 1, router: str = "round_robin"):
    """The engines with the case's limits and step times."""
    given, page = case["limits"], case["limits"]["page_tokens"]
    rules = PrefillFirst(
        chunk_tokens=given["chunk_tokens"],
        max_prefill_tokens=given["max_prefill_tokens"],
        is_mixed=given["mixes"],
        is_longest_first=given["policy"] == "lpm",
        conservativeness_ratio=given.get("conservativeness", 1.0),
        ignores_eos=case["ends"] == "length",
        knows_ends=version != OLD,
    )
    limits = EngineLimits(
        max_batch_tokens=_most_tokens(case),
        max_sequences=given["max_sequences"],
        n_blocks=given["n_tokens"] // page,
        block_tokens=page,
        caches_prefixes=given["caches_prefixes"],
        admission=Admission(is_ahead=given["is_ahead"], prefill_first=rules),
    )
    return Fleet(limits=limits, table=_table(case), n_engines=n_engines, router=router)


def ours(case: Case, *, version: str = NEW, method: str = "jump") -> dict[str, Any]:
    """What the simulator makes of a case, in the form of the recorded answers."""
    requests = requests_in(case)
    found = simulate_serving(requests, fleet_in(case, version=version), method=method)
    times, arrive_s = found.times, requests.arrive_s
    assert not found.refused
    return {
        "first_s": arrive_s + times.ttft_s,
        "end_s": arrive_s + times.e2e_s,
        "n_preemptions": times.n_preemptions,
        "n_steps": found.totals.n_steps,
        "hits": times.n_cached_tokens,
    }


def differing(mine: dict[str, Any], true: dict[str, Any]) -> list[str]:
    """Names of what differs in any request."""
    names = [
        name
        for name in ("first_s", "end_s")
        if not np.allclose(mine[name], true[name], rtol=1e-9, atol=CLOSE_S)
    ]
    counts = ("n_preemptions", "n_steps", "hits")
    return names + [name for name in counts if not np.array_equal(mine[name], true[name])]
