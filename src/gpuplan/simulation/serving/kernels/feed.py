"""More requests for engines that have begun: to each in turn, then on to an instant."""

from gpuplan.simulation.serving.kernels.compiled import kernel
from gpuplan.simulation.serving.kernels.held import held
from gpuplan.simulation.serving.kernels.kinds import advance, one_engine
from gpuplan.simulation.serving.kernels.state import LAST_INSTANT, Engines, Ints, append_waiting


@kernel
def feed_apart(engines: Engines, accepted: Ints, n_before: int) -> None:
    """As `run_apart`, after so many requests that went before."""
    n_engines = engines.scalar.shape[0]
    for turn in range(accepted.shape[0]):
        append_waiting(
            engines.scalar[(n_before + turn) % n_engines], engines.request, accepted[turn]
        )
    for r in range(n_engines):
        advance(held(one_engine(engines, r)), engines.limit[engines.pool[r], LAST_INSTANT])
