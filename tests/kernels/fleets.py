"""Random autoscaled fleets: every feature on or off, small enough to check and rough."""

from dataclasses import replace

import numpy as np

from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import EngineLimits, KvTransfer
from gpuplan.domain.simulation.fleet import (
    AdmissionControl,
    Autoscaler,
    Clients,
    ColdStart,
    ElasticFleet,
    Failures,
    HoursFloor,
    Outage,
    Pool,
    PoolShare,
    PoolSize,
    Restarts,
    Router,
    Service,
    Spot,
)
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from kernels import texts
from kernels.cases import bent_table, limits_of, stream_of

RULES = ("round_robin", "least_outstanding", "power_of_two", "prefix_affinity", "session")


def grouped_stream(draw: np.random.Generator, n: int) -> Requests:
    """A stream whose requests belong to sessions and groups, some to none."""
    asked = stream_of(draw, n)
    grouping = Grouping(
        session=draw.integers(-1, 8, n),
        prefix_group=draw.integers(-1, 5, n),
        prefix_tokens=np.zeros(n, dtype=np.int64),
    )
    # A trickle over months shows nothing; a flood at one instant leaves no time to scale.
    span_s = float(draw.choice([0.5, 5.0, 60.0]))
    arrive_s = asked.arrive_s / max(asked.arrive_s[-1], 1e-9) * span_s
    if draw.integers(0, 2):
        arrive_s = np.round(arrive_s, 1)
    return requests_of(arrive_s, asked.input_tokens, asked.output_tokens, grouping=grouping)


def pool_of(draw: np.random.Generator, requests: Requests, name: str, span_s: float) -> Pool:
    """One pool; each feature is there with its own chance."""
    limits = limits_of(draw, requests)
    is_scaled = bool(draw.integers(0, 2))
    n_first = int(draw.integers(1, 5))
    pool = Pool(
        name=name, limits=limits, table=bent_table(draw, limits), size=PoolSize(n_first=n_first),
        start=ColdStart(
            boot_s=span_s * draw.choice([0.0, 0.02]), load_s=span_s * draw.uniform(0, 0.1)
        ),
        admission=AdmissionControl(
            max_outstanding=None if draw.integers(0, 2) else int(draw.integers(1, 12)),
            max_held=None if draw.integers(0, 2) else int(draw.integers(0, 20)),
        ),
        drain_s=None if draw.integers(0, 2) else span_s * draw.uniform(0, 0.1),
    )  # fmt: skip
    if is_scaled:
        size = PoolSize(n_first=n_first, n_least=int(draw.integers(0, n_first + 1)),
                        n_most=n_first + int(draw.integers(0, 4)))  # fmt: skip
        pool = replace(pool, size=size, scaler=scaler_of(draw, span_s))
    return replace(pool, **mishaps_of(draw, pool, span_s))  # type: ignore[arg-type]


def scaler_of(draw: np.random.Generator, span_s: float) -> Autoscaler:
    return Autoscaler(
        metric=str(draw.choice(["concurrency", "queue"])),
        target_requests=float(draw.uniform(0.5, 6)),
        interval_s=max(0.1, span_s / float(draw.integers(4, 60))),
        tolerance_frac=float(draw.choice([0.0, 0.1, 0.4])),
        up_cooldown_s=span_s * draw.choice([0.0, 0.05]),
        down_cooldown_s=span_s * draw.choice([0.0, 0.05]),
        down_window_s=span_s * draw.choice([0.0, 0.1]),
        floors=(HoursFloor(from_hour=0, to_hour=24, n_least=int(draw.integers(0, 3))),),
    )


def mishaps_of(draw: np.random.Generator, pool: Pool, span_s: float) -> dict[str, object]:
    found: dict[str, object] = {}
    if draw.random() < 0.4:
        outages = tuple(
            Outage(
                at_s=round(span_s * draw.random(), 1),
                replica=int(draw.integers(0, pool.size.n_slots)),
                lasts_s=span_s * draw.uniform(0, 0.2),
            )
            for _ in range(draw.integers(0, 3))
        )  # fmt: skip
        found["failures"] = Failures(
            mtbf_s=span_s * draw.uniform(0.2, 2), mttr_s=span_s * draw.uniform(0, 0.3),
            is_fixed_repair=bool(draw.integers(0, 2)), outages=outages,
            is_paid=bool(draw.integers(0, 2)),
        )  # fmt: skip
    if draw.random() < 0.3:
        found["spot"] = Spot(
            mean_s=span_s * draw.uniform(0.3, 2), notice_s=span_s * draw.uniform(0, 0.1),
            away_s=span_s * draw.uniform(0, 0.2),
        )  # fmt: skip
    if draw.random() < 0.3:
        found["restarts"] = Restarts(
            first_s=span_s * draw.random(), every_s=span_s * draw.choice([0.3, 0.6]),
            max_unavailable=int(draw.integers(1, 3)),
        )  # fmt: skip
    return found


