"""Inter-token latencies (ITL), from a second run that takes every step."""

from typing import Any

import numpy as np

from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Summary
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import InputError, one
from gpuplan.simulation.serving.arrays import ROUTERS, engine_state, refusals_of
from gpuplan.simulation.serving.features import has_features
from gpuplan.simulation.serving.intervals import PERCENTILES
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.gaps import observe
from gpuplan.simulation.serving.run import check_fleet
from gpuplan.simulation.serving.sglang import is_sglang
from gpuplan.simulation.serving.sketch import N_BINS, middles


def gaps_of(requests: Requests, fleet: Fleet) -> Summary | None:
    """Percentiles over all gaps of all responses; None where no response has two tokens.

    A token that comes after a preemption is not counted: its gap is the wait, and the recompute.
    """
    check_fleet(requests, fleet)
    is_plain = fleet.batching is None and fleet.lockstep is None and not is_sglang(fleet.limits)
    if not is_plain or has_features(fleet.limits):
        what = (
            "with fixed batches, prefix caching, priorities, speculative decoding, long prefills, "
            "data-parallel ranks in lockstep, or SGLang's scheduler"
        )
        raise one(InputError, "simulate", "--itl", what, "leave it out")
    sim, taken = engine_state(requests, fleet, 60.0), refusals_of(requests, fleet.limits)
    sim.limit[:, st.IS_JUMPING] = 0
    draws = np.random.default_rng(fleet.seed)
    pairs = draws.integers(0, fleet.n_engines, size=(len(taken.accepted), 2))
    observed = np.zeros((2, fleet.n_engines), dtype=np.int64)
    counts = np.zeros(N_BINS, dtype=np.int64)
    observe(sim, taken.accepted, pairs, ROUTERS[fleet.router], observed, counts)
    n = int(counts.sum())
    if n == 0:
        return None
    values, cumulated = middles(), np.cumsum(counts)
    found: dict[str, Any] = {
        f"{name}_s": float(values[np.searchsorted(cumulated, np.ceil(share * n))])
        for name, share in PERCENTILES.items()
    }
    mean_s, max_s = float((counts * values).sum() / n), float(values[np.flatnonzero(counts)[-1]])
    return Summary(n=n, mean_s=mean_s, max_s=max_s, **found)
