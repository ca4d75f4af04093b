"""A closed loop of users before engines that step together.

A user asks again after the response and a pause. The group that has something to report first goes
first, by one step or by steps that nothing interrupts, so that nobody asks in another's past.
"""

from typing import NamedTuple

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import lodge_all, one_engine
from gpuplan.simulation.serving.kernels.engine.lockstep import (
    begin_all,
    earliest,
    is_idle,
    jump_all,
)
from gpuplan.simulation.serving.kernels.engine.loop import TAKEN, complete
from gpuplan.simulation.serving.kernels.engine.runs import EVENT, LOAD, route
from gpuplan.simulation.serving.kernels.engine.state import Engines, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import kernel, lodged, part


class UserTurns(NamedTuple):
    """Of each user when it asks and which row; of each row the next one and the pause before it."""

    due: Ints  # FOREVER: a response is awaited, or there is nothing more to ask
    row: Ints
    following: Ints
    pause: Ints


@part
def _one_move(engines: Engines, first: int, n: int, until: int, shared: Ints) -> int:
    """The group ends its step, or begins one, or jumps; when it has something to report next."""
    s = engines.scalar[first]
    if s[st.IN_FLIGHT]:
        if s[st.FLIGHT_END] <= until:
            for r in range(first, first + n):
                complete(lodged(one_engine(engines, r), engines.home[r]))
            return int(s[st.NOW])
        return int(s[st.FLIGHT_END])
    if is_idle(engines, first, n):
        return st.FOREVER
    if s[st.NOW] < until:
        planned = jump_all(engines, first, n, until, until, shared)
        if planned == TAKEN:
            return int(s[st.NOW])
    begin_all(engines, first, n, shared)
    return int(s[st.FLIGHT_END])


@part
def _next_user(due: Ints) -> int:
    """Who asks first; of equals the first."""
    best = 0
    for u in range(1, due.shape[0]):
        if due[u] < due[best]:
            best = u
    return best


@part
def _hear(engines: Engines, users: UserTurns) -> None:
    """Users whose response has come think about their next request, if they have one."""
    for u in range(users.due.shape[0]):
        i = users.row[u]
        if users.due[u] == st.FOREVER and i >= 0 and engines.request[i, st.END] >= 0:
            users.row[u] = users.following[i]
            if users.row[u] >= 0:
                users.due[u] = engines.request[i, st.END] + users.pause[users.row[u]]


@part
def _first_group(event: Ints, size: int) -> tuple[int, int]:
    """The group that has something to report first, and when the next one has."""
    best, at, following = 0, st.FOREVER, st.FOREVER
    for first in range(0, event.shape[0], size):
        when = earliest(event, first, size)
        if when < at:
            best, at, following = first, when, at
        else:
            following = min(following, when)
    return best, following


@part
def _outstanding(engines: Engines, first: int, n: int) -> int:
    total = st.ZERO
    for r in range(first, first + n):
        total += engines.scalar[r, st.OUTSTANDING]
    return total


@kernel
def run_lockstep_loop(
    engines: Engines, users: UserTurns, pairs: Ints, observed: Ints, group: Ints, shared: Ints
) -> None:
    """As `run_lockstep`, where responses decide when requests come."""
    lodge_all(engines)
    event, load, turn = observed[EVENT], observed[LOAD], st.ZERO
    size, policy = group[0], group[1]
    event[:] = st.FOREVER
    while True:
        u = _next_user(users.due)
        due = users.due[u]
        first, following = _first_group(event, size)
        at = earliest(event, first, size)
        if at == st.FOREVER and due == st.FOREVER:
            return
        # What ends at the instant of an arrival has left before the router looks.
        if at < due or (at == due and engines.scalar[first, st.IN_FLIGHT]):
            before = _outstanding(engines, first, size)
            ahead = _one_move(engines, first, size, min(due, following), shared)
            for r in range(first, first + size):
                event[r], load[r] = ahead, engines.scalar[r, st.OUTSTANDING]
            if _outstanding(engines, first, size) < before:
                _hear(engines, users)
            continue
        engines.request[users.row[u], st.ARRIVE] = due
        users.due[u] = st.FOREVER
        route(engines, users.row[u], turn, pairs, policy, observed)
        turn += 1
