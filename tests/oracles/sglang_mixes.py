"""Random streams for SGLang's own scheduler in which every setting is drawn by itself."""

from typing import Any

import numpy as np

from oracles.vllm.fresh import STEP, Case, Draws, Rows, drawn, sessions, system_prompts


def _rows(g: Draws) -> Rows:
    n_in, n_out = 10 ** g.uniform(0.5, 3.3), 10 ** g.uniform(0.0, 2.3)
    rate, cv = 10 ** g.uniform(-0.3, 2.5), float(g.choice([0.1, 0.8, 2.0]))
    rows = drawn(g, int(g.choice([20, 40, 60])), rate, n_in, n_out, cv)
    for one in rows:
        one["n_in"], one["n_out"] = min(one["n_in"], 8000), min(one["n_out"], 1000)
    kind = int(g.integers(0, 4))
    if kind == 1:
        return system_prompts(g, rows, int(g.integers(1, 5)), int(g.choice([15, 48, 700])))
    return rows if kind == 0 else sessions(g, rows, int(g.integers(1, 13)), 4000)


def _asked(g: Draws, rows: Rows, ends: str) -> None:
    """What clients ask for; of responses that end by themselves it is more than they get."""
    most = int(g.choice([256, 1024, 4096, 6000]))
    for one in rows:
        if ends == "eos":
            one["n_out"] = min(one["n_out"], most)
            one["n_max"] = most


def mixed(seed: int) -> Case:
    """The stream of this number."""
    g = np.random.default_rng([17, seed])
    rows = _rows(g)
    ends = str(g.choice(["length", "max", "eos"]))
    _asked(g, rows, ends)
    page = int(g.choice([1, 1, 4, 16, 32, 64]))
    longest = max(one.get("n_max", one["n_out"]) + one["n_in"] for one in rows)
    times = float(g.choice([1.0, 1.3, 2.0, 4.0, 9.0, 60.0]))
    limits: dict[str, Any] = {
        "max_sequences": round(2 ** g.uniform(0, 9)),
        "chunk_tokens": None if g.random() < 0.15 else int(2 ** g.integers(6, 14)),
        "max_prefill_tokens": int(g.choice([2048, 16384])),
        "n_tokens": (int(longest * times) + 5 * page + 64) // page * page,
        "page_tokens": page,
        "caches_prefixes": bool(g.random() < 0.75),
        # Longest first is simulated up to pages of 32 tokens.
        "policy": "lpm" if g.random() < 0.35 and page <= 32 else "fcfs",
        "is_ahead": bool(g.random() < 0.5),
        "mixes": bool(g.random() < 0.2),
        "conservativeness": float(g.choice([0.05, 0.3, 1.0, 1.0, 1.5])),
    }
    # Not simulated: mixed chunks no larger than the most sequences.
    if (limits["chunk_tokens"] or 0) <= limits["max_sequences"]:
        limits["mixes"] = False
    return {"limits": limits, "cost": STEP, "requests": rows, "ends": ends}
