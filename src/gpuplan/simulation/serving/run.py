"""Requests and a fleet in, an outcome out."""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Ints, floats
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import ClosedLoop, PrefixBlocks, Requests
from gpuplan.errors import InputError, Problem
from gpuplan.simulation.serving.arrays import (
    ROUTERS,
    Refusals,
    drawn_pairs,
    engine_state,
    loop_requests,
    loop_turns,
    outcome_of,
    refusals_of,
)
from gpuplan.simulation.serving.batching import policy_problems, simulate_batches
from gpuplan.simulation.serving.features import (
    has_features,
    problems_of,
    with_features,
    with_stages,
)
from gpuplan.simulation.serving.groups import (
    bounds,
    group_problems,
    holds_each,
    with_groups,
    with_hybrid,
)
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.cost import SCALE
from gpuplan.simulation.serving.kernels.engine.lockstep import run_lockstep
from gpuplan.simulation.serving.kernels.engine.lockstep_loop import UserTurns, run_lockstep_loop
from gpuplan.simulation.serving.kernels.engine.runs import (
    run_apart,
    run_routed,
)
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.sglang import is_sglang, sglang_problems, with_sglang
from gpuplan.simulation.serving.text import (
    is_idle_cache,
    shares_text,
    with_lookups,
    without_cache,
)

LONGEST_S = 40 * 86400.0  # the clock counts picoseconds in 62 bits
BIN_S = 60.0


def simulate_serving(
    requests: Requests,
    fleet: Fleet,
    *,
    bin_s: float = BIN_S,
    method: str = "jump",
    blocks: PrefixBlocks | None = None,
) -> Outcome:
    """Every request's times and the engines' utilization; the method changes the speed alone.

    "jump" skips over unchanged batches, "step" does not. `blocks` is the text of the prompts;
    without it, groups tell what prompts have in common.
    """
    check_fleet(requests, fleet)
    if fleet.batching is not None:
        return simulate_batches(requests, fleet, fleet.batching, bin_s=bin_s)
    if fleet.limits.admission.blocks.hybrid is not None:
        return _hybrid_outcome(requests, fleet, bin_s=bin_s, method=method, blocks=blocks)
    if is_idle_cache(fleet.limits) and not shares_text(requests, blocks):
        bare = replace(fleet, limits=without_cache(fleet.limits))
        found, taken = _simulated(requests, bare, bin_s=bin_s, method=method, blocks=None)
        if not found.scalar[:, st.N_PREEMPTIONS].any():
            start_s = fleet.limits.start_s
            return with_lookups(outcome_of(requests, found, taken=taken, start_s=start_s))
    found, taken = _simulated(requests, fleet, bin_s=bin_s, method=method, blocks=blocks)
    return outcome_of(requests, found, taken=taken, start_s=fleet.limits.start_s)


def _hybrid_outcome(
    requests: Requests, fleet: Fleet, *, bin_s: float, method: str, blocks: PrefixBlocks | None
) -> Outcome:
    """Groups of layers: block by block only where blocks may run out or text is found again."""
    limits = fleet.limits
    if (
        method == "jump"
        and not shares_text(requests, blocks)
        and holds_each(limits, _total(requests))
    ):
        scarce, ample = bounds(limits, requests)
        found, other = (
            simulate_serving(requests, replace(fleet, limits=each), bin_s=bin_s)
            for each in (scarce, ample)
        )
        if _is_same_run(found, other):
            return _of_blocks(found, scarce.n_blocks / limits.n_blocks)
    grouped = replace(fleet, limits=with_hybrid(limits))
    return simulate_serving(requests, grouped, bin_s=bin_s, method=method, blocks=blocks)


def _total(requests: Requests) -> Ints:
    found: Ints = requests.input_tokens + requests.output_tokens
    return found


def _is_same_run(found: Outcome, other: Outcome) -> bool:
    """Nobody was preempted, refused or kept waiting by what the runs differ in."""
    pairs = ((each.times.wait_s, each.times.e2e_s) for each in (found, other))
    is_same = all(np.array_equal(a, b) for a, b in zip(*pairs, strict=True))
    return is_same and found.totals.n_preemptions == found.n_refused == other.n_refused == 0


def _of_blocks(found: Outcome, ratio: float) -> Outcome:
    """The run with shares of a pool that is larger by this ratio's inverse."""
    use = replace(found.use, cache_frac=floats(found.use.cache_frac * ratio))
    n_free = round(found.totals.n_free_blocks / ratio)
    return replace(found, use=use, totals=replace(found.totals, n_free_blocks=n_free))


def _simulated(
    requests: Requests, fleet: Fleet, *, bin_s: float, method: str, blocks: PrefixBlocks | None
) -> tuple[AnyEngines, Refusals]:
    """The engines after the run, and who was not taken."""
    taken = refusals_of(requests, fleet.limits)
    sim = _engines(requests, fleet, bin_s=bin_s, blocks=blocks)
    _run(sim, taken.accepted, fleet, method=method)
    return sim, taken


def _engines(
    requests: Requests, fleet: Fleet, *, bin_s: float, blocks: PrefixBlocks | None = None
) -> AnyEngines:
    sim: AnyEngines = engine_state(requests, fleet, bin_s)
    if is_sglang(fleet.limits):
        sim = with_sglang(sim, requests, (fleet.limits,), blocks=blocks)
    elif has_features(fleet.limits, requests):
        sim = with_features(sim, requests, (fleet.limits,), blocks=blocks, seed=fleet.seed)
        if fleet.limits.admission.n_stages > 1:
            sim = with_stages(sim, fleet.limits.admission.n_stages)
        elif fleet.limits.groups:
            sim = with_groups(sim, requests, fleet.limits)
    return sim


