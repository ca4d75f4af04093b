"""Batches that are formed once: wait for enough requests or long enough, run all, take the next.

Whom a batch takes is decided when the engine is free; what arrives at that instant is seen. How
long it lasts is read from a table by its size, or is the sum of the iterations of a language
model: prompts padded to the longest are computed, then every member decodes until the longest
response is written.
"""

from typing import NamedTuple

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import mixed_step_s, peaks_s, ticks
from gpuplan.simulation.serving.kernels.engine.jump import lasting, on_line
from gpuplan.simulation.serving.kernels.engine.kinds import one_engine
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks, pop_waiting
from gpuplan.simulation.serving.kernels.engine.positions import moved
from gpuplan.simulation.serving.kernels.engine.runs import EVENT, LOAD, ROUND_ROBIN, route
from gpuplan.simulation.serving.kernels.engine.state import Engine, Engines, Floats, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import held, kernel, part

# DELAY: FOREVER waits for a preferred size, until CLOSING when the last request has come.
MAX_BATCH, DELAY, CLOSING, IS_TABLE = range(4)
N_RULES = 4


class Batcher(NamedTuple):
    """Rules of all engines; columns are by number of requests, from 0."""

    rule: Ints  # (N_RULES,)
    best: Ints  # greatest preferred size that so many fill; 0: none
    lasts: Ints  # picoseconds of a batch, where a table says it
    peaks_s: Floats  # (sizes, 2): the same at peak arithmetic and at peak memory rate


@part
def _next_batch(e: Engine, b: Batcher, ready: int) -> tuple[int, int]:
    """When the next batch begins if nobody else comes, and how many it takes."""
    s, delay = e.scalar, b.rule[DELAY]
    n = min(s[st.OUTSTANDING] - s[st.IN_FLIGHT], b.rule[MAX_BATCH])
    latest = b.rule[CLOSING]
    if delay < st.FOREVER:
        latest = e.request[s[st.WAIT_HEAD], st.ARRIVE] + delay
    if delay > 0 and ready >= latest:
        return ready, n
    if b.best[n] > 0:
        return ready, b.best[n]
    return (ready if delay == 0 else latest), n


@part
def _fitting(e: Engine, n: int) -> tuple[int, int, int]:
    """Members whose padded prompts and outputs the KV cache holds; the longest of each."""
    room = e.limit[st.N_BLOCKS] << e.limit[st.BLOCK_BITS]
    i = e.scalar[st.WAIT_HEAD]
    longest, output = e.request[i, st.INPUT], e.request[i, st.OUTPUT]
    for k in range(1, n):
        i = e.request[i, st.NEXT_WAITING]
        wider, later = max(longest, e.request[i, st.INPUT]), max(output, e.request[i, st.OUTPUT])
        # The last token of a response is never stored.
        if (k + 1) * (wider + later - 1) > room:
            return k, longest, output
        longest, output = wider, later
    return n, longest, output


@part
def _pass(e: Engine, lasts: int) -> None:
    """The clock moves by fixed-point ticks; sums do not depend on how they are grouped."""
    s = e.scalar
    total = lasts + s[st.FRAC]
    s[st.NOW] += total >> st.FRAC_BITS
    s[st.FRAC] = total & st.FRAC_MASK


@part
def _prefill_all(e: Engine, n: int, longest: int) -> tuple[float, float]:
    """All prompts, one after the other, in iterations that fill the budget; peaks of all."""
    s, done = e.scalar, 0
    arithmetic_s, memory_s = 0.0, 0.0
    s[st.N_DECODES] = s[st.CONTEXT] = 0
    while done < n * longest:
        stop = min(n * longest, done + e.limit[st.MAX_TOKENS])
        whole, rest = stop // longest, stop % longest
        before, left = done // longest, done % longest
        s[st.PREFILL_TOKENS], s[st.N_ENDED] = stop - done, whole - before
        s[st.PREFILL_PAIRS] = (whole - before) * longest * longest + rest * rest - left * left
        step_s, peak_s, read_s = mixed_step_s(e)
        _pass(e, ticks(step_s))
        arithmetic_s += peak_s
        memory_s += read_s
        s[st.N_STEPS] += 1
        done = stop
    return arithmetic_s, memory_s


