"""Values as the arrays that kernels read and write, and back: state of engines, times, use."""

from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import Ints, floats
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import EngineTotals, Outcome, RequestTimes, UseOverTime
from gpuplan.domain.traffic.stream import ClosedLoop, Grouping, Requests, requests_of
from gpuplan.errors import InputError, InvariantError, one
from gpuplan.simulation.serving.features import hits_of, in_lines
from gpuplan.simulation.serving.groups import blocks_needed
from gpuplan.simulation.serving.kernels.engine import records as rec
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.records import fill_records, read_records
from gpuplan.simulation.serving.kernels.engine.runs import (
    LEAST_OUTSTANDING,
    POWER_OF_TWO,
    ROUND_ROBIN,
)
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.sglang import check_room, is_sglang, most_tokens
from gpuplan.simulation.serving.tables import kernel_tables

ROUTERS = {
    "round_robin": ROUND_ROBIN,
    "least_outstanding": LEAST_OUTSTANDING,
    "power_of_two": POWER_OF_TWO,
}
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)
N_BINS = 2048
LEAST_RING = 64


class Refusals(NamedTuple):
    """Rows that can be served, and why the others cannot."""

    accepted: Ints
    reasons: tuple[tuple[str, int], ...]


def refusals_of(requests: Requests, limits: EngineLimits) -> Refusals:
    """Requests that an engine would reject with an error rather than queue."""
    total = requests.input_tokens + requests.output_tokens
    n_draft_tokens = 0 if limits.drafts is None else limits.drafts.n_tokens
    longest = (
        limits.n_blocks // max(1, len(limits.groups)) * limits.block_tokens + 1 - n_draft_tokens
    )
    if is_sglang(limits):
        longest = most_tokens(limits)
    if not limits.admission.chunks_prompts:
        longest = min(longest, limits.max_batch_tokens)
    if limits.max_context_tokens is not None:
        longest = min(longest, limits.max_context_tokens)
    n_least = min(requests.input_tokens.min(initial=1), requests.output_tokens.min(initial=1))
    if n_least > 0 and total.max(initial=0) <= longest:
        return Refusals(np.arange(len(requests)), ())
    n_blocks = blocks_needed(total - 1 + n_draft_tokens, limits)
    checks = {
        "no tokens to read or to write": (requests.input_tokens < 1) | (requests.output_tokens < 1),
        "larger than the whole cache": (
            total > longest if is_sglang(limits) else n_blocks > limits.n_blocks
        ),
    }
    if not limits.admission.chunks_prompts:
        checks["longer than an iteration, without chunked prefill"] = (
            total > limits.max_batch_tokens
        )
    if limits.max_context_tokens is not None:
        checks["longer than the model's context"] = total > limits.max_context_tokens
    return _sorted_out(checks, len(requests))


def _sorted_out(checks: dict[str, Mask], n: int) -> Refusals:
    """Each request by the first check that refuses it."""
    left = np.ones(n, dtype=bool)
    reasons = []
    for why, is_wrong in checks.items():
        n_here = int((is_wrong & left).sum())
        reasons += [(why, n_here)] if n_here else []
        left &= ~is_wrong
    return Refusals(np.flatnonzero(left).astype(np.int64), tuple(reasons))


def drawn_pairs(router: str, n_engines: int, n_requests: int, *, seed: int) -> Ints:
    """The two engines of which each request takes one; drawn only for the router that asks."""
    if router != "power_of_two":
        return np.empty((0, 2), dtype=np.int64)
    return np.random.default_rng(seed).integers(0, n_engines, size=(n_requests, 2))


def engine_state(requests: Requests, fleet: Fleet, bin_s: float) -> st.Engines:
    """Idle engines, their tables, and the requests as rows."""
    limits, n = fleet.limits, fleet.n_engines
    tables = kernel_tables(fleet.lockstep.own if fleet.lockstep else fleet.table, limits)
    longest = int(requests.output_tokens.max(initial=1))
    n_ring = max(LEAST_RING, 1 << int(longest + 1).bit_length())
    return st.Engines(
        scalar=engine_scalars(n, limits, bin_s),
        slot=_slots(n, limits.max_sequences),
        ring=np.full((n, n_ring), st.NONE, dtype=np.int64),
        word=np.zeros((n, n_ring >> st.WORD_BITS), dtype=np.int64),
        request=request_records(requests),
        bins=np.zeros((n, N_BINS, st.N_SUMS)),
        flight_s=np.zeros((n, 2)),
        pool=np.zeros(n, dtype=np.int64),
        limit=_limits(limits, tables.window)[None],
        lines=tables.lines[None],
        slopes=tables.slopes[None],
        tokens_s=tables.tokens_s[None],
        rows_s=tables.rows_s[None],
        mix=tables.mix[None],
        home=np.zeros((n, st.N_HOME), dtype=np.int64),
    )


