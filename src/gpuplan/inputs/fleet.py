"""fleet.yaml in, a fleet as written out; every problem with its line."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.fleet import (
    AdmissionControl,
    Autoscaler,
    Clients,
    ColdStart,
    Failures,
    HoursFloor,
    Outage,
    PoolShare,
    PoolSize,
    Restarts,
    Router,
    Service,
    Spot,
)
from gpuplan.domain.simulation.fleet_file import FleetRequest, LinkRequest, PoolRequest
from gpuplan.domain.simulation.simulation import ReplicaRequest
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document
from gpuplan.inputs.documents.problems import nearest, show
from gpuplan.inputs.documents.yaml_reader import read_yaml, shown_problem
from gpuplan.inputs.schema.fleet import (
    AutoscalingSpec,
    FailuresSpec,
    FleetSpec,
    PoolSpec,
    RestartsSpec,
    ServiceSpec,
    ShareSpec,
    SpotSpec,
)
from gpuplan.units import GB, HOUR, MINUTE, MS


def read_fleet(path: Path) -> FleetRequest:
    """The fleet of a file; raises InputError with every problem found."""
    document = read_yaml(path)
    try:
        spec = FleetSpec.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(document, dict(found)) for found in error.errors(include_url=False)]
        raise InputError(document.name, problems) from None
    _check_repairs(document, spec)
    return FleetRequest(
        pools=tuple(_pool(pool) for pool in spec.pools),
        services=tuple(_service(service) for service in spec.services),
        shares_frac=_shares(document, spec.services),
        router=Router(**spec.router.model_dump()),
        clients=Clients(
            timeout_s=spec.clients.timeout_s,
            is_first_token=spec.clients.timeout_of == "first_token",
            max_retries=spec.clients.max_retries,
            backoff_s=spec.clients.backoff_s,
            max_backoff_s=spec.clients.max_backoff_s,
        ),
        link=_link(spec),
        first_hour=spec.first_hour,
        assumptions=tuple(_assumed(spec)),
    )


def _check_repairs(document: Document, spec: FleetSpec) -> None:
    """Repairs of what never fails would do nothing."""
    idle = [
        shown_problem(
            document.place(("pools", at, "failures")), "mends what never fails",
            "give mtbf_h, or outages",
        )
        for at, pool in enumerate(spec.pools)
        if pool.failures and pool.failures.mtbf_h is None and not pool.failures.outages
    ]  # fmt: skip
    if idle:
        raise InputError(document.name, idle)


def _problem(document: Document, found: dict[str, Any]) -> Problem:
    path = tuple(found["loc"])
    place, kind = document.place(path), found["type"]
    if kind == "missing":
        return shown_problem(place, "missing", "add it")
    if kind == "extra_forbidden":
        guess = nearest(str(path[-1]), sorted(_all_keys()))
        return shown_problem(
            place, "unknown key", f"did you mean {guess}?" if guess else "remove it"
        )
    text = found["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return shown_problem(place, f"got {show(found['input'])}", f"must be {text}")


def _all_keys() -> set[str]:
    from gpuplan.inputs.schema import fleet as schema  # noqa: PLC0415

    models = [model for model in vars(schema).values() if hasattr(model, "model_fields")]
    return {name for model in models for name in model.model_fields}


def _pool(spec: PoolSpec) -> PoolRequest:
    limits = spec.admission
    return PoolRequest(
        name=spec.name,
        model=spec.model,
        on=spec.on,
        replica=_replica(spec),
        size=PoolSize(n_first=spec.replicas, n_least=spec.min_replicas, n_most=spec.max_replicas),
        start=None if spec.start is None else ColdStart(**spec.start.model_dump()),
        admission=AdmissionControl()
        if limits is None
        else AdmissionControl(max_outstanding=limits.max_outstanding, max_held=limits.max_queued),
        scaler=None if spec.autoscaling is None else _scaler(spec.autoscaling),
        failures=None if spec.failures is None else _failures(spec.failures),
        spot=None if spec.spot is None else _spot(spec.spot),
        restarts=None if spec.restarts is None else _restarts(spec.restarts),
        drain_s=spec.drain_s,
    )


def _replica(spec: PoolSpec) -> ReplicaRequest:
    lora = spec.lora
    adapters = None if lora is None else LoraUse(
        rank=lora.rank, n_adapters=lora.adapters, request_frac=lora.share_frac
    )  # fmt: skip
    return ReplicaRequest(tp=spec.tp, ep=spec.ep, adapters=adapters)


def _scaler(spec: AutoscalingSpec) -> Autoscaler:
    floors = tuple(
        HoursFloor(
            from_hour=hours.from_hour,
            to_hour=hours.to_hour,
            n_least=hours.min_replicas,
            days=tuple(hours.days),
        )
        for hours in spec.hours
    )
    return Autoscaler(**spec.model_dump(exclude={"hours"}), floors=floors)


def _failures(spec: FailuresSpec) -> Failures:
    return Failures(
        mtbf_s=None if spec.mtbf_h is None else spec.mtbf_h * HOUR,
        mttr_s=None if spec.mttr_min is None else spec.mttr_min * MINUTE,
        is_fixed_repair=spec.repair == "fixed",
        outages=tuple(Outage(**outage.model_dump()) for outage in spec.outages),
        is_paid=spec.is_paid,
    )


def _spot(spec: SpotSpec) -> Spot:
    return Spot(mean_s=spec.mean_h * HOUR, notice_s=spec.notice_s, away_s=spec.away_min * MINUTE)


def _restarts(spec: RestartsSpec) -> Restarts:
    every_s = None if spec.every_h is None else spec.every_h * HOUR
    return Restarts(first_s=spec.first_s, every_s=every_s, max_unavailable=spec.max_unavailable)


def _share(spec: ShareSpec) -> PoolShare:
    return PoolShare(pool=spec.pool, weight_ratio=spec.weight, spill_requests=spec.spill_requests)


def _service(spec: ServiceSpec) -> Service:
    return Service(
        name=spec.name,
        pools=tuple(_share(share) for share in spec.pools),
        decode_pools=tuple(_share(share) for share in spec.decode_pools),
    )


def _shares(document: Document, services: list[ServiceSpec]) -> tuple[float, ...]:
    given = [service.share_frac for service in services]
    if not services:
        return ()
    if all(share is None for share in given):
        return tuple(1 / len(services) for _ in services)
    total = sum(share or 0.0 for share in given)
    if None in given or abs(total - 1) > 1e-6:
        place = document.place(("services",))
        what = "some shares are missing" if None in given else f"shares sum to {total:g}"
        raise InputError(document.name, [shown_problem(place, what, "let them sum to 1")])
    return tuple(float(share or 0.0) for share in given)


def _link(spec: FleetSpec) -> LinkRequest | None:
    if spec.handover is None:
        return None
    hand = spec.handover
    return LinkRequest(link_bytes_per_s=hand.link_gb_per_s * GB, latency_s=hand.latency_ms * MS)


def _life(pool: PoolSpec) -> list[Assumption]:
    """How machines that are taken back, fail or leave behave where the file does not say."""
    found, where = [], f"pools: {pool.name}"
    if pool.spot is not None and not {"notice_s", "away_min"} <= pool.spot.model_fields_set:
        value = f"{pool.spot.notice_s:g} s of notice, back after {pool.spot.away_min:g} min"
        why = "left out; clouds give 30 to 120 s, and no word on when the next is to be had"
        found.append(Assumption(what=f"spot machines of {pool.name}", value=value, why=why,
                                change=f"{where}: spot"))  # fmt: skip
    failures = pool.failures
    if failures is not None and failures.mtbf_h is not None and failures.mttr_min is None:
        why, change = "no mttr_min was given", f"{where}: failures"
        what = f"repair of {pool.name}"
        found.append(Assumption(what=what, value="never", why=why, change=change))
    return found


def _clients(spec: FleetSpec) -> list[Assumption]:
    asked = spec.clients
    if not asked.max_retries or {"backoff_s", "max_backoff_s"} <= asked.model_fields_set:
        return []
    value = f"after {asked.backoff_s:g} s, doubling up to {asked.max_backoff_s:g} s"
    why = "left out; the usual exponential back-off"
    return [Assumption(what="retries", value=value, why=why, change="clients")]


def _clock(spec: FleetSpec) -> list[Assumption]:
    """Floors by the hour need to know what hour it is."""
    has_hours = any(pool.autoscaling and pool.autoscaling.hours for pool in spec.pools)
    if not has_hours or "first_hour" in spec.model_fields_set:
        return []
    why = "floors by the hour count from there, whatever a recording's own clock says"
    value = "Monday, midnight"
    return [Assumption(what="first request", value=value, why=why, change="first_hour")]


def _affinity(spec: FleetSpec) -> list[Assumption]:
    router = spec.router
    is_loyal = router.rule in ("prefix_affinity", "session")
    if not is_loyal or {"guard_requests", "guard_ratio"} & router.model_fields_set:
        return []
    value = f"gives way where a replica has {router.guard_requests:g} requests more than the least"
    why = "left out; a replica that everybody wants would drown"
    return [Assumption(what="affinity", value=value, why=why, change="router: guard_requests")]


def _assumed(spec: FleetSpec) -> list[Assumption]:
    """What the file leaves to defaults and decides much."""
    found = [*_clients(spec), *_clock(spec), *_affinity(spec)]
    for pool in spec.pools:
        found += _life(pool)
        scaler = pool.autoscaling
        if scaler is not None and not {"interval_s", "down_window_s"} <= scaler.model_fields_set:
            value = f"looks every {scaler.interval_s:g} s, shrinks after {scaler.down_window_s:g} s"
            why = "as the horizontal autoscaler of Kubernetes does unless told otherwise"
            change = f"pools: {pool.name}: autoscaling"
            found.append(
                Assumption(what=f"scaling of {pool.name}", value=value, why=why, change=change)
            )
    return found
