"""Users who wait for each response: a loop and engines -> one run; a deployment -> its latencies.

Formulas of one batch do not hold where a replica works on several at once, in pipeline stages or on
data-parallel ranks, or reads a prompt in pieces. There the loop is run.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.demand.sessions import Conversation, closed_loop
from gpuplan.domain.columns import floats
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import ClosedLoop
from gpuplan.errors import PlannerError
from gpuplan.performance.kernels.regimes import ServingCase
from gpuplan.simulation.serving.fleet.run import resting, simulate_closed_loop
from gpuplan.simulation.serving.run import simulate_lockstep_loop
from gpuplan.studies.inference.deployment import EvaluatedDeployment
from gpuplan.studies.inference.open_loop import SEED, roomy_limits

BIN_S = 60.0
# Requests of one user: the first wave, those that count, and the last, when the crowd thins out.
# Few users keep step with each other, or do not, for tens of requests.
MOST_WAVES, LEAST_WAVES = 200, 8
MANY_REQUESTS = 2000


class LoopRun(NamedTuple):
    """Means of a run."""

    first_s: float  # TTFT of the users' first requests, which come together
    later_s: float
    tpot_s: float  # of later requests


def closed_loop_run(of: EvaluatedDeployment) -> LoopRun | None:
    """A run of the deployment's users; None where the simulator cannot count its iterations."""
    n_users = max(1, round(float(of.case.n_sequences)))
    n_waves = max(LEAST_WAVES, min(MOST_WAVES, MANY_REQUESTS // n_users))
    loop = _loop(of.case, n_users, n_waves)
    fleet = replace(of.fleet(1), limits=roomy_limits(of, loop.input_tokens + loop.output_tokens))
    try:
        times = closed_outcome(loop, fleet, bin_s=BIN_S).times
    except PlannerError:
        return None
    later = slice(n_users, len(loop.user) - n_users)
    return LoopRun(
        first_s=float(times.ttft_s[:n_users].mean()),
        later_s=float(times.ttft_s[later].mean()),
        tpot_s=float(times.tpot_s[later].mean()),
    )


def _loop(case: ServingCase, n_users: int, n_waves: int) -> ClosedLoop:
    """Requests as `simulate` draws those of users whose lengths have no stated spread."""
    message, answer = (
        TokenLengths(mean_tokens=max(1.0, float(mean)), shape="near")
        for mean in (case.input_tokens - case.cached_tokens, case.output_tokens)
    )
    shape = Conversation(
        message=message, answer=answer, n_turns_mean=1.0, think_s=0.0, answer_s_per_token=0.0
    )
    return closed_loop(n_users, n_waves, request=shape, seed=SEED)


def closed_outcome(loop: ClosedLoop, fleet: Fleet, *, bin_s: float) -> Outcome:
    """The loop against equal engines behind one router."""
    heard = _heard(loop, fleet.limits.start_s)
    if fleet.lockstep is not None:
        return simulate_lockstep_loop(heard, fleet, bin_s=bin_s)
    found = simulate_closed_loop(heard, resting(fleet), bin_s=bin_s)
    return replace(found.outcome, paid_engine_s=None)


def _heard(loop: ClosedLoop, outside_s: float) -> ClosedLoop:
    """A user thinks when the answer has come, which is after its time outside the engine."""
    is_later = np.diff(loop.user, prepend=loop.user[0] - 1) == 0
    return replace(loop, think_s=floats(loop.think_s + np.where(is_later, outside_s, 0.0)))
