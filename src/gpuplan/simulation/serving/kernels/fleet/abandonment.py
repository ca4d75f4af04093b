"""Abandonment: clients time out, and their requests leave the replica without a response."""

from gpuplan.simulation.serving.kernels.drive import abort
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import one_engine
from gpuplan.simulation.serving.kernels.engine.removal import at_boundary, forget_work
from gpuplan.simulation.serving.kernels.engine.state import Engines
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.clients import gave_up, retry
from gpuplan.simulation.serving.kernels.fleet.state import Elastic, look_at, show_load
from gpuplan.simulation.serving.kernels.jit.compiled import lodged, part, rare


@part
def first_length(f: Elastic, i: int) -> int:
    """Tokens that the first stage makes: one, where another stage makes the rest."""
    for p in range(f.pool.shape[0]):
        if f.serves[1, f.job[i, el.SERVICE], p] > 0.0:
            return 1
    return int(f.job[i, el.LENGTH])


@part
def fresh_start(engines: Engines, f: Elastic, i: int) -> None:
    """All that was computed for the job is lost."""
    forget_work(engines.request, i)
    f.job[i, el.STAGE] = 0
    is_split = f.serves.shape[0] > 1
    engines.request[i, st.OUTPUT] = first_length(f, i) if is_split else f.job[i, el.LENGTH]


@rare
def time_out(engines: Engines, f: Elastic, i: int) -> None:
    """The client has gone; it may ask again."""
    f.scalar[el.N_TIMEOUTS] += 1
    f.job[i, el.IS_ABORTED] = 0
    fresh_start(engines, f, i)
    if not retry(f, i, f.job[i, el.ASKED_AT] + f.scalar[el.TIMEOUT]):
        gave_up(f, i, el.TIMED_OUT)


@part
def _sweep_sent(engines: Engines, f: Elastic, r: int) -> None:
    """The list of what was sent keeps what is still there, and what ended and is followed yet."""
    is_followed = f.scalar[el.IS_FOLLOWING] != 0
    retained, i = st.NONE, f.replica[r, el.SENT_HEAD]
    f.replica[r, el.SENT_HEAD] = st.NONE
    while i >= 0:
        following = f.job[i, el.NEXT_SENT]
        if (engines.request[i, st.END] < 0 or is_followed) and not f.job[i, el.IS_ABORTED]:
            if retained >= 0:
                f.job[retained, el.NEXT_SENT] = i
            else:
                f.replica[r, el.SENT_HEAD] = i
            f.job[i, el.NEXT_SENT] = st.NONE
            retained = i
        i = following
    f.replica[r, el.SENT_TAIL] = retained


@rare
def remove_aborted(engines: Engines, f: Elastic, r: int) -> None:
    """Clients that have gone are noticed between two steps."""
    e = lodged(one_engine(engines, r), engines.home[r])
    if not at_boundary(e):
        return
    aborted, i, row = st.NONE, f.replica[r, el.SENT_HEAD], f.replica[r]
    while i >= 0:
        if f.job[i, el.IS_ABORTED]:
            if engines.request[i, st.END] < 0:
                abort(e, i)
                f.pool[row[el.POOL], el.POOL_OUT] -= 1
            f.job[i, el.NEXT_HELD] = aborted
            aborted = i
        i = f.job[i, el.NEXT_SENT]
    _sweep_sent(engines, f, r)
    f.scalar[el.N_ABORTING] -= row[el.N_ABORTS]
    row[el.N_ABORTS] = 0
    e.scalar[st.STOP] = st.FOREVER
    show_load(engines, f, r)
    look_at(f, r, f.scalar[el.NOW] + 1 if e.scalar[st.OUTSTANDING] > 0 else el.NEVER)
    while aborted >= 0:
        following = f.job[aborted, el.NEXT_HELD]
        time_out(engines, f, aborted)
        aborted = following