@part
def _decode_all(e: Engine, n: int, longest: int, output: int) -> tuple[float, float]:
    """Every member takes part until the longest output is written; steps on one line at once."""
    s = e.scalar
    arithmetic_s, memory_s = 0.0, 0.0
    s[st.N_DECODES] = n
    made = 1
    while made < output:
        s[st.CONTEXT] = n * (longest + made)
        k, first, growth, regime = on_line(e, output - made)
        peak_s, read_s = peaks_s(e, regime, k, moved(e, k))
        _pass(e, lasting(e, k, first, growth))
        arithmetic_s += peak_s
        memory_s += read_s
        made += k
    s[st.N_STEPS] += output - 1
    return arithmetic_s, memory_s


@part
def _run_steps(e: Engine, n: int, longest: int, output: int) -> int:
    """Iterations of a language model; when the first tokens are there."""
    s, start = e.scalar, e.scalar[st.NOW]
    used = float(n_blocks(e.limit, n * (longest + output - 1)))
    peaks = _prefill_all(e, n, longest)
    first = s[st.NOW]
    more = _decode_all(e, n, longest, output)
    end, s[st.NOW] = s[st.NOW], start
    account(e.scalar, e.bins, end, used, (peaks[0] + more[0], peaks[1] + more[1]))
    s[st.NOW] = end
    s[st.COMPUTED] += n * (longest + output - 1)
    return int(first)


@part
def _run_table(e: Engine, b: Batcher, n: int) -> int:
    """As long as the table says."""
    s = e.scalar
    end = s[st.NOW] + b.lasts[n]
    account(e.scalar, e.bins, end, 0.0, (b.peaks_s[n, 0], b.peaks_s[n, 1]))
    s[st.NOW] = end
    s[st.COMPUTED] += n
    s[st.N_STEPS] += 1
    return int(end)


@part
def _begin(e: Engine, b: Batcher, start: int, n: int) -> None:
    """The first n of the queue, or as many as fit, run to their common end."""
    s = e.scalar
    if start > s[st.NOW]:
        s[st.NOW], s[st.FRAC] = start, 0
    else:
        start = s[st.NOW]
    member = s[st.WAIT_HEAD]
    if b.rule[IS_TABLE]:
        first = _run_table(e, b, n)
    else:
        n, longest, output = _fitting(e, n)
        first = _run_steps(e, n, longest, output)
    for _ in range(n):
        pop_waiting(e.scalar, e.request)
        row = e.request[member]
        row[st.START], row[st.FIRST], row[st.END] = start, first, s[st.NOW]
        member = row[st.NEXT_WAITING]
    s[st.IN_FLIGHT], s[st.FLIGHT_END] = n, s[st.NOW]


@part
def _advance(e: Engine, b: Batcher, until: int) -> int:
    """Begin every batch that begins before this instant; when there is next something to report."""
    s = e.scalar
    while True:
        if s[st.IN_FLIGHT] > 0:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            s[st.OUTSTANDING] -= s[st.IN_FLIGHT]
            s[st.IN_FLIGHT] = 0
        if s[st.WAIT_HEAD] < 0:
            return st.FOREVER
        ready = max(s[st.NOW], e.request[s[st.WAIT_TAIL], st.ARRIVE])
        start, n = _next_batch(e, b, ready)
        if start >= until:
            return int(start)
        _begin(e, b, start, n)


@kernel
def run_batches(
    engines: Engines, accepted: Ints, pairs: Ints, policy: int, observed: Ints, batcher: Batcher
) -> None:
    """Requests in order of arrival, each to the engine that the router names."""
    event, load = observed[EVENT], observed[LOAD]
    n_engines, n = event.shape[0], accepted.shape[0]
    for turn in range(n + 1):
        next_, now = turn % n_engines, st.FOREVER
        if turn < n:
            now = engines.request[accepted[turn], st.ARRIVE]
        elif n > 0:
            batcher.rule[CLOSING] = engines.request[accepted[n - 1], st.ARRIVE]
            event[:] = 0
        # Engines in turn never meet: one is looked at when it is given something, or at the end.
        for r in range(n_engines):
            if event[r] <= now and (policy != ROUND_ROBIN or r == next_ or turn == n):
                event[r] = _advance(held(one_engine(engines, r)), batcher, now)
                load[r] = engines.scalar[r, st.OUTSTANDING]
        if turn == n:
            return
        route(engines, accepted[turn], turn, pairs, policy, observed)
