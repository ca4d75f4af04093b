"""What happens to a fleet now and then: its clocks, its outages, its replicas that have drained.

It is compiled when something first happens, so that a fleet that never changes does not pay.
"""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.kernels.fleet import changes as ch
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.loop import CONTROL, OVER, run_elastic

# Changes in a row during which nobody arrives and no engine steps: then clocks alone go on, as
# where a pool at zero is never asked to grow, and those that wait will wait for ever.
MOST_IDLE_CHANGES = 50_000


def run_to_end(engines: AnyEngines, f: el.Elastic) -> el.Elastic:
    """Everything has happened; the state that is left. Who waits for ever is left unserved."""
    observed, n_idle = (-1, -1), 0
    while (code := run_elastic(engines, f)) != OVER:
        f = _with_room(f)
        if code == CONTROL:
            _control(engines, f)
        else:
            _drained(engines, f)
        now = (int(f.scalar[el.NEXT_FRESH]), int(engines.scalar[:, st.N_STEPS].sum()))
        n_idle = n_idle + 1 if now == observed else 0
        if n_idle > MOST_IDLE_CHANGES:
            break
        observed = now
    return f


def _with_room(f: el.Elastic) -> el.Elastic:
    """One change may write a line of the log for every replica, and for each a few."""
    if f.scalar[el.N_LOG] + 4 * len(f.replica) + 16 <= len(f.log):
        return f
    return f._replace(log=np.concatenate([f.log, np.zeros_like(f.log)]))


def _drained(engines: AnyEngines, f: el.Elastic) -> None:
    for r in np.flatnonzero(f.replica[:, el.STATUS] == el.DRAINING):
        if engines.scalar[r, st.OUTSTANDING] == 0:
            ch.change(engines, f, ch.DRAINED, int(r), st.NONE)


def _control(engines: AnyEngines, f: el.Elastic) -> None:
    """One change that is due now: a replica's, a given outage, a pool's clock; in this order."""
    now, n_outage = f.scalar[el.NOW], f.scalar[el.NEXT_OUTAGE]
    if f.due[1] == now:
        due = f.due[len(f.due) >> 1 :][f.replica[:, el.LEAF]]
        _change(engines, f, int(np.flatnonzero(due == now)[0]))
    elif n_outage < len(f.outage) and f.outage[n_outage, 0] == now:
        _break(engines, f)
    else:
        p = int(np.flatnonzero((f.pool[:, [el.ROLL_AT, el.TICK_AT]] == now).any(axis=1))[0])
        what = ch.ROLL if f.pool[p, el.ROLL_AT] == now else ch.TICK
        ch.change(engines, f, what, p, st.NONE)


def _change(engines: AnyEngines, f: el.Elastic, r: int) -> None:
    """The replica's own clock has come: the first of what it has in store."""
    row, now = f.replica[r], f.scalar[el.NOW]
    clocks = {
        el.READY_AT: ch.BECOME_READY,
        el.REPAIR_AT: ch.COME_BACK,
        el.FAIL_AT: ch.FAIL,
        el.NOTICE_AT: ch.TAKE_NOTICE,
        el.KILL_AT: ch.RUN_OUT,
    }
    what = next(what for clock, what in clocks.items() if row[clock] == now)
    f.scalar[el.N_FAILURES] += what == ch.FAIL
    ch.change(engines, f, what, r, st.NONE)


def _break(engines: AnyEngines, f: el.Elastic) -> None:
    """The next given outage; a replica that is not there cannot fail."""
    _, r, lasts = f.outage[f.scalar[el.NEXT_OUTAGE]]
    f.scalar[el.NEXT_OUTAGE] += 1
    if f.replica[r, el.STATUS] not in (el.OFF, el.FAILED):
        f.scalar[el.N_FAILURES] += 1
        ch.change(engines, f, ch.FAIL, int(r), int(lasts))
