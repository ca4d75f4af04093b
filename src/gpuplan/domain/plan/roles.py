"""Prefill and decode pools as one: groups of engines, as they were sized and simulated."""

from collections.abc import Iterable
from dataclasses import replace
from math import gcd

from gpuplan.domain.plan.answer import PlannedPool


def merged(pools: Iterable[PlannedPool]) -> tuple[PlannedPool, ...]:
    """The pools, those that prefill and those that decode for one workload as one."""
    found: list[PlannedPool] = []
    waiting: dict[str, PlannedPool] = {}
    for pool in pools:
        if pool.layout.role == "prefill":
            waiting[pool.workload] = pool
        elif pool.layout.role == "decode" and pool.workload in waiting:
            found.append(_group(waiting.pop(pool.workload), pool))
        else:
            found.append(pool)
    return (*found, *waiting.values())


def _group(prefill: PlannedPool, decode: PlannedPool) -> PlannedPool:
    """As many groups as both numbers allow: how engines are grouped changes nothing for them."""
    n = gcd(prefill.n_replicas, decode.n_replicas)
    layout = replace(
        prefill.layout,
        role="",
        n_prefill=prefill.n_replicas // n,
        n_decode=decode.n_replicas // n,
    )
    return replace(
        prefill,
        n_accelerators=prefill.n_accelerators + decode.n_accelerators,
        n_replicas=n,
        n_spare_replicas=prefill.n_spare_replicas * n // prefill.n_replicas,
        layout=layout,
    )
