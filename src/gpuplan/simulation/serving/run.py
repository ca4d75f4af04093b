"""Requests and a fleet in, an outcome out: values to kernel arrays and back."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.engine import EngineLimits, Fleet
from gpuplan.domain.outcome import EngineTotals, Outcome, RequestTimes, UseOverTime
from gpuplan.domain.stream import PrefixBlocks, Requests
from gpuplan.errors import InputError, InvariantError, Problem, one
from gpuplan.simulation.serving.features import (
    has_features,
    hits_of,
    problems_of,
    with_features,
)
from gpuplan.simulation.serving.kernels import state as st
from gpuplan.simulation.serving.kernels.featured import AnyEngines
from gpuplan.simulation.serving.kernels.fleet import (
    LEAST_OUTSTANDING,
    POWER_OF_TWO,
    ROUND_ROBIN,
    run_apart,
    run_routed,
)
from gpuplan.simulation.serving.kernels.plain import N_RUN, run_plain
from gpuplan.simulation.serving.tables import kernel_tables

ROUTERS = {
    "round_robin": ROUND_ROBIN,
    "least_outstanding": LEAST_OUTSTANDING,
    "power_of_two": POWER_OF_TWO,
}
LONGEST_S = 40 * 86400.0  # the clock counts picoseconds in 62 bits
N_BINS = 2048
BIN_S = 60.0
LEAST_RING = 64


class Refusals(NamedTuple):
    """Rows that can be served, and why the others cannot."""

    accepted: Ints
    reasons: tuple[tuple[str, int], ...]


def simulate_serving(
    requests: Requests,
    fleet: Fleet,
    *,
    bin_s: float = BIN_S,
    method: str = "jump",
    blocks: PrefixBlocks | None = None,
) -> Outcome:
    """Every request's times and the engines' use; the method changes the speed, nothing else.

    "jump" skips over unchanged batches, "step" does not, "plain" looks at every sequence in
    every step (engines in turn, without prefixes, urgency and drafts). `blocks` is the text of
    the prompts; without it, groups tell what prompts have in common.
    """
    check_fleet(requests, fleet)
    taken = _refusals(requests, fleet.limits)
    sim: AnyEngines = _state(requests, fleet, bin_s)
    if has_features(fleet.limits) and method != "plain":
        sim = with_features(sim, requests, fleet, blocks=blocks)
    _run(sim, taken.accepted, fleet, method=method)
    return _outcome(requests, fleet, sim, taken=taken)


def check_fleet(requests: Requests, fleet: Fleet) -> None:
    """InputError where these engines cannot be simulated; all that is wrong at once."""
    limits, problems = fleet.limits, []
    if fleet.n_engines < 1:
        problems.append(Problem("replicas", f"got {fleet.n_engines}", "use 1 or more"))
    if fleet.router not in ROUTERS:
        known = ", ".join(ROUTERS)
        problems.append(Problem("router", f"got {fleet.router!r}", f"use one of {known}"))
    if limits.max_sequences < 1 or limits.max_batch_tokens < limits.max_sequences:
        what = f"{limits.max_batch_tokens} tokens for {limits.max_sequences} sequences"
        fix = "give at least one sequence, and every sequence at least one token"
        problems.append(Problem("max_num_batched_tokens", what, fix))
    if limits.block_tokens < 1 or limits.block_tokens & (limits.block_tokens - 1):
        what = f"got {limits.block_tokens}"
        problems.append(Problem("block tokens", what, "use a power of two, such as 16"))
    if limits.n_blocks < 1:
        what = f"room for {limits.n_blocks} blocks"
        problems.append(Problem("key-value cache", what, "use a smaller model or more memory"))
    is_long = len(requests) > 0 and requests.arrive_s[-1] - requests.arrive_s[0] > LONGEST_S
    if is_long:
        days = f"{(requests.arrive_s[-1] - requests.arrive_s[0]) / 86400:.0f} days"
        problems.append(Problem("arrivals", f"span {days}", "split them: at most 40 days"))
    problems += problems_of(limits)
    if problems:
        raise InputError("simulate", problems)


def _refusals(requests: Requests, limits: EngineLimits) -> Refusals:
    """What an engine would answer with an error rather than queue."""
    total = requests.input_tokens + requests.output_tokens
    n_drafts = 0 if limits.drafts is None else limits.drafts.n_tokens
    n_blocks = -(-np.maximum(total - 1 + n_drafts, 0) // limits.block_tokens)
    checks = {
        "no tokens to read or to write": (requests.input_tokens < 1) | (requests.output_tokens < 1),
        "larger than the whole cache": n_blocks > limits.n_blocks,
    }
    if limits.max_context_tokens is not None:
        checks["longer than the model's context"] = total > limits.max_context_tokens
    left = np.ones(len(requests), dtype=bool)
    reasons = []
    for why, is_wrong in checks.items():
        n_here = int((is_wrong & left).sum())
        reasons += [(why, n_here)] if n_here else []
        left &= ~is_wrong
    return Refusals(np.flatnonzero(left).astype(np.int64), tuple(reasons))


def _state(requests: Requests, fleet: Fleet, bin_s: float) -> st.Engines:
    limits, n = fleet.limits, fleet.n_engines
    tables = kernel_tables(fleet.table, limits)
    longest = int(requests.output_tokens.max(initial=1))
    n_ring = max(LEAST_RING, 1 << int(longest + 1).bit_length())
    return st.Engines(
        scalar=_scalars(n, limits, bin_s),
        slot=_slots(n, limits.max_sequences),
        ring=np.full((n, n_ring), st.NONE, dtype=np.int64),
        word=np.zeros((n, n_ring >> st.WORD_BITS), dtype=np.int64),
        request=_records(requests),
        bins=np.zeros((n, N_BINS, st.N_SUMS)),
        flight_s=np.zeros((n, 2)),
        pool=np.zeros(n, dtype=np.int64),
        limit=_limits(limits, tables.window)[None],
        lines=tables.lines[None],
        slopes=tables.slopes[None],
        tokens_s=tables.tokens_s[None],
        rows_s=tables.rows_s[None],
        mix=tables.mix[None],
    )


def _records(requests: Requests) -> Ints:
    records = np.zeros((len(requests), st.N_REQUEST), dtype=np.int64)
    if len(requests):
        since_s = requests.arrive_s - requests.arrive_s[0]
        records[:, st.ARRIVE] = np.rint(since_s * st.TICKS_PER_S).astype(np.int64)
    records[:, st.INPUT] = requests.input_tokens
    records[:, st.OUTPUT] = requests.output_tokens
    records[:, [st.START, st.FIRST, st.END, st.NEXT_WAITING]] = st.NONE
    return records


def _scalars(n_engines: int, limits: EngineLimits, bin_s: float) -> Ints:
    scalar = np.zeros((n_engines, st.PHASES + limits.block_tokens), dtype=np.int64)
    scalar[:, [st.HEAD, st.TAIL, st.WAIT_HEAD, st.WAIT_TAIL, st.PARTIAL, st.MARK]] = st.NONE
    scalar[:, st.FREE] = limits.n_blocks
    scalar[:, st.STOP] = st.FOREVER
    scalar[:, [st.BIN_WIDTH, st.BIN_END]] = round(bin_s * st.TICKS_PER_S)
    return scalar


def _slots(n_engines: int, max_sequences: int) -> Ints:
    slot = np.zeros((n_engines, max_sequences, st.N_SLOT), dtype=np.int64)
    slot[:, :, st.AFTER] = np.arange(1, max_sequences + 1)
    slot[:, -1, st.AFTER] = st.NONE
    return slot


def _limits(limits: EngineLimits, window: int) -> Ints:
    values = np.zeros(st.N_LIMITS, dtype=np.int64)
    values[st.MAX_TOKENS] = limits.max_batch_tokens
    values[st.MAX_SEQUENCES] = limits.max_sequences
    values[st.N_BLOCKS] = limits.n_blocks
    values[st.BLOCK_BITS] = limits.block_tokens.bit_length() - 1
    values[st.IS_RESERVING] = limits.reserves_prompt
    values[st.WINDOW] = window
    values[st.LONG_PREFILL] = limits.long_prefill_tokens or 0
    values[st.CHECKED] = 1
    values[st.GAIN_FRAC] = st.ONE_TOKEN
    return values


def _run(sim: AnyEngines, accepted: Ints, fleet: Fleet, *, method: str) -> None:
    sim.limit[:, st.IS_JUMPING] = method == "jump"
    sim.limit[:, st.LAST_INSTANT] = st.FOREVER
    if method == "plain":
        run_plain(sim, accepted, np.zeros((fleet.limits.max_sequences, N_RUN), dtype=np.int64))
    elif fleet.router == "round_robin":
        run_apart(sim, accepted)
    else:
        draws = np.random.default_rng(fleet.seed)
        pairs = draws.integers(0, fleet.n_engines, size=(len(accepted), 2))
        event = np.zeros(fleet.n_engines, dtype=np.int64)
        run_routed(sim, accepted, pairs, ROUTERS[fleet.router], event)


def _outcome(requests: Requests, fleet: Fleet, sim: AnyEngines, *, taken: Refusals) -> Outcome:
    finished = sim.request[:, st.END] >= 0
    if int(finished.sum()) != len(taken.accepted):
        what = f"{len(taken.accepted) - int(finished.sum())} requests were lost"
        raise one(InvariantError, "simulate", "requests", what, "please report it")
    end = int(sim.request[:, st.END].max(initial=0))
    s = sim.scalar
    return Outcome(
        requests=requests,
        times=replace(
            _times(sim.request, finished, fleet.limits.start_s), n_cached_tokens=hits_of(sim)
        ),
        use=_use(sim, fleet, end),
        totals=EngineTotals(
            n_steps=int(s[:, st.N_STEPS].sum()),
            n_computed_tokens=int(s[:, st.COMPUTED].sum()),
            n_preemptions=int(s[:, st.N_PREEMPTIONS].sum()),
            n_free_blocks=int(s[:, st.FREE].sum()),
            busy_s=float(sim.bins[:, :, st.BUSY_S].sum()),
            span_s=end / st.TICKS_PER_S,
            n_asked_tokens=int(s[:, st.ASKED_TOKENS].sum()),
            n_hit_tokens=int(s[:, st.HIT_TOKENS].sum()),
        ),
        n_engines=fleet.n_engines,
        refused=taken.reasons,
    )


def _times(records: Ints, finished: np.ndarray[tuple[int], np.dtype[np.bool_]],
           start_s: float) -> RequestTimes:  # fmt: skip
    def since(later: int, sooner: int) -> Floats:
        return np.where(finished, records[:, later] - records[:, sooner], 0) / st.TICKS_PER_S

    outside_s = np.where(finished, start_s, 0.0)
    rest = np.maximum(records[:, st.OUTPUT] - 1, 1)
    return RequestTimes(
        wait_s=floats(since(st.START, st.ARRIVE)),
        ttft_s=floats(since(st.FIRST, st.ARRIVE) + outside_s),
        tpot_s=floats(since(st.END, st.FIRST) / rest),
        e2e_s=floats(since(st.END, st.ARRIVE) + outside_s),
        n_preemptions=ints(records[:, st.PREEMPTED]),
        is_finished=ints(finished),
    )


def _use(sim: AnyEngines, fleet: Fleet, end: int) -> UseOverTime:
    """Engines whose bins were folded less often are folded to match."""
    width = int(sim.scalar[:, st.BIN_WIDTH].max())
    total = np.zeros((N_BINS, st.N_SUMS))
    for bins, own in zip(sim.bins, sim.scalar[:, st.BIN_WIDTH], strict=True):
        n_each = width // int(own)
        folded = bins.reshape(N_BINS // n_each, n_each, st.N_SUMS).sum(axis=1)
        total[: len(folded)] += folded
    bin_s = width / st.TICKS_PER_S
    n_bins = max(1, -(-end // width))
    shares = total[:n_bins] / (bin_s * fleet.n_engines)
    return UseOverTime(
        bin_s=bin_s,
        busy_frac=floats(shares[:, st.BUSY_S]),
        cache_frac=floats(shares[:, st.BLOCKS_S] / fleet.limits.n_blocks),
        compute_frac=floats(shares[:, st.COMPUTE_S]),
        bandwidth_frac=floats(shares[:, st.READ_S]),
    )
