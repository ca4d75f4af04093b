"""What is wrong with a fleet, all at once."""

import math
from collections.abc import Iterator

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.simulation.fleet import (
    Autoscaler,
    Clients,
    ElasticFleet,
    Failures,
    Pool,
    Service,
    Spot,
)
from gpuplan.errors import InputError, Problem
from gpuplan.simulation.serving.features import problems_of
from gpuplan.simulation.serving.sglang import NAME, is_sglang, sglang_problems

RULES = ("round_robin", "least_outstanding", "power_of_two", "prefix_affinity", "session")
POOL_RULES = ("load", "share", "order")
METRICS = ("concurrency", "queue")
MOST_RETRIES = 1000  # every try of a request with a KV transfer has a row of its own
MOST_REPLICAS = 1 << 16
LONGEST_S = 40 * 86400.0
MOST_TICKS = 4096  # within the window of a scaler
LEAST_INTERVAL_S = 0.1


def check_fleet(fleet: ElasticFleet, service: Ints) -> None:
    """Raise InputError with every problem where the fleet cannot be run."""
    problems = [*_fleet_problems(fleet), *_service_problems(fleet, service)]
    for at, pool in enumerate(fleet.pools):
        problems += _pool_problems(pool, f"pools[{at}] {pool.name!r}")
    if problems:
        raise InputError("fleet", problems)


def _duration(where: str, value: float | None, *, is_zero_fine: bool = True) -> Iterator[Problem]:
    """A time that can be counted; None is no time at all."""
    if value is None:
        return
    least = "0 s or more" if is_zero_fine else "above 0 s"
    is_low = value < 0 or (value == 0 and not is_zero_fine)
    if not math.isfinite(value) or is_low or value > 1000 * LONGEST_S:
        yield Problem(where, f"got {value:g} s", f"must be {least} and below 100 years")


def _count(where: str, value: int | None, least: int) -> Iterator[Problem]:
    if value is not None and value < least:
        yield Problem(where, f"got {value}", f"must be {least} or more")


def _fleet_problems(fleet: ElasticFleet) -> Iterator[Problem]:
    router = fleet.router
    if not fleet.pools:
        yield Problem("pools", "there is none", "give at least one")
    n = sum(pool.size.n_slots for pool in fleet.pools)
    if fleet.pools and n < 1:
        yield Problem("pools", "have no replica and may start none", "give one of them replicas")
    if n > MOST_REPLICAS:
        yield Problem("pools", f"{n} replicas", f"use at most {MOST_REPLICAS}")
    if len({pool.name for pool in fleet.pools}) < len(fleet.pools):
        yield Problem("pools", "two have the same name", "name each differently")
    sizes = {pool.limits.block_tokens for pool in fleet.pools if pool.limits.caches_prefixes}
    if len(sizes) > 1:
        what = f"cache prefixes in blocks of {', '.join(map(str, sorted(sizes)))} tokens"
        yield Problem("pools", what, "give all that cache prefixes blocks of one size")
    if router.rule not in RULES:
        yield Problem("router.rule", f"got {router.rule!r}", f"use one of {', '.join(RULES)}")
    if router.pool_rule not in POOL_RULES:
        fix = f"use one of {', '.join(POOL_RULES)}"
        yield Problem("router.pool_rule", f"got {router.pool_rule!r}", fix)
    if not (router.guard_requests >= 0 and router.guard_ratio >= 0):
        yield Problem("router.guard", "is negative", "must be 0 or more")
    yield from _scheduler_problems(fleet)
    yield from _count("router.max_resends", router.max_resends, 0)
    yield from _client_problems(fleet.clients)
    if not 0 <= fleet.first_hour < 168:
        yield Problem("first_hour", f"got {fleet.first_hour}", "must be from 0 to 167")


def _scheduler_problems(fleet: ElasticFleet) -> Iterator[Problem]:
    """SGLang's engines share a fleet with their like, and hand no KV cache over."""
    is_there = {is_sglang(pool.limits) for pool in fleet.pools}
    if len(is_there) > 1:
        yield Problem(NAME, "beside pools of another engine", "give all pools one engine")
    if True in is_there and fleet.kv_transfer is not None:
        what = "with a prefill and a decode stage"
        yield Problem(NAME, what, "serve both on one pool, or simulate vLLM")
    if any(pool.limits.groups for pool in fleet.pools):
        what = "where users wait, pools differ or change, or the router knows prefixes"
        yield Problem("KV groups", what, "use --rate or --trace and another --router")


