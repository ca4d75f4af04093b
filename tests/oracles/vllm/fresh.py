"""Random streams for vLLM's own scheduler: every regime by a seed, lengths and limits drawn.

Prompts and responses are runs of distinct tokens, [first token, count]; equal runs are equal text.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

STEP = {"step_s": 0.008, "token_s": 2e-5, "context_s": 4e-8, "pair_s": 1e-9}
MODES = ("sync", "async", "async-eos")
Case = dict[str, Any]
Rows = list[dict[str, Any]]
Draws = np.random.Generator


def drawn(g: Draws, n: int, rate: float, n_in: float, n_out: float, cv: float = 0.8) -> Rows:
    """Poisson arrivals with lognormal lengths; some come together."""
    deviation = np.sqrt(np.log(1 + cv * cv))

    def lengths(mean: float, least: int) -> list[int]:
        values = g.lognormal(np.log(mean) - deviation**2 / 2, deviation, n)
        return [int(one) for one in np.maximum(least, values)]

    gaps = g.exponential(1 / rate, n) * (g.random(n) > 0.1)
    gaps[0] = 0.0
    arrive = np.round(np.cumsum(gaps), 9)
    rows = zip(arrive, lengths(n_in, 2), lengths(n_out, 1), strict=True)
    return [
        {"arrive_s": float(t), "n_in": a, "n_out": b, "priority": 0, "group": -1, "shared": 0}
        for t, a, b in rows
    ]


def limited(rows: Rows, times: float | None = None, **changes: Any) -> dict[str, Any]:
    """Limits of an engine; the cache holds so many of the largest request where `times` is said."""
    block = changes.get("block_tokens", 16)
    largest = max(-(-(one["n_in"] + one["n_out"]) // block) for one in rows)
    return {
        "max_sequences": 128, "max_batch_tokens": 2048, "block_tokens": 16,
        "n_blocks": 20000 if times is None else int(largest * times) + 1,
        "long_prefill_tokens": None, "caches_prefixes": True, "scheduling": "fcfs",
        "reserves_prompt": True, "is_ahead": False,
    } | changes  # fmt: skip


def prioritised(g: Draws, rows: Rows) -> Rows:
    """Four priorities; of those that come together, some are equal."""
    for one in rows:
        one["priority"] = int(g.integers(0, 4))
    return rows


def _tokens(i: int, n: int, kind: int = 0) -> list[int]:
    return [1000 + i * 2_000_000 + kind * 1_000_000, n]


def _first(runs: list[list[int]], n: int) -> list[list[int]]:
    found: list[list[int]] = []
    for first, count in runs:
        taken = min(count, n)
        if taken > 0:
            found.append([first, taken])
        n -= taken
    return found


def sessions(g: Draws, rows: Rows, n_groups: int, cap: int, head: int = 0) -> Rows:
    """Turns begin with what was said before, up to `cap`; all with one system prompt of `head`."""
    last: dict[int, int] = {}
    for i, one in enumerate(rows):
        one["prompt"] = ([_tokens(90_000, head)] if head else []) + [_tokens(i, one["n_in"])]
        one["n_in"] += head
        one["answer"] = [_tokens(i, one["n_out"], 1)]
        k = int(g.integers(-1, n_groups))
        one["group"] = k
        if k >= 0 and k in last:
            said = rows[last[k]]["prompt"] + rows[last[k]]["answer"]
            most = min(sum(n for _, n in said), cap)
            n = most if g.integers(0, 4) else int(g.integers(min(head, most), most + 1))
            new = int(g.integers(5, 200))
            one["shared"] = n
            one["prompt"], one["n_in"] = [*_first(said, n), _tokens(i, new)], n + new
        if k >= 0:
            last[k] = i
    return rows


def system_prompts(g: Draws, rows: Rows, n_systems: int, n_shared: int) -> Rows:
    """Groups whose members all begin with the same tokens."""
    seen: set[int] = set()
    for i, one in enumerate(rows):
        k = int(g.integers(0, n_systems))
        one["prompt"] = [_tokens(90_000 + k, n_shared), _tokens(i, one["n_in"])]
        one["answer"] = [_tokens(i, one["n_out"], 1)]
        one["n_in"] += n_shared
        one["group"], one["shared"] = k, n_shared if k in seen else 0
        seen.add(k)
    return rows


def together(rows: Rows) -> Rows:
    """All come at once."""
    for one in rows:
        one["arrive_s"] = 0.0
    return rows


def some_by_eos(g: Draws, rows: Rows) -> Rows:
    """Half of the responses end before the requested length."""
    for one in rows:
        one["n_max"] = one["n_out"] + int(g.integers(0, 2)) * 500
    return rows


def drafted(g: Draws) -> dict[str, Any]:
    """Draft tokens and the chance of each; memory is wide, since blocks for drafts differ."""
    n, frac = int(g.integers(1, 5)), float(g.choice([0.0, 0.5, 0.6, 0.8, 1.0]))
    gain = round(sum(frac**k for k in range(n + 1)) * (1 << 16))
    return {"n_drafts": n, "acceptance": frac, "gain": gain, "max_sequences": 64}


def _regimes(g: Draws, n: int) -> dict[str, Callable[[], tuple[Rows, dict[str, Any]]]]:
    """What each regime draws."""

    def made(rows: Rows, times: float | None = None, **changes: Any) -> tuple[Rows, dict[str, Any]]:
        return rows, limited(rows, times, **changes)

    def some(*values: float) -> float:
        return float(g.choice(values))

    off = {"caches_prefixes": False}
    return {
        "light": lambda: made(drawn(g, n, 3, 600, 150)),
        "saturated": lambda: made(drawn(g, n, 60, 600, 150), **off),
        "memory-tight": lambda: made(drawn(g, n, 25, 500, 250), some(1.2, 2, 4), **off),
        "memory-tight, caching": lambda: made(drawn(g, n, 25, 500, 250), some(1.2, 2, 4)),
        "memory-tight, no reserve": lambda: made(
            drawn(g, n, 25, 500, 250), some(1.2, 2, 4), reserves_prompt=False
        ),
        "long prompts": lambda: made(
            drawn(g, n, 2, 6000, 100), max_batch_tokens=int(some(512, 2048))
        ),
        "long prompts, tight": lambda: made(
            drawn(g, n, 4, 6000, 100), 1.5, max_batch_tokens=1024, **off
        ),
        "sequence-bound": lambda: made(drawn(g, n, 30, 300, 100), max_sequences=int(some(4, 32))),
        "sequence-bound, short responses": lambda: made(
            drawn(g, n, 100, 200, 6), max_sequences=int(some(4, 8, 16)), **off
        ),
        "sessions": lambda: made(sessions(g, drawn(g, n, 20, 300, 120), 12, 4000)),
        "sessions, one system prompt": lambda: made(
            sessions(g, drawn(g, n, 20, 300, 120), 12, 4000, head=int(some(200, 1000)))
        ),
        "sessions, one system prompt, tight": lambda: made(
            sessions(g, drawn(g, n, 20, 300, 120), 12, 4000, head=int(some(200, 1000))),
            some(1.5, 3),
        ),
        "system prompts": lambda: made(system_prompts(g, drawn(g, n, 40, 200, 120), 3, 1500)),
        "sessions, tight": lambda: made(
            sessions(g, drawn(g, n, 20, 300, 120), 12, 4000), some(1.5, 3)
        ),
        "system prompts, tight": lambda: made(
            system_prompts(g, drawn(g, n, 40, 200, 120), 3, 1500), some(2, 4)
        ),
        "priority": lambda: made(
            prioritised(g, drawn(g, n, 50, 600, 100)), scheduling="priority", max_sequences=24
        ),
        "priority, tight": lambda: made(
            prioritised(g, drawn(g, n, 25, 500, 250)), some(1.2, 2), scheduling="priority"
        ),
        "long-prefill threshold": lambda: made(
            drawn(g, n, 8, 2000, 100, 1.5), long_prefill_tokens=int(some(128, 512))
        ),
        "long-prefill threshold, light": lambda: made(
            drawn(g, n, 0.5, 4000, 40, 1.0), long_prefill_tokens=256, **off
        ),
        "all policies, tight": lambda: made(
            prioritised(g, sessions(g, drawn(g, n, 25, 300, 120), 12, 4000)), 2.0,
            scheduling="priority", long_prefill_tokens=256,
        ),
        "defaults 8192/1024": lambda: made(
            drawn(g, n, 40, 900, 150), max_batch_tokens=8192, max_sequences=1024
        ),
        "blocks of 64, tight": lambda: made(
            sessions(g, drawn(g, n, 25, 500, 200), 12, 4000), some(2, 3), block_tokens=64
        ),
        "draft tokens, light": lambda: made(drawn(g, n, 3, 600, 150), **drafted(g)),
        "draft tokens, saturated": lambda: made(drawn(g, n, 60, 600, 150), **drafted(g)),
        "draft tokens, long prompts": lambda: made(drawn(g, n, 2, 6000, 100), **drafted(g)),
        "draft tokens, sequence-bound": lambda: made(
            drawn(g, n, 30, 300, 100), **(drafted(g) | {"max_sequences": int(some(4, 16))})
        ),
        "draft tokens, sessions": lambda: made(
            sessions(g, drawn(g, n, 20, 300, 120), 12, 4000), **drafted(g)
        ),
        "one sequence": lambda: made(
            sessions(g, drawn(g, n, 2, 300, 40), 6, 3000), max_sequences=1, max_batch_tokens=256
        ),
        "two sequences, tight": lambda: made(
            drawn(g, n, 4, 400, 80), 1.1, max_sequences=2, max_batch_tokens=128
        ),
        "blocks of 1, tight": lambda: made(
            sessions(g, drawn(g, n, 25, 300, 150), 12, 3000), some(1.3, 2, 3), block_tokens=1
        ),
        "blocks of 32": lambda: made(
            sessions(g, drawn(g, n, 25, 300, 150), 8, 4000), some(1.3, 2, 4), block_tokens=32
        ),
        "blocks of 128, tight": lambda: made(
            system_prompts(g, drawn(g, n, 25, 300, 150), 2, 700), some(1.3, 2), block_tokens=128
        ),
        "barely one request": lambda: made(drawn(g, n, 10, 300, 200), 1.0),
        "small batches": lambda: made(
            sessions(g, drawn(g, n, 10, 500, 60), 12, 4000), some(2, 4),
            max_sequences=16, max_batch_tokens=int(some(16, 17, 33, 64)),
        ),
        "small batches, priority": lambda: made(
            prioritised(g, drawn(g, n, 10, 500, 60)), some(1.2, 2), scheduling="priority",
            max_sequences=16, max_batch_tokens=int(some(16, 17, 64)),
        ),
        "one token": lambda: made(drawn(g, n, 40, 800, 1, 0.1), some(2, 6), max_sequences=16),
        "long answers, tight": lambda: made(drawn(g, n, 12, 60, 900), some(1.2, 2, 3)),
        "burst": lambda: made(
            together(sessions(g, drawn(g, n, 20, 300, 120), 8, 2000)), some(1.5, 3)
        ),
        "burst, priority": lambda: made(
            prioritised(g, together(drawn(g, n, 20, 300, 120))), some(1.2, 3),
            scheduling="priority",
        ),
        "priority, sessions, tight, no reserve": lambda: made(
            prioritised(g, sessions(g, drawn(g, n, 25, 300, 150), 8, 3000)), some(1.3, 2),
            scheduling="priority", reserves_prompt=False,
        ),
        "long-prefill threshold, tight": lambda: made(
            sessions(g, drawn(g, n, 12, 1500, 120, 1.5), 8, 3000), some(1.2, 2, 3),
            long_prefill_tokens=int(some(16, 100, 512)), max_batch_tokens=int(some(128, 1024)),
        ),
        "long-prefill threshold, priority, tight": lambda: made(
            prioritised(g, drawn(g, n, 12, 1500, 120, 1.5)), some(1.2, 2), scheduling="priority",
            long_prefill_tokens=int(some(50, 300)), max_batch_tokens=512,
        ),
        "watermark": lambda: made(
            sessions(g, drawn(g, n, 25, 400, 200), 8, 3000), some(1.5, 3),
            watermark=some(0.02, 0.1, 0.3),
        ),
        "chunked prefill off": lambda: made(
            sessions(g, drawn(g, n, 20, 500, 100), 8, 3000), some(2, 6), chunks=False,
            max_batch_tokens=65536, max_sequences=int(some(8, 64)),
        ),
        "some end by EOS": lambda: made(
            some_by_eos(g, drawn(g, n, 60, 200, 12)), some(2, 5), max_sequences=int(some(4, 16))
        ),
        "some end by EOS, sessions, priority": lambda: made(
            some_by_eos(g, prioritised(g, sessions(g, drawn(g, n, 30, 300, 60), 8, 3000))),
            some(1.3, 3), scheduling="priority",
        ),
        "draft tokens, tight": lambda: made(
            drawn(g, n, 25, 500, 200), some(1.2, 2, 4), **drafted(g)
        ),
        "draft tokens, sessions, tight": lambda: made(
            sessions(g, drawn(g, n, 25, 300, 150), 8, 3000), some(1.5, 3), **drafted(g)
        ),
        "two stages": lambda: made(drawn(g, n, 20, 600, 150), pp=2),
        "two stages, tight": lambda: made(drawn(g, n, 25, 500, 250), some(1.2, 2, 4), pp=2),
        "four stages, sessions": lambda: made(
            sessions(g, drawn(g, n, 25, 300, 120), 12, 4000), some(2, 20), pp=4
        ),
        "four stages, tight, no caching": lambda: made(
            drawn(g, n, 25, 500, 250), some(1.5, 3), pp=4, **off
        ),
        "three stages, long prompts": lambda: made(
            drawn(g, n, 4, 6000, 60), some(2, 8), pp=3, max_batch_tokens=int(some(512, 2048))
        ),
        "stages, priority, tight": lambda: made(
            prioritised(g, drawn(g, n, 25, 500, 200)), some(1.3, 2.5), scheduling="priority",
            pp=int(some(2, 4)),
        ),
        "stages, sequence-bound": lambda: made(
            drawn(g, n, 60, 200, 20), max_sequences=int(some(1, 3, 8)), pp=int(some(2, 4))
        ),
        "stages, long-prefill threshold": lambda: made(
            sessions(g, drawn(g, n, 12, 1500, 100, 1.5), 8, 3000), some(2, 6),
            long_prefill_tokens=int(some(100, 512)), pp=2,
        ),
    }  # fmt: skip


def cases(seed: int, n_requests: int) -> dict[str, Case]:
    """One stream of every regime in every mode, by name."""
    g = np.random.default_rng(seed)
    found: dict[str, Case] = {}
    for regime, make in _regimes(g, n_requests).items():
        rows, limits = make()
        for mode in MODES if limits.get("pp", 1) == 1 else ("sync",):
            found[f"{mode}|{regime}/{seed}"] = {
                "limits": limits | {"is_ahead": mode != "sync"},
                "cost": STEP,
                "requests": rows,
                "ends_by_itself": mode == "async-eos",
            }
    return found
