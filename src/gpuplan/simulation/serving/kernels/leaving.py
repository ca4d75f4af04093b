"""Jobs leave the replica they were sent to without an answer: their clients have gone."""

from gpuplan.simulation.serving.kernels.clients import gave_up, retry
from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.elastic_state import (
    ASKED_AT,
    IS_ABORTED,
    IS_FOLLOWING,
    LENGTH,
    N_ABORTING,
    N_ABORTS,
    N_TIMEOUTS,
    NEVER,
    NEXT_HELD,
    NEXT_SENT,
    NOW,
    POOL,
    POOL_OUT,
    SENT_HEAD,
    SENT_TAIL,
    SERVICE,
    STAGE,
    TIMED_OUT,
    TIMEOUT,
    Elastic,
    look_at,
    show_load,
)
from gpuplan.simulation.serving.kernels.held import held
from gpuplan.simulation.serving.kernels.kinds import one_engine
from gpuplan.simulation.serving.kernels.removal import at_boundary, forget_work
from gpuplan.simulation.serving.kernels.removal_kinds import abort
from gpuplan.simulation.serving.kernels.state import (
    END,
    FOREVER,
    NONE,
    OUTPUT,
    OUTSTANDING,
    STOP,
    Engines,
)


@part
def first_length(f: Elastic, i: int) -> int:
    """Tokens that the first stage makes: one, where another stage makes the rest."""
    for p in range(f.pool.shape[0]):
        if f.serves[1, f.job[i, SERVICE], p] > 0.0:
            return 1
    return int(f.job[i, LENGTH])


@part
def fresh_start(engines: Engines, f: Elastic, i: int) -> None:
    """All that was computed for the job is lost."""
    forget_work(engines.request, i)
    f.job[i, STAGE] = 0
    is_split = f.serves.shape[0] > 1
    engines.request[i, OUTPUT] = first_length(f, i) if is_split else f.job[i, LENGTH]


@rare
def time_out(engines: Engines, f: Elastic, i: int) -> None:
    """The client has gone; it may ask again."""
    f.scalar[N_TIMEOUTS] += 1
    f.job[i, IS_ABORTED] = 0
    fresh_start(engines, f, i)
    if not retry(f, i, f.job[i, ASKED_AT] + f.scalar[TIMEOUT]):
        gave_up(f, i, TIMED_OUT)


@part
def _sweep_sent(engines: Engines, f: Elastic, r: int) -> None:
    """The list of what was sent keeps what is still there, and what ended and is followed yet."""
    is_followed = f.scalar[IS_FOLLOWING] != 0
    kept, i = NONE, f.replica[r, SENT_HEAD]
    f.replica[r, SENT_HEAD] = NONE
    while i >= 0:
        following = f.job[i, NEXT_SENT]
        if (engines.request[i, END] < 0 or is_followed) and not f.job[i, IS_ABORTED]:
            if kept >= 0:
                f.job[kept, NEXT_SENT] = i
            else:
                f.replica[r, SENT_HEAD] = i
            f.job[i, NEXT_SENT] = NONE
            kept = i
        i = following
    f.replica[r, SENT_TAIL] = kept


@rare
def remove_aborted(engines: Engines, f: Elastic, r: int) -> None:
    """Clients that have gone are noticed between two steps."""
    e = held(one_engine(engines, r))
    if not at_boundary(e):
        return
    aborted, i, row = NONE, f.replica[r, SENT_HEAD], f.replica[r]
    while i >= 0:
        if f.job[i, IS_ABORTED]:
            if engines.request[i, END] < 0:
                abort(e, i)
                f.pool[row[POOL], POOL_OUT] -= 1
            f.job[i, NEXT_HELD] = aborted
            aborted = i
        i = f.job[i, NEXT_SENT]
    _sweep_sent(engines, f, r)
    f.scalar[N_ABORTING] -= row[N_ABORTS]
    row[N_ABORTS] = 0
    e.scalar[STOP] = FOREVER
    show_load(engines, f, r)
    look_at(f, r, f.scalar[NOW] + 1 if e.scalar[OUTSTANDING] > 0 else NEVER)
    while aborted >= 0:
        following = f.job[aborted, NEXT_HELD]
        time_out(engines, f, aborted)
        aborted = following
