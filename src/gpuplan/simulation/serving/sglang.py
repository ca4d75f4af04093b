"""Engines that schedule as SGLang does: values as the arrays of its kernels, and what they lack."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.engine import EngineLimits, PrefillFirst
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.errors import InvariantError, Problem, one
from gpuplan.simulation.serving.features import paths_of
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.kernels.sglang import state as sg

NAME = "SGLang's scheduler"
FIRST_RATIO = 0.7  # of an answer that is set aside while its length is not known
LEAST_FACTOR = 0.14
MOST_LPM_PAGE = 32
NODES_PER_REQUEST = 16


def is_sglang(limits: EngineLimits) -> bool:
    """True where requests are scheduled by SGLang's rules."""
    return limits.admission.prefill_first is not None


def sglang_problems(limits: EngineLimits, *, is_lockstep: bool = False) -> list[Problem]:
    """Why these rules cannot be simulated; nothing where the engine is not SGLang's."""
    rules = limits.admission.prefill_first
    if rules is None:
        return []
    is_wide = rules.is_longest_first and limits.block_tokens > MOST_LPM_PAGE
    is_narrow = rules.is_mixed and (rules.chunk_tokens or 0) <= limits.max_sequences
    least = (rules.max_prefill_tokens, rules.chunk_tokens or limits.block_tokens)
    found = {
        "speculative decoding": limits.drafts is not None,
        "data-parallel ranks that step together": is_lockstep,
        "priorities": limits.scheduling == "priority",
        "a limit on long prefills": limits.long_prefill_tokens is not None,
        f"LPM with pages of more than {MOST_LPM_PAGE} tokens": is_wide,
        "mixed chunks no larger than the most sequences": is_narrow,
        "prefill batches smaller than a page": min(least) < limits.block_tokens,
        "a conservativeness that is no positive number": not 0
        < rules.conservativeness_ratio
        < np.inf,
    }
    fix = "not simulated: leave it out, or simulate vLLM"
    return [Problem(NAME, f"with {what}", fix) for what, is_there in found.items() if is_there]


def most_tokens(limits: EngineLimits) -> int:
    """Prompt and answer of a request that is let in when nobody else is there."""
    size, page = limits.n_blocks * limits.block_tokens, limits.block_tokens
    return size - page - 1 if limits.caches_prefixes else size - 2 * page - 2


def requested_tokens(requests: Requests, rules: PrefillFirst, limits: EngineLimits) -> Ints:
    """Tokens that each answer may have: as asked for, never less than it has, never too many.

    The engine cuts what is asked for to what its cache, and the model's context, can hold.
    """
    given = rules.max_tokens if rules.max_tokens is not None else st.NONE
    requested = np.where(requests.max_tokens >= 0, requests.max_tokens, given)
    longest = most_tokens(limits)
    if limits.max_context_tokens is not None:
        longest = min(longest, limits.max_context_tokens)
    cut = np.minimum(requested, longest - requests.input_tokens)
    return np.maximum(cut, requests.output_tokens).astype(np.int64)


def with_sglang(
    sim: st.Engines,
    requests: Requests,
    limits: Sequence[EngineLimits],
    *,
    blocks: PrefixBlocks | None,
) -> sg.SglangEngines:
    """The same engines with SGLang's rules, and an empty radix tree; one entry of limits a pool."""
    n, widest = sim.slot.shape[:2]
    caching = next((one for one in limits if one.caches_prefixes), limits[0])
    paths = paths_of(requests, caching, blocks)
    sim.scalar[:, st.GAIN] = 1
    given = {"slot": _slots(sim.slot), "flight_s": np.zeros((n, 4))}
    return sg.SglangEngines(
        **(sim._asdict() | given),
        rule=np.array([_rules(one, requests) for one in limits], dtype=np.int64),
        own=_own(n),
        real=_reals(limits)[sim.pool],
        flight=np.zeros((n, 2, sg.N_FLIGHT), dtype=np.int64),
        batch=np.zeros((n, 2, widest + 1, sg.N_ROW), dtype=np.int64),
        scratch=np.zeros((n, 2, max(widest, sg.MOST_SORTED) + 2, 2), dtype=np.int64),
        requested=_requested(requests, limits[0], paths.base),
        path_first=paths.first,
        path=paths.element,
        **_tree(n, max(_most_nodes(requests, one) for one in limits)),
    )


