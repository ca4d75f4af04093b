"""Several equal engines behind a router: requests in order of arrival in, times of each out."""

from gpuplan.simulation.serving.kernels.drive import advance
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import lodge_all, one_engine
from gpuplan.simulation.serving.kernels.engine.lists import append_waiting
from gpuplan.simulation.serving.kernels.engine.state import Engines, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import kernel, lodged, part

ROUND_ROBIN, LEAST_OUTSTANDING, POWER_OF_TWO = range(3)
EVENT, LOAD = range(2)


@kernel
def run_apart(engines: Engines, accepted: Ints, n_before: int) -> None:
    """Each request goes to the next engine in turn, after so many that went before it.

    Engines then never meet: each runs on to the instant that its limits name.
    """
    lodge_all(engines)
    n_engines = engines.scalar.shape[0]
    for turn in range(accepted.shape[0]):
        r = (n_before + turn) % n_engines
        append_waiting(engines.scalar[r], engines.request, accepted[turn])
    for r in range(n_engines):
        e = lodged(one_engine(engines, r), engines.home[r])
        advance(e, e.limit[st.LAST_INSTANT])


@part
def _fewest(load: Ints) -> int:
    """The engine with the fewest requests; the first of equals."""
    best, least = 0, load[0]
    for r in range(1, load.shape[0]):
        if load[r] < least:
            best, least = r, load[r]
    return best


@part
def _better(load: Ints, a: int, b: int) -> int:
    """Of two engines the one with fewer requests; the first of equals."""
    if load[a] == load[b]:
        return min(a, b)
    return a if load[a] < load[b] else b


@part
def route(engines: Engines, i: int, turn: int, pairs: Ints, policy: int, observed: Ints) -> None:
    """The request that comes now goes to one engine: in turn, by load, or of a drawn pair."""
    event, load = observed[EVENT], observed[LOAD]
    if policy == POWER_OF_TWO:
        chosen = _better(load, pairs[turn, 0], pairs[turn, 1])
    elif policy == LEAST_OUTSTANDING:
        chosen = _fewest(load)
    else:
        chosen = turn % load.shape[0]
    append_waiting(engines.scalar[chosen], engines.request, i)
    event[chosen] = engines.request[i, st.ARRIVE]
    load[chosen] += 1


@kernel
def run_routed(engines: Engines, accepted: Ints, pairs: Ints, policy: int, observed: Ints) -> None:
    """Each request goes where fewest are outstanding: of all engines, or of a drawn pair.

    What ends at the instant of an arrival has left before the router looks. `seen` is what the
    router knows: when each engine next has something to report, and how many requests it has.
    """
    lodge_all(engines)
    event, load, n = observed[EVENT], observed[LOAD], accepted.shape[0]
    for turn in range(n + 1):
        is_over = turn == n
        i = st.NONE if is_over else accepted[turn]
        now = engines.limit[0, st.LAST_INSTANT] if is_over else engines.request[i, st.ARRIVE]
        for r in range(event.shape[0]):
            if event[r] <= now or is_over:
                e = lodged(one_engine(engines, r), engines.home[r])
                event[r] = advance(e, now)
                load[r] = engines.scalar[r, st.OUTSTANDING]
        if is_over:
            return
        route(engines, i, turn, pairs, policy, observed)
