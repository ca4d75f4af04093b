"""What a checker is given for a plan, in: inputs and a plan; out: facts, and its fleets replayed.

The replay is made from what the plan itself names, so that a plan file can be held to account
without the choice that it came from.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from gpuplan.domain.columns import Ints, floats, ints
from gpuplan.domain.inference.serving import USUAL_RANK
from gpuplan.domain.model.network import Model
from gpuplan.domain.plan.answer import Answer, PlannedPool
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.facts import PlanFacts, ReplayedRequests
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.errors import InputError
from gpuplan.stages import begin
from gpuplan.studies.day_replay.day import POOL
from gpuplan.studies.naming import allowed_ids, model_named
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.adapters import with_slots
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.simulator import FleetSimulator
from gpuplan.studies.sizing.streams import Load, UserStreams
from gpuplan.studies.sizing.task import SizingTask, task_of

SAME_FRAC = 1e-3  # of the load: shares of pools add up to all of it
UNSEEN_DRAW = 3  # sizing and the replay of the choice used 0 to 2
POOL_DRAWS = 16  # between draws of pools behind one router: their streams are their own


def plan_facts(inputs: PlanInputs, answer: Answer) -> PlanFacts:
    """Cards, models, policy and replays of the plan's workloads."""
    begin("verifying the plan independently")
    (allowed, forbidden), _ = allowed_ids(inputs.scenario.policy, inputs.catalog)
    named = {work.name: _model(inputs, work) for work in inputs.scenario.workloads}
    return PlanFacts(
        scenario=inputs.scenario,
        accelerators={str(key): card for key, card in inputs.catalog.accelerators.items()},
        models={name: model for name, model in named.items() if model is not None},
        allowed=allowed,
        forbidden=forbidden,
        catalog_sha256=inputs.catalog.content_hash,
        replay=partial(fresh_replay, inputs, answer),
    )


def _model(inputs: PlanInputs, workload: Workload) -> Model | None:
    """The network by its layers; None where none is named or it is known by figures alone."""
    if workload.model is None or workload.model.name is None:
        return None
    try:
        return model_named(workload.model.name, inputs.request.store)
    except InputError:
        return None


def fresh_replay(
    inputs: PlanInputs, answer: Answer, name: str, *, draw: int = UNSEEN_DRAW
) -> ReplayedRequests | None:
    """The planned replicas of a workload at its peak, on new draws; None: it is not simulated.

    Of several pools behind one router, each has its share of the load.
    """
    workload = inputs.scenario.workload(name)
    pools = [] if answer.plan is None else [*merged(answer.plan.pools)]
    mine = [pool for pool in pools if pool.workload == name and pool.use.load_frac > 0]
    is_served = workload is not None and isinstance(workload.work, Serving)
    is_known = mine and all(pool.layout.role == "" for pool in mine)
    if not is_known or not is_served or workload is None or workload.capacities:
        return None
    task = task_of(workload, inputs.scenario, inputs.around)
    found = [
        _pool_replayed(task, pool, draw=draw + POOL_DRAWS * place)
        for place, pool in enumerate(mine)
    ]
    known = [each for each in found if each is not None]
    shares = [pool.use.load_frac for pool in mine]
    is_whole = abs(sum(shares) - 1.0) < SAME_FRAC and len(known) == len(mine)
    return _joined(known, shares) if is_whole else None


def _pool_replayed(task: SizingTask, pool: PlannedPool, *, draw: int) -> ReplayedRequests | None:
    """The share of the peak that is the pool's; None where it is not simulated."""
    if not pool.engine:
        return None  # no language model behind an engine: sized by its batches, not by a scheduler
    runs = _simulator(task, pool)
    n_serving = pool.n_replicas - pool.n_spare_replicas
    if runs is None or n_serving < 1:
        return None
    # SLOs are met until growth asks for more: the first period's peak is the one that they name.
    found = _replayed(runs, pool.use.load_frac * task.demand.peak_of(0, 0), n_serving, draw=draw)
    # Engines that prefill and engines that decode are replicas of pools of their own.
    return replace(found, n_replicas=n_serving * pool.layout.spread.n_roles)


