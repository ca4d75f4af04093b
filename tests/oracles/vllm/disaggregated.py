"""Random streams for prefill and decode in two engines, and the same through the package."""

from typing import Any

import numpy as np

from gpuplan.domain.simulation.engine import EngineLimits, KvTransfer, StepTable
from gpuplan.domain.simulation.fleet import ElasticFleet, Pool, PoolShare, PoolSize, Service
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Requests
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from oracles.vllm.fresh import STEP, Case, drawn, limited


def disaggregated(number: int) -> Case:
    """The stream of this number: light to saturated, memory ample, quick and slow transfers."""
    g = np.random.default_rng([23, number])
    rows = drawn(g, 40, 10 ** g.uniform(0, 1.3), 600, float(g.choice([20, 150])))
    limits = limited(
        rows,
        60.0,
        max_sequences=int(g.choice([8, 128])),
        is_ahead=bool(g.random() < 0.5),
        caches_prefixes=bool(g.random() < 0.5),
    )
    transfer = {"token_s": float(g.choice([1e-6, 2e-5, 1e-4]))}
    transfer["latency_s"] = float(g.choice([0.0, 0.002]))
    return {
        "limits": limits, "cost": STEP, "requests": rows, "ends_by_itself": False,
        "transfer": transfer,
    }  # fmt: skip


def transferred(
    requests: Requests, limits: EngineLimits, table: StepTable, transfer: dict[str, Any]
) -> Outcome:
    """One engine that reads prompts and one that decodes, with a link between them."""
    names = ("prefill", "decode")
    pools = [Pool(name=one, limits=limits, table=table, size=PoolSize(n_first=1)) for one in names]
    prefill, decode = (PoolShare(pool=one) for one in names)
    fleet = ElasticFleet(
        pools=tuple(pools),
        services=(Service(name="chat", pools=(prefill,), decode_pools=(decode,)),),
        kv_transfer=KvTransfer(
            cache_bytes_per_token=transfer["token_s"],
            link_bytes_per_s=1.0,
            latency_s=transfer["latency_s"],
        ),
    )
    return simulate_fleet(requests, fleet).outcome
