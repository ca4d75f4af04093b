"""The same run once more, step by step, to observe the inter-token latency (ITL) of every token.

In a step every sequence that decodes gets one token, so a step that lasts t is a gap of t for each
of them. Bins are those of a float's exponent and the first ten bits of its mantissa.
"""

import math

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import lodge_all, one_engine
from gpuplan.simulation.serving.kernels.engine.loop import advance
from gpuplan.simulation.serving.kernels.engine.runs import EVENT, LOAD, route
from gpuplan.simulation.serving.kernels.engine.state import Engine, Engines, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import kernel, lodged, part

N_SUB = 1024
LOWEST_EXPONENT = -30


@part
def _note(e: Engine, counts: Ints) -> None:
    """The step in flight is a gap for everyone who decodes in it."""
    s = e.scalar
    if s[st.N_DECODES] == 0:
        return
    mantissa, exponent = math.frexp((s[st.FLIGHT_END] - s[st.NOW]) / st.TICKS_PER_S)
    octave = exponent - 1 - LOWEST_EXPONENT
    place = octave * N_SUB + int((2.0 * mantissa - 1.0) * N_SUB) + 1
    counts[min(max(place, 0), counts.shape[0] - 1)] += s[st.N_DECODES]


@part
def _observed(e: Engine, until: int, counts: Ints) -> int:
    """As `advance`, one step at a time."""
    s = e.scalar
    while True:
        if s[st.IN_FLIGHT]:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            _note(e, counts)
            instant = s[st.FLIGHT_END]
        else:
            instant = min(until, s[st.NOW] + 1)
        if advance(e, instant) == st.FOREVER:
            return st.FOREVER
        if not s[st.IN_FLIGHT] and s[st.NOW] >= until:
            return int(s[st.NOW])


@kernel
def observe(
    engines: Engines, accepted: Ints, pairs: Ints, policy: int, observed: Ints, counts: Ints
) -> None:
    """Requests in order of arrival; gaps counted by their length. Engines must not jump."""
    lodge_all(engines)
    event, load = observed[EVENT], observed[LOAD]
    n_engines, n = event.shape[0], accepted.shape[0]
    for turn in range(n + 1):
        i = accepted[turn] if turn < n else st.NONE
        now = engines.request[i, st.ARRIVE] if turn < n else st.FOREVER
        for r in range(n_engines):
            if event[r] <= now:
                e = lodged(one_engine(engines, r), engines.home[r])
                event[r] = _observed(e, now, counts)
                load[r] = engines.scalar[r, st.OUTSTANDING]
        if turn == n:
            return
        route(engines, i, turn, pairs, policy, observed)