def request_records(requests: Requests) -> Ints:
    """One row a request; times count from the first arrival."""
    records = np.empty((len(requests), st.N_REQUEST), dtype=np.int64)
    tokens = _locked(requests.input_tokens), _locked(requests.output_tokens)
    fill_records(records, _locked(requests.arrive_s), *tokens)
    return records


def _locked(column: NDArray[T]) -> NDArray[T]:
    """A column as kernels take it: what can be written to would be another compilation."""
    locked = np.ascontiguousarray(column).view()
    locked.flags.writeable = False
    return locked


def engine_scalars(n_engines: int, limits: EngineLimits, bin_s: float) -> Ints:
    """Engines that have nothing to do."""
    scalar = np.zeros((n_engines, st.PHASES + limits.block_tokens), dtype=np.int64)
    links = (st.HEAD, st.TAIL, st.WAIT_HEAD, st.WAIT_TAIL, st.MARK, st.PARKED, st.READY)
    scalar[:, [*links, st.PLAN_AT, st.LEAVE_HEAD, st.LEAVE_TAIL, st.CLOSED]] = st.NONE
    scalar[:, st.FREE] = limits.n_blocks
    scalar[:, st.STOP] = st.FOREVER
    scalar[:, [st.BIN_WIDTH, st.BIN_END]] = round(bin_s * st.TICKS_PER_S)
    return scalar


def _slots(n_engines: int, max_sequences: int) -> Ints:
    slot = in_lines(n_engines, max_sequences, st.N_SLOT)
    slot[:] = 0
    slot[:, :, st.AFTER] = np.arange(1, max_sequences + 1)
    slot[:, -1, st.AFTER] = slot[:, :, st.ID] = st.NONE
    return slot


def _limits(limits: EngineLimits, window: int) -> Ints:
    values = np.zeros(st.N_LIMITS, dtype=np.int64)
    values[st.MAX_TOKENS] = limits.max_batch_tokens
    values[st.MAX_SEQUENCES] = limits.max_sequences
    values[st.N_BLOCKS] = limits.n_blocks
    values[st.BLOCK_BITS] = limits.block_tokens.bit_length() - 1
    values[st.IS_RESERVING] = limits.admission.reserves_prompt
    values[st.IS_AHEAD] = limits.admission.is_ahead
    values[st.ENDS_BY_EOS] = limits.admission.is_ahead and limits.admission.ends_by_eos
    values[st.LONE_IS_WHOLE] = limits.admission.lone_prompt_is_whole
    values[st.FILLS_QUEUE] = limits.admission.stages.fills_queue
    values[st.WAITS_FOR_LATE] = limits.admission.stages.waits_for_late
    values[st.KEEPS_TURNS] = limits.admission.stages.keeps_turns
    values[st.PADS] = limits.admission.pads_decodes
    values[st.IS_CHUNKING] = limits.admission.chunks_prompts
    values[st.WATERMARK] = limits.admission.blocks.watermark_blocks
    values[st.BARE_FIRST] = limits.admission.blocks.reuses_bare_first
    values[st.WINDOW] = window
    values[st.LONG_PREFILL] = limits.long_prefill_tokens or 0
    values[st.CHECKED] = 1
    values[st.GAIN_FRAC] = st.ONE_TOKEN
    return values


def outcome_of(requests: Requests, sim: AnyEngines, *, taken: Refusals, start_s: float) -> Outcome:
    """What became of every request; InvariantError where one was lost."""
    times, n_finished, end = times_of(sim.request, start_s)
    check_room(sim)
    check_ended(sim, len(taken.accepted) - n_finished)
    return Outcome(
        requests=requests,
        times=replace(times, n_cached_tokens=hits_of(sim)),
        use=use_of(sim, end),
        totals=totals_of(sim, end),
        n_engines=len(sim.scalar),
        refused=taken.reasons,
    )


