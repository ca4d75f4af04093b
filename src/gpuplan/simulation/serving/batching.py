"""Batches that run to their end: language models by their step table, others by a time table."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import Ints
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers, BatchTable
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import InputError, Problem
from gpuplan.simulation.serving.arrays import (
    N_BINS,
    ROUTERS,
    Refusals,
    drawn_pairs,
    engine_scalars,
    engine_state,
    outcome_of,
    refusals_of,
    request_records,
)
from gpuplan.simulation.serving.features import has_features
from gpuplan.simulation.serving.kernels.batching import (
    CLOSING,
    DELAY,
    IS_TABLE,
    MAX_BATCH,
    N_RULES,
    Batcher,
    run_batches,
)
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.cost import N_LINES, N_MIX, N_REGIMES

LONGEST_DELAY_S = 86400.0
LONGEST_BATCH_S = 86400.0
NO_LIMITS = EngineLimits(max_batch_tokens=1, max_sequences=1, n_blocks=1, block_tokens=16)


def simulate_batches(
    requests: Requests, fleet: Fleet, policy: BatchPolicy, *, bin_s: float
) -> Outcome:
    """A language model without joins: prompts padded to the longest, all run to the longest.

    First tokens are there when all prompts are computed; responses are returned together when the
    batch ends [Yu2022].
    """
    taken = refusals_of(requests, fleet.limits)
    sim = engine_state(requests, fleet, bin_s)
    batcher = _batcher(policy, lasts=np.zeros(1, dtype=np.int64), peaks_s=np.zeros((1, 2)))
    _run(sim, taken.accepted, batcher, router=fleet.router, seed=fleet.seed)
    return outcome_of(requests, sim, taken=taken, start_s=fleet.limits.start_s)


def simulate_servers(requests: Requests, servers: BatchServers, *, bin_s: float = 60.0) -> Outcome:
    """Whole requests, each one sample of a batch whose time a table gives."""
    _check(servers)
    taken = Refusals(np.arange(len(requests), dtype=np.int64), ())
    table = servers.table
    batcher = _batcher(
        servers.policy,
        lasts=np.rint(table.batch_s * st.TICKS_PER_S).astype(np.int64),
        peaks_s=np.ascontiguousarray(np.stack([table.arithmetic_s, table.memory_s], axis=1)),
    )
    batcher.rule[IS_TABLE] = 1
    sim = _bare_state(requests, servers.n_engines, bin_s)
    _run(sim, taken.accepted, batcher, router=servers.router, seed=servers.seed)
    return outcome_of(requests, sim, taken=taken, start_s=servers.start_s)


def policy_problems(policy: BatchPolicy, limits: EngineLimits | None = None) -> list[Problem]:
    """Why such batches cannot be formed; with limits, why such an engine cannot run them."""
    found = []
    if policy.max_batch < 1:
        found.append(Problem("max batch", f"got {policy.max_batch}", "use 1 or more"))
    delay_s = policy.max_delay_s
    if delay_s is not None and not 0.0 <= delay_s <= LONGEST_DELAY_S:
        fix = "use 0 or more, and at most a day"
        found.append(Problem("max delay", f"got {delay_s} s", fix))
    wrong = [size for size in policy.preferred_sizes if not 1 <= size <= policy.max_batch]
    if wrong:
        fix = f"use sizes from 1 to the largest batch, {policy.max_batch}"
        found.append(Problem("preferred sizes", f"got {wrong}", fix))
    if limits is not None and policy.max_batch > limits.max_sequences:
        fix = f"use at most {limits.max_sequences}, or raise max_num_seqs"
        found.append(Problem("max batch", f"got {policy.max_batch}", fix))
    if limits is not None and (has_features(limits) or limits.admission.is_ahead):
        what = (
            "with prefix caching, speculative decoding, priorities, long prefills, async steps "
            "or pipeline stages"
        )
        found.append(Problem("batching", what, "leave them out, or use continuous batching"))
    return found


def _check(servers: BatchServers) -> None:
    problems = policy_problems(servers.policy)
    if servers.n_engines < 1:
        problems.append(Problem("replicas", f"got {servers.n_engines}", "use 1 or more"))
    if servers.router not in ROUTERS:
        known = ", ".join(ROUTERS)
        problems.append(Problem("router", f"got {servers.router!r}", f"use one of {known}"))
    if not problems:
        problems += _table_problems(servers.table, servers.policy.max_batch)
    if problems:
        raise InputError("simulate", problems)


def _table_problems(table: BatchTable, max_batch: int) -> list[Problem]:
    columns = (table.batch_s, table.arithmetic_s, table.memory_s)
    if any(len(column) <= max_batch for column in columns):
        what = f"has {min(len(column) for column in columns) - 1} sizes"
        return [Problem("batch times", what, f"give every size up to {max_batch}")]
    times = table.batch_s[1 : max_batch + 1]
    if not ((times > 0) & (times <= LONGEST_BATCH_S)).all():
        what = f"from {times.min():g} s to {times.max():g} s"
        return [Problem("batch times", what, "must be above 0 and at most a day")]
    return []


def _batcher(policy: BatchPolicy, *, lasts: Ints, peaks_s: NDArray[np.float64]) -> Batcher:
    rule = np.zeros(N_RULES, dtype=np.int64)
    delay_s = policy.max_delay_s
    rule[MAX_BATCH] = policy.max_batch
    rule[DELAY] = st.FOREVER if delay_s is None else round(delay_s * st.TICKS_PER_S)
    rule[CLOSING] = st.FOREVER
    best = np.zeros(policy.max_batch + 1, dtype=np.int64)
    for size in policy.sizes:
        best[size:] = size
    return Batcher(rule, best, lasts, peaks_s)


def _run(sim: st.Engines, accepted: Ints, batcher: Batcher, *, router: str, seed: int) -> None:
    n_engines = len(sim.scalar)
    pairs = drawn_pairs(router, n_engines, len(accepted), seed=seed)
    observed = np.zeros((2, n_engines), dtype=np.int64)
    run_batches(sim, accepted, pairs, ROUTERS[router], observed, batcher)


def _bare_state(requests: Requests, n_engines: int, bin_s: float) -> st.Engines:
    """Engines of which only the clock, the queue and the bins are used."""
    return st.Engines(
        scalar=engine_scalars(n_engines, NO_LIMITS, bin_s),
        slot=np.zeros((n_engines, 1, st.N_SLOT), dtype=np.int64),
        ring=np.zeros((n_engines, 1), dtype=np.int64),
        word=np.zeros((n_engines, 1), dtype=np.int64),
        request=request_records(requests),
        bins=np.zeros((n_engines, N_BINS, st.N_SUMS)),
        flight_s=np.zeros((n_engines, 2)),
        pool=np.zeros(n_engines, dtype=np.int64),
        limit=np.ones((1, st.N_LIMITS), dtype=np.int64),
        lines=np.zeros((1, N_REGIMES, 1, N_LINES + 1), dtype=np.int64),
        slopes=np.zeros((1, N_REGIMES, N_LINES), dtype=np.int64),
        tokens_s=np.zeros((1, 1, 4)),
        rows_s=np.zeros((1, 1, 2)),
        mix=np.zeros((1, N_MIX)),
        home=np.zeros((n_engines, st.N_HOME), dtype=np.int64),
    )
