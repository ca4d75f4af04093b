"""Random streams for models whose layers are in groups: windows or chunks beside full attention.

A mix as in `mixes.py`, with one to six groups on a pool that is mostly tight: gpt-oss has one group
of sliding windows and one of full attention, Gemma 3 five or six and one, Llama 4 chunks.
"""

from typing import Any

import numpy as np

from oracles.vllm.fresh import Case, Draws
from oracles.vllm.mixes import mixed

TIMES = (1.0, 1.0, 1.05, 1.2, 1.5, 2.0, 4.0)


def _groups(g: Draws) -> list[list[Any]]:
    """Groups in the order of the engine; windows may come first or last, and of two sizes."""
    kind = str(g.choice(["window", "window", "window", "chunk"]))
    # Chunks are whole blocks; a window of one token, which keeps nothing, is no model's.
    size = int(g.choice([64, 128, 512] if kind == "chunk" else [2, 17, 64, 128, 500, 1024]))
    found: list[list[Any]] = [[kind, size]]
    if g.random() < 0.1 and kind == "window":
        return found  # all layers alike: one group
    found *= int(g.choice([1, 1, 2, 5]))
    if g.random() < 0.15 and kind == "window":
        found.append(["window", size + 100])
    is_full_first = g.random() < 0.3
    return [["full", 0], *found] if is_full_first else [*found, ["full", 0]]


def _states(g: Draws) -> list[list[Any]]:
    """Groups of recurrent layers, each with one state a request, beside full attention."""
    found: list[list[Any]] = [["state", 0]] * int(g.choice([1, 3, 7]))
    return [["full", 0], *found] if g.random() < 0.3 else [*found, ["full", 0]]


def _most(one: list[Any], limits: dict[str, Any], n_tokens: int) -> int:
    """Blocks of the group that vLLM asks for before it admits a prompt of so many tokens."""
    kind, size = one
    whole = -(-n_tokens // limits["block_tokens"])
    if kind == "full":
        return whole
    if kind == "state":
        return 1
    span = size + 2 * limits["max_batch_tokens"]
    return min(whole, -(-span // limits["block_tokens"]) + 1)


def hybrid(seed: int, *, has_states: bool = False) -> Case:
    """The stream of this number; with states, some groups are of recurrent layers."""
    number, g = 1000 * seed, np.random.default_rng([17, seed])
    case = mixed(number)
    while case["limits"].get("pp") or case["limits"].get("n_drafts"):
        number += 1
        case = mixed(number)
    limits, rows = case["limits"], case["requests"]
    if limits["block_tokens"] > 64:
        limits["block_tokens"] = 16
    groups = _states(g) if has_states else _groups(g)
    if has_states:
        limits["caches_prefixes"] = False  # vLLM's default for them
    longest = max(one["n_in"] + one["n_out"] for one in rows)
    needed = sum(_most(one, limits, longest) for one in groups)
    limits |= {"groups": groups, "n_blocks": int(needed * g.choice(TIMES)) + 1}
    return case
