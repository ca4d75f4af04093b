"""Random streams for vLLM's own scheduler in which every setting is drawn by itself.

`fresh.py` has regimes with a name; here any of them meet: a stream is known by its number alone.
Where requests have ids, as text, vLLM sorts those of equal priority and arrival by them.
"""

from typing import Any

import numpy as np

from oracles.vllm.fresh import (
    STEP,
    Case,
    Draws,
    Rows,
    drafted,
    drawn,
    limited,
    sessions,
    system_prompts,
)

KINDS = ("plain", "drafts", "stages", "adapters")


def _arriving(g: Draws, rows: Rows) -> None:
    """As they were drawn, all at once, on a grid of instants, or in bursts far apart."""
    kind = g.integers(0, 6)
    times = np.array([one["arrive_s"] for one in rows])
    if kind == 0:
        times[:] = 0.0
    elif kind == 1:
        times = np.floor(times / 0.05) * 0.05
    elif kind == 2:
        times = times + np.cumsum(g.random(len(rows)) < 0.1) * 40.0
    for one, at in zip(rows, np.round(times, 9), strict=True):
        one["arrive_s"] = float(at)


def _repeated(g: Draws, rows: Rows) -> Rows:
    """Some prompts are those of another request, word by word."""
    rows = system_prompts(g, rows, 3, int(g.choice([1, 16, 100, 257])))
    for i, one in enumerate(rows):
        if i > 0 and g.random() < 0.4:
            other = rows[int(g.integers(max(0, i - 6), i))]
            one["prompt"], one["n_in"] = other["prompt"], other["n_in"]
    return rows


def _with_text(g: Draws, rows: Rows) -> Rows:
    kind = g.integers(0, 5)
    if kind == 0:
        return rows
    if kind == 1:
        return _repeated(g, rows)
    if kind == 2:
        return system_prompts(g, rows, int(g.integers(1, 5)), int(g.choice([15, 48, 700])))
    return sessions(g, rows, int(g.integers(1, 15)), 4000, head=int(g.choice([0, 200, 900])))


def _rows(g: Draws) -> Rows:
    n = int(g.choice([20, 40, 60, 60, 120]))
    n_in, n_out = 10 ** g.uniform(0.5, 3.4), 10 ** g.uniform(0.0, 2.4)
    rows = drawn(g, n, 10 ** g.uniform(-0.3, 2.5), n_in, n_out, float(g.choice([0.1, 0.8, 2.0])))
    for one in rows:
        one["n_in"], one["n_out"] = min(one["n_in"], 9000), min(one["n_out"], 1500)
        if g.random() < 0.05:
            one["n_in"] = 1
    _arriving(g, rows)
    return _with_text(g, rows)


def _sizes(g: Draws, rows: Rows) -> dict[str, Any]:
    """Blocks, sequences and tokens of an iteration, whole prompts or chunks."""
    n_sequences = round(2 ** g.uniform(0, 10))
    found: dict[str, Any] = {
        "block_tokens": int(2 ** g.integers(0, 9)) if g.random() < 0.5 else 16,
        "max_sequences": n_sequences,
        "max_batch_tokens": max(n_sequences, round(2 ** g.uniform(4, 14))),
        "caches_prefixes": bool(g.random() < 0.75),
        "reserves_prompt": bool(g.random() < 0.75),
    }
    if g.random() < 0.1:
        longest = max(one["n_in"] + one["n_out"] for one in rows)
        found |= {"chunks": False, "max_batch_tokens": longest + int(g.integers(0, 4000))}
        found["max_sequences"] = min(n_sequences, found["max_batch_tokens"])
    return found


def _policies(g: Draws, rows: Rows) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if g.random() < 0.35:
        found["scheduling"] = "priority"
        width = int(g.integers(1, 7))
        for one in rows:
            one["priority"] = int(g.integers(-width, width + 1))
    if g.random() < 0.25:
        found["long_prefill_tokens"] = round(2 ** g.uniform(0, 10))
    if g.random() < 0.2:
        found["watermark"] = float(g.choice([0.01, 0.05, 0.2, 0.5]))
    return found


def _kind(g: Draws, rows: Rows) -> dict[str, Any]:
    """One of draft tokens, stages and adapters, or none of them."""
    kind = KINDS[int(g.choice(4, p=[0.55, 0.15, 0.15, 0.15]))]
    if kind == "drafts":
        return drafted(g)
    if kind == "stages":
        return {"pp": int(g.integers(2, 6))}
    if kind == "adapters":
        n_adapters = int(g.integers(1, 9))
        for one in rows:
            one["adapter"] = int(g.integers(0, n_adapters + 1))
        return {"max_adapters": int(g.integers(1, 5))}
    return {}


def mixed(seed: int) -> Case:
    """The stream of this number."""
    g = np.random.default_rng([16, seed])
    rows = _rows(g)
    changes = _sizes(g, rows) | _policies(g, rows) | _kind(g, rows)
    if changes.get("n_drafts"):
        # Not simulated together.
        changes |= {"scheduling": "fcfs", "long_prefill_tokens": None}
        n_rows = changes["max_sequences"] * (changes["n_drafts"] + 1)
        changes["max_batch_tokens"] = max(changes["max_batch_tokens"], n_rows)
    times = None if g.random() < 0.2 else float(g.choice([1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 9.0]))
    mode = "sync" if changes.get("pp") else str(g.choice(["sync", "async", "async-eos"]))
    if mode != "sync" and g.random() < 0.25:
        mode = "async"
        for one in rows:
            one["n_max"] = one["n_out"] + int(g.integers(0, 2)) * int(g.integers(1, 600))
    if changes.get("scheduling") == "priority" and seed % 3 == 0:
        for one in rows:
            one["id"] = g.bytes(4).hex()
    limits = limited(rows, times, **changes)
    return {
        "limits": limits | {"is_ahead": mode != "sync"},
        "cost": STEP,
        "requests": rows,
        "ends_by_itself": mode == "async-eos",
    }
