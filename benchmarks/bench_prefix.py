"""Requests a CPU-second with a cache of prefixes, on a trace like Mooncake's.

    python benchmarks/bench_prefix.py [--requests 100000] [--replicas 8] [TRACE.jsonl …]

Without a file the trace is drawn: sessions of several turns, each of which repeats what was said
before, behind a few system prompts that many sessions share; blocks of 512 tokens, numbered by
content. A file in Mooncake's format is tiled instead, each copy with text of its own.
Llama-3.1-8B, one H100 a replica, engines in turn; CPU time of the process, compiled code loaded,
set-up and results included; the best of three.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_simulate import fleet

from gpuplan.domain.columns import ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests, requests_of
from gpuplan.inputs.traces.read import read_trace
from gpuplan.simulation.serving.run import simulate_serving

N_TRIES = 8
BLOCK_TOKENS = 512
Load = tuple[Requests, PrefixBlocks]


def drawn(n: int, rate: float, *, seed: int = 0) -> Load:
    """Turns of sessions: the words before them are blocks that are known already."""
    draw = np.random.default_rng(seed)
    n_sessions = max(1, n // 3)
    system = draw.integers(0, 20, n_sessions)
    start_s = np.sort(draw.uniform(0, n / rate, n_sessions))
    rows: list[tuple[float, int, int, list[int]]] = []
    n_known = 20 * 8
    for session in range(n_sessions):
        text = [8 * int(system[session]) + k for k in range(int(draw.integers(1, 9)))]
        at_s = float(start_s[session])
        for _ in range(int(draw.geometric(1 / 3))):
            n_new = int(np.clip(draw.lognormal(1.8, 1.0), 1, 100))
            text = text + list(range(n_known, n_known + n_new))
            n_known += n_new
            rest = int(draw.integers(1, BLOCK_TOKENS + 1))
            output = int(np.clip(draw.lognormal(5.0, 0.9), 1, 2000))
            rows.append((at_s, (len(text) - 1) * BLOCK_TOKENS + rest, output, text))
            at_s += float(draw.exponential(30.0))
    rows.sort(key=lambda row: row[0])
    rows = rows[:n]
    first = np.concatenate([[0], np.cumsum([len(row[3]) for row in rows])])
    block = np.concatenate([row[3] for row in rows])
    requests = requests_of(*(np.array([row[k] for row in rows]) for k in range(3)))
    return requests, PrefixBlocks(n_block_tokens=BLOCK_TOKENS, first=ints(first), block=ints(block))


def tiled(path: Path, n: int) -> Load:
    """The file again and again, each time with other text."""
    read = read_trace(path)
    asked, blocks = read.requests, read.blocks
    if blocks is None:
        raise SystemExit(f"{path}: says nothing of the text of its prompts")
    n_times, n_each = max(1, n // len(asked)), len(blocks.block)
    span_s = asked.arrive_s[-1] - asked.arrive_s[0] + 1
    arrive_s = [asked.arrive_s - asked.arrive_s[0] + k * span_s for k in range(n_times)]
    first = [blocks.first[:-1] + k * n_each for k in range(n_times)]
    block = [blocks.block + k * blocks.n_distinct for k in range(n_times)]
    requests = requests_of(
        np.concatenate(arrive_s),
        np.tile(asked.input_tokens, n_times),
        np.maximum(1, np.tile(asked.output_tokens, n_times)),
    )
    return requests, PrefixBlocks(
        n_block_tokens=blocks.n_block_tokens,
        first=ints(np.concatenate([*first, [n_times * n_each]])),
        block=ints(np.concatenate(block)),
    )


def measured(requests: Requests, of: Fleet, blocks: PrefixBlocks | None) -> tuple[float, Outcome]:
    best_s = float("inf")
    for _ in range(N_TRIES):
        start_s = time.process_time()
        found = simulate_serving(requests, of, blocks=blocks)
        best_s = min(best_s, time.process_time() - start_s)
    return len(requests) / best_s, found


def show(name: str, load: Load, n_replicas: int) -> None:
    requests, blocks = load
    limits = replace(fleet(requests).limits, caches_prefixes=True, max_context_tokens=None)
    of = replace(fleet(requests), limits=limits, n_engines=n_replicas)
    bare = replace(of, limits=replace(limits, caches_prefixes=False))
    simulate_serving(requests.take(np.arange(100)), of)  # loads or compiles
    simulate_serving(requests.take(np.arange(100)), bare)
    speed, found = measured(requests, of, blocks)
    speed_bare, without = measured(requests, bare, None)
    totals = found.totals
    hit = totals.n_hit_tokens / totals.n_asked_tokens
    used = [run.totals.busy_s / run.totals.span_s / n_replicas for run in (found, without)]
    print(
        f"{name:24s} {len(requests):8,d} {requests.input_tokens.mean():8,.0f} "
        f"{len(blocks.block) / len(requests):6.1f} {100 * hit:5.1f} % {100 * used[0]:4.0f} % "
        f"{speed:10,.0f} {100 * used[1]:6.0f} % {speed_bare:10,.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.45, help="a replica, of the drawn trace")
    given = parser.parse_args()
    print(f"{'':58s}with prefixes        without")
    print("trace                    requests  in/mean blocks    hits  busy  per CPU-s", end="")
    print("   busy  per CPU-s")
    if not given.traces:
        load = drawn(given.requests, given.rate * given.replicas)
        show("drawn", load, given.replicas)
    for path in given.traces:
        show(path.name[:24], tiled(path, given.requests), given.replicas)


if __name__ == "__main__":
    main()