def _joined(parts: Sequence[ReplayedRequests], shares: Sequence[float]) -> ReplayedRequests:
    """Requests of all pools, as many of each as its share of the load, evenly over one time."""
    if len(parts) == 1:
        return parts[0]
    n_all = min(len(part.arrive_s) / share for part, share in zip(parts, shares, strict=True))
    counts = [int(n_all * share) for share in shares]
    order = np.argsort(np.concatenate([np.arange(n) / n for n in counts]), kind="stable")
    columns = {
        field.name: np.concatenate(
            [getattr(part, field.name)[:n] for part, n in zip(parts, counts, strict=True)]
        )[order]
        for field in fields(ReplayedRequests)
        if field.name != "n_replicas"
    }
    return ReplayedRequests(n_replicas=sum(part.n_replicas for part in parts), **columns)


def _simulator(task: SizingTask, pool: PlannedPool) -> FleetSimulator | None:
    """The simulator of the pool's own layout: the planner's where it is at hand, else made anew."""
    for key, runs in task.context.simulators.items():
        if key[0] == task.workload.name and _is_of(pool, key[1]):
            return runs
    found = planned_candidate(task, pool)
    return None if found is None else task.simulator(found)


def planned_candidate(task: SizingTask, pool: PlannedPool) -> Candidate | None:
    """The candidate that the pool is made of; None where it was not chosen among candidates."""
    spread, accepted = pool.layout.spread, candidates_of(task)[0].accepted
    if pool.steps.max_loras:  # as many slots as the plan names
        rank = task.evaluator.load.adapters.rank if task.evaluator.load.adapters else USUAL_RANK
        accepted = tuple(with_slots(each, pool.steps.max_loras, rank) for each in accepted)
    if not spread.is_disaggregated and not pool.layout.role:
        return next((each for each in accepted if _is_of(pool, each)), None)
    # Groups are made of engines that are candidates themselves; so is the pool of one role.
    alone = replace(pool.layout, n_prefill=0, n_decode=0, network_bytes_per_s=None)
    found = next((each for each in accepted if _is_of(replace(pool, layout=alone), each)), None)
    is_group = found is not None and spread.is_disaggregated
    return replace(found, layout=spread) if is_group and found else found


def _is_of(pool: PlannedPool, candidate: Candidate) -> bool:
    return (
        str(candidate.accelerator) == pool.accelerator
        and candidate.layout == pool.layout.spread
        and candidate.precision == pool.precision
        and (candidate.share.name if candidate.share else "") == pool.layout.share
        and candidate.n_slots == pool.steps.max_loras
    )


def _replayed(
    runs: FleetSimulator, peak_per_s: float, n_serving: int, *, draw: int = UNSEEN_DRAW
) -> ReplayedRequests:
    """The peak on so many replicas; a large fleet by one of the pools that it consists of."""
    if isinstance(runs.streams, UserStreams):
        return _replayed_users(runs, runs.streams, n_serving)
    n = min(n_serving, POOL)
    rate = peak_per_s * n / n_serving
    requests = runs.streams.at(rate, runs.n_requests(rate), draw=draw)
    outcome = runs.outcome(requests, n)
    return _requests(outcome, np.arange(len(requests)), n_serving)


def _replayed_users(runs: FleetSimulator, users: UserStreams, n_serving: int) -> ReplayedRequests:
    """All clients of a closed loop on so many replicas, while all of them ask."""
    load = Load(users.peak_per_s, draw=UNSEEN_DRAW)
    played = users.played(runs.prepared, load, n_serving, n=runs.options.n_requests)
    return _requests(played.outcome, played.rows, n_serving)


def _requests(outcome: Outcome, rows: Ints, n_serving: int) -> ReplayedRequests:
    times, requests = outcome.times, outcome.requests
    return ReplayedRequests(
        n_replicas=n_serving,
        arrive_s=floats(requests.arrive_s[rows]),
        ttft_s=floats(times.ttft_s[rows]),
        tpot_s=floats(times.tpot_s[rows]),
        e2e_s=floats(times.e2e_s[rows]),
        output_tokens=ints(requests.output_tokens[rows]),
        is_finished=ints(times.is_finished[rows]),
    )