def _client_problems(clients: Clients) -> Iterator[Problem]:
    yield from _count("clients.max_retries", clients.max_retries, 0)
    if clients.max_retries > MOST_RETRIES:
        what = f"got {clients.max_retries:,}"
        yield Problem("clients.max_retries", what, f"must be {MOST_RETRIES:,} or fewer")
    yield from _duration("clients.timeout_s", clients.timeout_s, is_zero_fine=False)
    yield from _duration("clients.backoff_s", clients.backoff_s)
    yield from _duration("clients.max_backoff_s", clients.max_backoff_s)


def _service_problems(fleet: ElasticFleet, service: Ints) -> Iterator[Problem]:
    names = {pool.name for pool in fleet.pools}
    n_services = max(1, len(fleet.services))
    if len(service) and (service.min() < 0 or service.max() >= n_services):
        what = f"requests ask for services {service.min()} to {service.max()}"
        yield Problem("services", what, f"there are {n_services}: number them from 0")
    for at, found in enumerate(fleet.services):
        where = f"services[{at}] {found.name!r}"
        if not found.pools:
            yield Problem(where, "is served by no pool", "name at least one")
        yield from _share_problems(found, names, where)
    is_split = any(found.decode_pools for found in fleet.services)
    if is_split and fleet.kv_transfer is None:
        yield Problem("kv_transfer", "missing", "say how the KV cache travels to the decode pools")
    if fleet.kv_transfer is not None:
        yield from _duration("kv_transfer.latency_s", fleet.kv_transfer.latency_s)
        if not (
            fleet.kv_transfer.cache_bytes_per_token >= 0 and fleet.kv_transfer.link_bytes_per_s > 0
        ):
            yield Problem("kv_transfer", "has no rate", "bytes must be 0 or more, the link above 0")


def _share_problems(service: Service, names: set[str], where: str) -> Iterator[Problem]:
    for share in (*service.pools, *service.decode_pools):
        if share.pool not in names:
            known = ", ".join(sorted(names)) or "none"
            yield Problem(where, f"names a pool {share.pool!r}", f"there are: {known}")
        if not (math.isfinite(share.weight_ratio) and share.weight_ratio > 0):
            yield Problem(where, f"weight of {share.pool!r} is no weight", "must be above 0")
        if not share.spill_requests > 0:
            yield Problem(where, f"{share.pool!r} spills at once", "must be above 0")


def _pool_problems(pool: Pool, where: str) -> Iterator[Problem]:
    limits = pool.limits
    if limits.max_sequences < 1 or limits.max_batch_tokens < limits.max_sequences:
        what = f"{limits.max_batch_tokens} tokens for {limits.max_sequences} sequences"
        fix = "give at least one sequence, and every sequence at least one token"
        yield Problem(f"{where}.limits", what, fix)
    if limits.block_tokens < 1 or limits.block_tokens & (limits.block_tokens - 1):
        yield Problem(f"{where}.limits", f"blocks of {limits.block_tokens}", "use a power of two")
    if limits.n_blocks < 1:
        yield Problem(f"{where}.limits", "no room for a block", "give the cache memory")
    for found in (*problems_of(limits), *sglang_problems(limits)):
        yield Problem(f"{where}.{found.where}", found.what, found.fix)
    yield from _size_problems(pool, where)
    for name in ("boot_s", "image_s", "load_s", "compile_s", "warmup_s"):
        yield from _duration(f"{where}.start.{name}", getattr(pool.start, name))
    yield from _duration(f"{where}.drain_s", pool.drain_s)
    yield from _count(f"{where}.admission.max_outstanding", pool.admission.max_outstanding, 1)
    yield from _count(f"{where}.admission.max_held", pool.admission.max_held, 0)
    if pool.scaler is not None:
        yield from _scaler_problems(pool.scaler, f"{where}.scaler")
    if pool.failures is not None:
        yield from _failure_problems(pool, pool.failures, f"{where}.failures")
    if pool.spot is not None:
        yield from _spot_problems(pool.spot, f"{where}.spot")
    if pool.restarts is not None:
        yield from _duration(f"{where}.restarts.first_s", pool.restarts.first_s)
        every = pool.restarts.every_s
        yield from _duration(f"{where}.restarts.every_s", every, is_zero_fine=False)
        yield from _count(f"{where}.restarts.max_unavailable", pool.restarts.max_unavailable, 1)