def _slots(slot: Ints) -> Ints:
    wide = np.zeros((*slot.shape[:2], sg.N_OWN_SLOT), dtype=np.int64)
    wide[:, :, : st.N_SLOT] = slot
    wide[:, :, st.ID] = st.NONE
    return wide


def _requested(requests: Requests, limits: EngineLimits, base: Ints) -> Ints:
    requested = np.zeros((len(requests), sg.N_ASKED), dtype=np.int64)
    rules = limits.admission.prefill_first or PrefillFirst()
    requested[:, sg.ASKED] = requested_tokens(requests, rules, limits)
    requested[:, sg.BASE] = base
    return requested


def _tree(n: int, n_nodes: int) -> dict[str, Any]:
    """Empty trees; pages of nodes that no run reaches are never touched."""
    node = np.empty((n, n_nodes, sg.N_NODE), dtype=np.int64)
    node[:, sg.ROOT] = 0
    node[:, sg.ROOT, sg.PARENT] = st.NONE
    n_table = 1 << min(16, max(4, n_nodes.bit_length()))
    table = np.full((n, n_table), st.NONE, dtype=np.int64)
    return {"table": table, "node": node, "heap": np.empty((n, n_nodes, 2), dtype=np.int64)}


def _most_nodes(requests: Requests, limits: EngineLimits) -> int:
    """Nodes that a tree can have at once: of a page at least, a few for each request and chunk."""
    if not limits.caches_prefixes:
        return 1
    rules = limits.admission.prefill_first
    chunk = (rules and rules.chunk_tokens) or limits.max_batch_tokens
    n_cuts = int((requests.input_tokens // chunk).sum())
    return min(limits.n_blocks, NODES_PER_REQUEST * (len(requests) + 64) + n_cuts) + 2


def _ignores_eos(rules: PrefillFirst, requests: Requests) -> bool:
    """Whether the engine knows lengths; by default where nobody asks for more than it gets."""
    if rules.ignores_eos is not None:
        return rules.ignores_eos
    return rules.max_tokens is None and not bool((requests.max_tokens >= 0).any())


def _rules(limits: EngineLimits, requests: Requests) -> list[int]:
    rules = limits.admission.prefill_first or PrefillFirst()
    values = [0] * sg.N_RULES
    values[sg.CHUNK], values[sg.MAX_PREFILL] = rules.chunk_tokens or 0, rules.max_prefill_tokens
    values[sg.IS_MIXING], values[sg.IS_LPM] = rules.is_mixed, rules.is_longest_first
    values[sg.IGNORES_EOS] = _ignores_eos(rules, requests)
    values[sg.KNOWS_ENDS] = rules.knows_ends
    values[sg.HAS_TREE] = limits.caches_prefixes
    return values


def _own(n: int) -> Ints:
    own = np.zeros((n, sg.N_OWN), dtype=np.int64)
    own[:, [sg.CHUNKED, sg.READY_TAIL, sg.NODE_SPARE]] = st.NONE
    own[:, sg.NODE_TOP] = 1
    own[:, sg.STAMP], own[:, sg.STRIDE] = np.arange(1, n + 1), n
    return own


def _reals(limits: Sequence[EngineLimits]) -> Floats:
    real = np.zeros((len(limits), sg.N_REALS))
    for row, one_pool in zip(real, limits, strict=True):
        rules = one_pool.admission.prefill_first or PrefillFirst()
        first = min(FIRST_RATIO * rules.conservativeness_ratio, 1.0)
        row[sg.RATIO] = row[sg.INIT] = first
        row[sg.LEAST] = first * LEAST_FACTOR
        row[sg.DECAY] = (first - row[sg.LEAST]) / sg.DECAY_STEPS
    return real


def check_room(sim: AnyEngines) -> None:
    """InvariantError where a tree had more nodes than there was room for."""
    if isinstance(sim, sg.SglangEngines) and np.any(sim.own[:, sg.IS_SHORT]):
        what = "its radix tree outgrew the room that was made for it"
        raise one(InvariantError, "simulate", NAME, what, "please report it")