def clients_of(draw: np.random.Generator, span_s: float) -> Clients:
    if draw.random() < 0.4:
        return Clients()
    return Clients(
        timeout_s=None
        if draw.random() < 0.3
        else round(span_s * draw.uniform(0.01, 0.4), 2) + 0.01,
        is_first_token=bool(draw.integers(0, 2)),
        max_retries=int(draw.integers(0, 3)),
        backoff_s=span_s * draw.choice([0.0, 0.02]),
        max_backoff_s=span_s * 0.1,
    )


def autoscaled_fleet(draw: np.random.Generator, requests: Requests) -> ElasticFleet:
    """Up to three pools, one or two services, sometimes with prompts and answers apart."""
    span_s = float(requests.arrive_s[-1] - requests.arrive_s[0]) + 0.1
    n_pools = int(draw.integers(1, 4))
    pools = tuple(pool_of(draw, requests, f"p{at}", span_s) for at in range(n_pools))
    services: tuple[Service, ...] = ()
    kv_transfer = None
    shares = tuple(
        PoolShare(pool=pool.name, weight_ratio=float(draw.uniform(0.5, 2)),
                  spill_requests=float(draw.integers(1, 6)))
        for pool in pools
    )  # fmt: skip
    if n_pools > 1:
        services = (Service(name="a", pools=shares), Service(name="b", pools=shares[:1]))
        if draw.integers(0, 2):
            services = (Service(name="a", pools=shares[:1], decode_pools=shares[1:]), services[1])
            kv_transfer = KvTransfer(cache_bytes_per_token=1e5, latency_s=0.001,
                                link_bytes_per_s=10.0 ** draw.uniform(7, 10))  # fmt: skip
    return ElasticFleet(
        pools=pools, services=services, kv_transfer=kv_transfer, clients=clients_of(draw, span_s),
        router=Router(
            rule=str(draw.choice(RULES)), pool_rule=str(draw.choice(["load", "share", "order"])),
            guard_requests=float(draw.choice([0.0, 2.0, 32.0])),
            guard_ratio=float(draw.choice([0.0, 1.0])), max_resends=int(draw.integers(0, 4)),
        ),
        seed=int(draw.integers(0, 1000)),
    )  # fmt: skip


def services_of(draw: np.random.Generator, requests: Requests, fleet: ElasticFleet) -> np.ndarray:
    return draw.integers(0, max(1, len(fleet.services)), len(requests))


POLICIES = (
    {"caches_prefixes": True},
    {"scheduling": "priority"},
    {"caches_prefixes": True, "scheduling": "priority"},
    {"long_prefill_tokens": 24},
    {"caches_prefixes": True, "scheduling": "priority", "long_prefill_tokens": 24},
    {},
)


def with_policies(draw: np.random.Generator, fleet: ElasticFleet, *, drafts: bool) -> ElasticFleet:
    """The same fleet; every pool has policies of its own, one at least has some."""
    pools = []
    for at, pool in enumerate(fleet.pools):
        chosen = int(draw.integers(0, len(POLICIES) - (at == 0)))
        limits = replace(pool.limits, **POLICIES[chosen])  # type: ignore[arg-type]
        if drafts and draw.integers(0, 2):
            limits = drafting(draw, replace(limits, scheduling="fcfs", long_prefill_tokens=None))
        pools.append(replace(pool, limits=limits, table=bent_table(draw, wide(limits))))
    return replace(fleet, pools=tuple(pools))


def drafting(draw: np.random.Generator, limits: EngineLimits) -> EngineLimits:
    n = int(draw.integers(1, 6))
    found = SpeculativeDecoding(n_tokens=n, acceptance_frac=float(draw.random()))
    tokens = limits.max_batch_tokens + n * limits.max_sequences
    return replace(
        limits, drafts=found, draws_acceptance=bool(draw.integers(0, 2)), max_batch_tokens=tokens,
        n_blocks=limits.n_blocks + n + 1,
    )  # fmt: skip


def wide(limits: EngineLimits) -> EngineLimits:
    """Limits whose table has a row for every token that drafts check."""
    n = 1 if limits.drafts is None else 1 + limits.drafts.n_tokens
    return replace(limits, max_sequences=limits.max_sequences * n)


def talking_stream(draw: np.random.Generator, n: int) -> Requests:
    """Sessions whose turns begin with what was said before; some requests have priority."""
    asked = texts.grouped_stream(draw, n)
    span_s = float(draw.choice([0.5, 5.0, 60.0]))
    arrive_s = asked.arrive_s / max(asked.arrive_s[-1], 1e-9) * span_s
    if draw.integers(0, 2):
        arrive_s = np.round(arrive_s, 1)
    grouping = Grouping(
        session=asked.prefix_group, prefix_group=asked.prefix_group,
        prefix_tokens=asked.prefix_tokens, priority=asked.priority,
    )  # fmt: skip
    return requests_of(arrive_s, asked.input_tokens, asked.output_tokens, grouping=grouping)