def check_ended(sim: AnyEngines, n_lost: int) -> None:
    """InputError where requests preempt one another for ever; InvariantError where one is lost."""
    if sim.scalar[:, st.N_STALLED].max(initial=0) > st.MOST_STALLED:
        what = f"{n_lost} requests preempt one another for ever: together their prompts do not fit"
        fix = "give more blocks, fewer sequences, or reserve room for whole prompts (vLLM 0.19 on)"
        raise one(InputError, "simulate", "KV cache", what, fix)
    if n_lost:
        what = f"{n_lost} requests were lost"
        raise one(InvariantError, "simulate", "requests", what, "please report it")


def totals_of(sim: AnyEngines, end: int) -> EngineTotals:
    """Sums over all engines from the first arrival to this instant."""
    s = sim.scalar
    return EngineTotals(
        n_steps=int(s[:, st.N_STEPS].sum()),
        n_computed_tokens=int(s[:, st.COMPUTED].sum()),
        n_preemptions=int(s[:, st.N_PREEMPTIONS].sum()),
        n_free_blocks=int(s[:, st.FREE].sum()),
        busy_s=float(sim.bins[:, :, st.BUSY_S].sum()),
        span_s=end / st.TICKS_PER_S,
        n_asked_tokens=int(s[:, st.ASKED_TOKENS].sum()),
        n_hit_tokens=int(s[:, st.HIT_TOKENS].sum()),
    )


def times_of(records: Ints, start_s: float) -> tuple[RequestTimes, int, int]:
    """Seconds of each request, zeros where it did not finish; how many did, and the last end."""
    seconds, counts = np.empty((4, len(records))), np.empty((2, len(records)), dtype=np.int64)
    n_finished, end = read_records(records, float(start_s), seconds, counts)
    seconds.flags.writeable = counts.flags.writeable = False
    times = RequestTimes(
        wait_s=seconds[rec.WAIT_S],
        ttft_s=seconds[rec.TTFT_S],
        tpot_s=seconds[rec.TPOT_S],
        e2e_s=seconds[rec.E2E_S],
        n_preemptions=counts[rec.N_PREEMPTED],
        is_finished=counts[rec.IS_FINISHED],
    )
    return times, n_finished, end


def use_of(sim: AnyEngines, end: int) -> UseOverTime:
    """Shares of all engines' time; bins that were folded less often are folded to match."""
    width = int(sim.scalar[:, st.BIN_WIDTH].max())
    bin_s = width / st.TICKS_PER_S
    n_bins = max(1, -(-end // width))
    total = np.zeros((n_bins, st.N_SUMS))
    for bins, own in zip(sim.bins, sim.scalar[:, st.BIN_WIDTH], strict=True):
        n_each = width // int(own)
        folded = bins[: n_each * n_bins].reshape(-1, n_each, st.N_SUMS).sum(axis=1)
        total[: len(folded)] += folded
    shares = total / (bin_s * len(sim.bins))
    return UseOverTime(
        bin_s=bin_s,
        busy_frac=floats(shares[:, st.BUSY_S]),
        cache_frac=floats(shares[:, st.BLOCKS_S] / max(1, int(sim.limit[0, st.N_BLOCKS]))),
        compute_frac=floats(shares[:, st.COMPUTE_S]),
        bandwidth_frac=floats(shares[:, st.READ_S]),
    )


def loop_requests(loop: ClosedLoop) -> Requests:
    """Requests of a closed loop; when each is asked is the fleet's doing."""
    history, group = loop.prefix_tokens, None
    if history is not None:
        # A row without history begins a conversation.
        group = np.cumsum((history == 0) | (np.diff(loop.user, prepend=-1) != 0))
    grouping = Grouping(
        session=loop.user, prefix_group=group, prefix_tokens=history, adapter=loop.adapter
    )
    none = np.zeros(len(loop.user))
    return requests_of(none, loop.input_tokens, loop.output_tokens, grouping=grouping)


def loop_turns(loop: ClosedLoop, accepted: Ints) -> Ints:
    """The next row of the same user that can be served at all."""
    following = np.full(len(loop.user), st.NONE)
    is_same = loop.user[accepted[1:]] == loop.user[accepted[:-1]]
    following[accepted[:-1][is_same]] = accepted[1:][is_same]
    return following