def _size_problems(pool: Pool, where: str) -> Iterator[Problem]:
    size = pool.size
    yield from _count(f"{where}.size.n_first", size.n_first, 0)
    yield from _count(f"{where}.size.n_least", size.n_least, 0)
    yield from _count(f"{where}.size.n_most", size.n_most, 1)
    least = size.n_first if size.n_least is None else size.n_least
    most = size.n_first if size.n_most is None else size.n_most
    if most < least:
        yield Problem(
            f"{where}.size", f"at most {most}, at least {least}", "least must not be more"
        )
    is_outside = not least <= size.n_first <= most
    if most >= least and is_outside:
        what = f"{size.n_first} at first, with {least} to {most} allowed"
        yield Problem(f"{where}.size", what, "begin within the bounds")
    if pool.scaler is None and (least, most) != (size.n_first, size.n_first):
        yield Problem(f"{where}.size", "has bounds but no scaler", "give a scaler, or no bounds")


def _scaler_problems(scaler: Autoscaler, where: str) -> Iterator[Problem]:
    if scaler.metric not in METRICS:
        yield Problem(f"{where}.metric", f"got {scaler.metric!r}", f"use {' or '.join(METRICS)}")
    if not (math.isfinite(scaler.target_requests) and scaler.target_requests > 0):
        what = f"got {scaler.target_requests:g}"
        yield Problem(f"{where}.target_requests", what, "must be above 0")
    if not 0 <= scaler.tolerance_frac < 1:
        what = f"got {scaler.tolerance_frac:g}"
        yield Problem(f"{where}.tolerance_frac", what, "must be from 0 to below 1")
    if not scaler.interval_s >= LEAST_INTERVAL_S:
        what = f"got {scaler.interval_s:g} s"
        yield Problem(f"{where}.interval_s", what, f"must be {LEAST_INTERVAL_S} s or more")
    elif scaler.down_window_s / scaler.interval_s > MOST_TICKS:
        fix = f"look less often, or at most {MOST_TICKS} times within the window"
        yield Problem(f"{where}.down_window_s", f"got {scaler.down_window_s:g} s", fix)
    for name in ("up_cooldown_s", "down_cooldown_s", "down_window_s"):
        yield from _duration(f"{where}.{name}", getattr(scaler, name))
    for floor in scaler.floors:
        is_hours = 0 <= floor.from_hour < 24 and 0 < floor.to_hour <= 24 and floor.n_least >= 0
        if not is_hours or not all(0 <= day < 7 for day in floor.days):
            what = f"from {floor.from_hour} to {floor.to_hour} on {floor.days}: {floor.n_least}"
            yield Problem(f"{where}.floors", what, "hours 0 to 24, days 0 to 6, replicas 0 or more")


def _failure_problems(pool: Pool, failures: Failures, where: str) -> Iterator[Problem]:
    yield from _duration(f"{where}.mtbf_s", failures.mtbf_s, is_zero_fine=False)
    yield from _duration(f"{where}.mttr_s", failures.mttr_s)
    for at, outage in enumerate(failures.outages):
        yield from _duration(f"{where}.outages[{at}].at_s", outage.at_s)
        yield from _duration(f"{where}.outages[{at}].lasts_s", outage.lasts_s)
        if not 0 <= outage.replica < max(pool.size.n_slots, 1):
            fix = f"must be from 0 to {pool.size.n_slots - 1}"
            yield Problem(f"{where}.outages[{at}].replica", f"got {outage.replica}", fix)


def _spot_problems(spot: Spot, where: str) -> Iterator[Problem]:
    yield from _duration(f"{where}.mean_s", spot.mean_s, is_zero_fine=False)
    yield from _duration(f"{where}.notice_s", spot.notice_s)
    yield from _duration(f"{where}.away_s", spot.away_s)


def check_arrivals(arrive_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """InputError where the clock cannot hold them."""
    if len(arrive_s) and arrive_s[-1] - arrive_s[0] > LONGEST_S:
        days = f"{(arrive_s[-1] - arrive_s[0]) / 86400:.4g} days"
        problem = Problem("arrivals", f"span {days}", "split them: at most 40 days")
        raise InputError("fleet", [problem])
