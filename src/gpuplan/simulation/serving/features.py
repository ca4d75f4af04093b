"""Engines with policies: prefix cache, priorities, speculative decoding, limits on prefills."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.simulation.engine import SCHEDULINGS, EngineLimits
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.errors import Problem
from gpuplan.simulation.serving.gains import first_ticks, gains_of
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.kernels.prefix.paths import paths_of_blocks, paths_of_groups
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.stages import state as staged
from gpuplan.simulation.serving.kernels.stages.state import StagedEngines

LINE = 8  # numbers
SPECULATIVE = "speculative decoding"


class Paths(NamedTuple):
    """Where the text of each request is shared with requests before it; blocks before its own."""

    base: Ints
    first: Ints
    element: Ints


def has_features(limits: EngineLimits, requests: Requests | None = None) -> bool:
    """True where the engine does more than serve first come, first served."""
    return bool(
        (requests is not None and _ends_differ(limits, requests))
        or limits.admission.n_stages > 1
        or limits.groups
        or limits.admission.max_adapters is not None
        or limits.caches_prefixes
        or limits.scheduling == "priority"
        or limits.drafts is not None
        or limits.long_prefill_tokens is not None
    )


def _ends_differ(limits: EngineLimits, requests: Requests) -> bool:
    """An engine that schedules ahead hears of some ends late, by what each request asks for."""
    rules, requested = limits.admission, requests.max_tokens
    is_late = np.where(requested < 0, rules.ends_by_eos, requested > requests.output_tokens)
    return bool(rules.is_ahead and (is_late != rules.ends_by_eos).any())


def problems_of(limits: EngineLimits) -> list[Problem]:
    """Why these policies cannot be simulated."""
    found = []
    if limits.scheduling not in SCHEDULINGS:
        known = " or ".join(SCHEDULINGS)
        found.append(Problem("scheduling", f"got {limits.scheduling!r}", f"use {known}"))
    if limits.scheduling == "lpm" and limits.admission.prefill_first is None:
        what = "lpm is SGLang's: longest prefix first"
        found.append(Problem("scheduling", what, "use --engine sglang, or fcfs"))
    if limits.long_prefill_tokens is not None and limits.long_prefill_tokens < 1:
        what = f"got {limits.long_prefill_tokens}"
        found.append(Problem("long prefill", what, "use at least one token, or leave it out"))
    if limits.admission.n_stages > 1 and (limits.drafts is not None or limits.admission.is_ahead):
        what = "with speculative decoding, or with async scheduling"
        found.append(Problem("pipeline stages", what, "not simulated together: leave one out"))
    if limits.admission.max_adapters is not None and limits.admission.max_adapters < 1:
        found.append(
            Problem("LoRA adapters", f"got {limits.admission.max_adapters}", "use 1 or more")
        )
    if limits.admission.max_adapters is not None and limits.admission.n_stages > 1:
        what = "a limit on adapters with pipeline stages"
        found.append(Problem("LoRA adapters", what, "not simulated together: leave one out"))
    return found + _draft_problems(limits)


def _draft_problems(limits: EngineLimits) -> list[Problem]:
    drafts = limits.drafts
    if drafts is None:
        what = "acceptance is drawn, but there are no draft tokens"
        fix = "give draft tokens, or draw nothing"
        return [Problem(SPECULATIVE, what, fix)] if limits.draws_acceptance else []
    found = []
    if drafts.n_tokens < 1 or not 0.0 <= drafts.acceptance_frac <= 1.0:
        what = f"{drafts.n_tokens} tokens, accepted with {drafts.acceptance_frac}"
        found.append(Problem(SPECULATIVE, what, "draft at least one, accept a share from 0 to 1"))
    elif limits.max_batch_tokens < limits.max_sequences * round(drafts.checked_tokens):
        what = f"{limits.max_sequences} sequences verify {drafts.checked_tokens:.0f} tokens each"
        fix = f"raise max_num_batched_tokens above {limits.max_batch_tokens}, or lower the others"
        found.append(Problem(SPECULATIVE, what, fix))
    if limits.long_prefill_tokens is not None or limits.scheduling != "fcfs":
        what = "with a limit on long prefills, or with priorities"
        found.append(Problem(SPECULATIVE, what, "not simulated together: leave one out"))
    return found


def with_features(
    sim: st.Engines,
    requests: Requests,
    limits: Sequence[EngineLimits],
    *,
    blocks: PrefixBlocks | None,
    seed: int = 0,
) -> st.FeaturedEngines:
    """The same engines with an empty prefix cache and the priority of each request.

    `limits` has one entry per pool; pools that cache prefixes have blocks of one size.
    """
    n, widest = len(sim.scalar), sim.slot.shape[1]
    caching = next((one for one in limits if one.caches_prefixes), limits[0])
    paths = paths_of(requests, caching, blocks)
    _begin(sim, limits)
    gained = gains_of(limits, seed)
    _begin_draws(sim, gained, seed)
    sizes = np.array([_sizes(requests, one) for one in limits]).max(axis=0)
    n_segments, n_blocks, longest, n_usual = (int(size) for size in sizes)
    n_buckets = 1 << max(4, n_usual.bit_length())
    n_chains = widest * longest if n_blocks > 1 else 1
    if blocks is None and requests.prefix_group.max(initial=-1) < 0:
        n_chains = min(n_chains, n_blocks + widest)  # of text of one's own no two hold a block
    slot = in_lines(n, widest, st.N_FEATURED_SLOT)
    slot[:] = 0
    slot[:, :, : st.N_SLOT] = sim.slot
    slot[:, :, st.ID] = st.NONE
    return st.FeaturedEngines(
        **(sim._asdict() | {"slot": slot}),
        extra=extra_of(requests, is_late=bool(sim.limit[:, st.ENDS_BY_EOS].any())),
        path_first=paths.first,
        path=paths.element,
        bucket=np.full((n, n_buckets), st.NONE, dtype=np.int64),
        # Pages of these that no run reaches are never touched.
        entry=in_lines(n, n_segments + widest, st.N_ENTRY),
        extent=in_lines(n, n_blocks, st.N_EXTENT),
        chain=np.empty((n, n_chains, st.N_CHAIN), dtype=np.int64),
        found=np.empty((longest, 3), dtype=np.int64),
        gained=gained,
    )


def with_stages(sim: st.FeaturedEngines, n_stages: int) -> StagedEngines:
    """The same engines, whose batches go through so many stages; as many are on the way."""
    n, widest = sim.slot.shape[:2]
    n_columns = staged.PHASES + (1 << int(sim.limit[:, st.BLOCK_BITS].max()))
    return StagedEngines(
        *sim,
        flight=np.zeros((n, n_stages, n_columns), dtype=np.int64),
        peak_s=np.zeros((n, n_stages, 2)),
        stage=np.zeros((n, n_stages), dtype=np.int64),
        late=np.zeros((n, n_stages * widest, 2), dtype=np.int64),
    )


def in_lines(n_engines: int, n_rows: int, n_columns: int) -> Ints:
    """Rows, not written yet, that begin where lines of the processor's cache do."""
    size = n_engines * n_rows * n_columns
    raw = np.empty(size + LINE, dtype=np.int64)
    first = -(raw.ctypes.data // raw.itemsize) % LINE
    return raw[first : first + size].reshape(n_engines, n_rows, n_columns)


def extra_of(requests: Requests, *, is_late: bool, n_before: int = 0) -> Ints:
    """Further columns of requests after so many; `is_late`: ends by EOS where nobody says."""
    extra = np.zeros((len(requests), st.N_EXTRA), dtype=np.int64)
    extra[:, st.PRIORITY] = requests.priority
    extra[:, st.CHILD] = st.NONE
    extra[:, st.STALE] = st.NONE
    _, first, which = np.unique(requests.adapter, return_index=True, return_inverse=True)
    extra[:, st.ADAPTER] = np.where(requests.adapter < 0, st.NONE, first[which])
    extra[:, st.NUMBER] = np.arange(n_before, n_before + len(requests))
    requested = requests.max_tokens
    extra[:, st.ENDS_LATE] = np.where(requested < 0, is_late, requested > requests.output_tokens)
    return extra


def hits_of(sim: AnyEngines) -> Ints | None:
    """Tokens of each prompt found in the prefix cache; None where engines have no policies."""
    if isinstance(sim, sg.SglangEngines):
        return ints(sim.requested[:, sg.HIT])
    has_cache = isinstance(sim, (st.FeaturedEngines, StagedEngines))
    return ints(sim.extra[:, st.HIT]) if has_cache else None


def _begin(sim: st.Engines, limits: Sequence[EngineLimits]) -> None:
    scalar = sim.scalar
    scalar[:, [st.OLDEST, st.NEWEST]] = st.NONE
    scalar[:, [st.EXTENT_SPARE, st.ENTRY_SPARE, st.CHAIN_SPARE]] = st.NONE
    scalar[:, st.BARE] = sim.limit[sim.pool, st.N_BLOCKS]
    for row, one in zip(sim.limit, limits, strict=True):
        row[st.IS_CACHING] = one.caches_prefixes
        row[st.IS_PRIORITY] = one.scheduling == "priority"
        row[st.MAX_ADAPTERS] = one.admission.max_adapters or 0
        if one.drafts is not None:
            row[st.CHECKED] = round(one.drafts.checked_tokens)
            gained = round(one.drafts.gained_tokens * st.ONE_TOKEN)
            row[st.GAIN_FRAC] = 0 if one.draws_acceptance else gained


def _begin_draws(sim: st.Engines, gained: Ints, seed: int) -> None:
    """Engines whose acceptances are drawn each begin elsewhere in the draws."""
    is_drawn = sim.limit[sim.pool, st.GAIN_FRAC] == 0
    ticks = np.where(is_drawn, first_ticks(len(sim.scalar), seed), 0)
    sim.scalar[:, st.TICK] = ticks
    sim.scalar[:, st.STEP] = np.where(
        is_drawn, gained[sim.pool, st.POSITIONS, np.where(is_drawn, ticks, 0)], 0
    )


def _sizes(requests: Requests, limits: EngineLimits) -> tuple[int, int, int, int]:
    """Segments, blocks, and blocks of a request that an engine can have at most; usual segments."""
    if not limits.caches_prefixes:
        return 1, 1, 1, 1
    n_tokens = requests.input_tokens + requests.output_tokens
    longest = int(n_tokens.max(initial=0)) // limits.block_tokens
    most = min(limits.n_blocks, len(requests)) + 1
    mean = max(1, int(n_tokens.sum()) // max(1, len(n_tokens)))
    usual = limits.n_blocks * limits.block_tokens // mean
    return most, limits.n_blocks + 2, longest + 2, min(most, 4 * usual)


def paths_of(requests: Requests, limits: EngineLimits, blocks: PrefixBlocks | None) -> Paths:
    """By the blocks of a trace where it has them, else by groups."""
    n = len(requests)
    base, first = np.zeros(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    if not limits.caches_prefixes:
        return Paths(base, first, np.zeros((1, 2), dtype=np.int64))
    bits = limits.block_tokens.bit_length() - 1
    full = requests.input_tokens >> bits
    if blocks is not None:
        owned = np.full((blocks.n_distinct + 1, 2), st.NONE, dtype=np.int64)
        element = np.empty((len(blocks.block) + 1, 2), dtype=np.int64)
        tree = (base, np.full(n, st.NONE, dtype=np.int64), first, element)
        unit = (blocks.n_block_tokens, bits)
        sizes = (_own(full), _resident(requests, blocks, bits))
        count = paths_of_blocks(_own(blocks.first), _own(blocks.block), owned, sizes, unit, tree)
        return Paths(base, first, np.ascontiguousarray(element[: count + 1]))
    group = _own(requests.prefix_group)
    last = np.full(int(group.max(initial=0)) + 1, st.NONE, dtype=np.int64)
    shared = np.where(requests.prefix_group >= 0, requests.prefix_tokens, 0) >> bits
    total = (requests.input_tokens + requests.output_tokens) >> bits
    element = np.empty((_most_elements(group) + 1, 2), dtype=np.int64)
    sizes = (_own(np.minimum(shared, full)), _own(total))
    count = paths_of_groups(group, last, sizes, base, first, element)
    return Paths(base, first, np.ascontiguousarray(element[: count + 1]))


def _resident(requests: Requests, blocks: PrefixBlocks, bits: int) -> Ints:
    """Full blocks of each request whose text is given, with its response where blocks have them.

    Where all requests have as many as their prompts begin, the last may be partly filled, and
    whatever follows in it is not known; with more they go on, with fewer all are full.
    """
    size, prompt = blocks.n_block_tokens, requests.input_tokens
    n_each, is_full = np.diff(blocks.first), blocks.has_responses
    n_given = n_each * size
    if is_full is None:
        is_full = bool((n_each != -(-prompt // size))[n_each > 0].any())
    if not is_full:
        return _own(np.minimum(n_given, prompt) >> bits)
    return _own(np.minimum(n_given, prompt + requests.output_tokens) >> bits)


def _own(column: Ints) -> Ints:
    """A column that kernels may take: another layout would be another compilation."""
    return np.array(column, dtype=np.int64)


def _most_elements(group: Ints) -> int:
    """Every member's path has at most one element more than the one before it."""
    sizes = np.bincount(group[group >= 0], minlength=1)
    return int((sizes * (sizes - 1) // 2).sum())