def simulate_lockstep_loop(loop: ClosedLoop, fleet: Fleet, *, bin_s: float = BIN_S) -> Outcome:
    """Users who wait for each response, before data-parallel ranks that step together.

    Requests of the outcome are in order of arrival, which the fleet itself decides.
    """
    requests = loop_requests(loop)
    check_fleet(requests, fleet)
    if is_idle_cache(fleet.limits) and not shares_text(requests, None):
        bare = replace(fleet, limits=without_cache(fleet.limits))
        found = _looped(loop, requests, bare, bin_s=bin_s)
        if found.totals.n_preemptions == 0:
            return with_lookups(found)
    return _looped(loop, requests, fleet, bin_s=bin_s)


def _looped(loop: ClosedLoop, requests: Requests, fleet: Fleet, *, bin_s: float) -> Outcome:
    taken = refusals_of(requests, fleet.limits)
    sim = _engines(requests, fleet, bin_s=bin_s)
    pauses = np.rint(loop.think_s * st.TICKS_PER_S).astype(np.int64)
    firsts = taken.accepted[np.diff(loop.user[taken.accepted], prepend=-1) != 0]
    following = loop_turns(loop, taken.accepted)
    _run_loop(sim, UserTurns(pauses[firsts], firsts, following, pauses), fleet)
    found = outcome_of(requests, sim, taken=taken, start_s=fleet.limits.start_s)
    order = np.argsort(sim.request[:, st.ARRIVE], kind="stable")
    arrive_s = floats(sim.request[order, st.ARRIVE] / st.TICKS_PER_S)
    return replace(
        found,
        requests=replace(requests.take(order), arrive_s=arrive_s),
        times=found.times.take(order),
    )


def _run_loop(sim: AnyEngines, users: UserTurns, fleet: Fleet) -> None:
    sim.limit[:, st.IS_JUMPING] = True
    sim.limit[:, st.LAST_INSTANT] = st.FOREVER
    pairs = drawn_pairs(fleet.router, fleet.n_engines, len(users.pause), seed=fleet.seed)
    observed = np.zeros((2, fleet.n_engines), dtype=np.int64)
    group, shared = _group(fleet)
    if len(users.due):
        run_lockstep_loop(sim, users, pairs, observed, group, shared)


def _group(fleet: Fleet) -> tuple[Ints, Ints]:
    """Engines of one group and the router; what a group does together, in ticks."""
    assert fleet.lockstep is not None
    sizes = (fleet.lockstep.n_engines, ROUTERS[fleet.router])
    shared = np.rint(fleet.lockstep.shared_s * SCALE).astype(np.int64)
    return np.array(sizes, dtype=np.int64), shared


def check_fleet(requests: Requests, fleet: Fleet) -> None:
    """InputError where these engines cannot be simulated; all that is wrong at once."""
    limits, problems = fleet.limits, []
    if fleet.n_engines < 1:
        problems.append(Problem("replicas", f"got {fleet.n_engines}", "use 1 or more"))
    if fleet.lockstep is not None and fleet.n_engines % fleet.lockstep.n_engines:
        what = f"{fleet.n_engines} engines in groups of {fleet.lockstep.n_engines}"
        problems.append(Problem("replicas", what, "use whole groups"))
    if fleet.router not in ROUTERS:
        known = ", ".join(ROUTERS)
        problems.append(Problem("router", f"got {fleet.router!r}", f"use one of {known}"))
    if limits.max_sequences < 1 or limits.max_batch_tokens < limits.max_sequences:
        what = f"{limits.max_batch_tokens} tokens for {limits.max_sequences} sequences"
        fix = "give at least one sequence, and every sequence at least one token"
        problems.append(Problem("max_num_batched_tokens", what, fix))
    if (size := limits.block_tokens) < 1 or size & (size - 1):
        problems.append(Problem("block tokens", f"got {size}", "use a power of two, such as 16"))
    if limits.n_blocks < 1:
        what = f"room for {limits.n_blocks} blocks"
        problems.append(Problem("KV cache", what, "use a smaller model or more memory"))
    at_s = requests.arrive_s
    if len(at_s) and at_s[-1] - at_s[0] > LONGEST_S:
        what = f"span {(at_s[-1] - at_s[0]) / 86400:.4g} days"
        problems.append(Problem("arrivals", what, "split them: at most 40 days"))
    is_lockstep = fleet.lockstep is not None
    problems += [*problems_of(limits), *sglang_problems(limits, is_lockstep=is_lockstep)]
    problems += group_problems(limits, is_lockstep=is_lockstep)
    if fleet.batching is not None:
        problems += policy_problems(fleet.batching, limits)
    if problems:
        raise InputError("simulate", problems)


def _run(sim: AnyEngines, accepted: Ints, fleet: Fleet, *, method: str) -> None:
    sim.limit[:, st.IS_JUMPING] = method == "jump" and not fleet.limits.groups
    sim.limit[:, st.LAST_INSTANT] = st.FOREVER
    if fleet.router == "round_robin" and fleet.lockstep is None:
        run_apart(sim, accepted, 0)
        return
    pairs = drawn_pairs(fleet.router, fleet.n_engines, len(accepted), seed=fleet.seed)
    observed = np.zeros((2, fleet.n_engines), dtype=np.int64)
    if fleet.lockstep is None:
        run_routed(sim, accepted, pairs, ROUTERS[fleet.router], observed)
        return
    run_lockstep(sim, accepted, pairs, observed, *_group(fleet))
