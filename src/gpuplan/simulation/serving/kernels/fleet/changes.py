"""What happens to a fleet now and then, all of it behind one door."""

from gpuplan.simulation.serving.kernels.engine.kinds import lodge_all
from gpuplan.simulation.serving.kernels.engine.state import Engines
from gpuplan.simulation.serving.kernels.fleet.autoscale import roll, tick
from gpuplan.simulation.serving.kernels.fleet.lifecycle import (
    become_ready,
    come_back,
    drained,
    fail,
    run_out,
    take_notice,
)
from gpuplan.simulation.serving.kernels.fleet.state import Elastic
from gpuplan.simulation.serving.kernels.jit.compiled import held, seldom

BECOME_READY, COME_BACK, FAIL, TAKE_NOTICE, RUN_OUT, DRAINED, TICK, ROLL = range(8)


@seldom
def change(engines: Engines, f: Elastic, what: int, which: int, lasts: int) -> None:
    """This happens now to a replica, or to a pool; how long matters to a failure alone."""
    engines, f = held(engines), held(f)
    lodge_all(engines)
    if what == BECOME_READY:
        become_ready(engines, f, which)
    elif what == COME_BACK:
        come_back(engines, f, which)
    elif what == FAIL:
        fail(engines, f, which, lasts)
    elif what == TAKE_NOTICE:
        take_notice(engines, f, which)
    elif what == RUN_OUT:
        run_out(engines, f, which)
    elif what == DRAINED:
        drained(engines, f, which)
    elif what == TICK:
        tick(engines, f, which)
    else:
        roll(engines, f, which)
