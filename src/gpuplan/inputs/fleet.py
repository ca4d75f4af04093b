"""fleet.yaml in, a fleet as written out; every problem with its line."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.fleet_file import FleetRequest
from gpuplan.inputs.documents.document import Document
from gpuplan.inputs.documents.problems import Finding, refuse, validated
from gpuplan.inputs.documents.yaml_reader import read_yaml
from gpuplan.inputs.schema.fleet import FleetSpec, PoolSpec, ServiceSpec
from gpuplan.inputs.schema.nouns import noun_of

ROUNDING = 1e-6  # of shares that must sum to 1
OLD_NAMES = {"handover": "kv_transfer"}  # still read; the changelog says until when


def read_fleet(path: Path) -> FleetRequest:
    """The fleet of a file; raises InputError with every problem found."""
    document = _with_current_names(read_yaml(path))
    spec = validated(FleetSpec, document)
    _check(document, spec)
    return noun_of(
        spec,
        FleetRequest,
        shares_frac=_shares(spec.services),
        assumptions=tuple(_assumed(spec)),
    )


def _with_current_names(document: Document) -> Document:
    """The document with keys of earlier releases under the names that they have today."""
    given = document.data
    if not isinstance(given, dict) or not OLD_NAMES.keys() & given.keys():
        return document
    named = {
        new if (new := OLD_NAMES.get(key, key)) not in given else key: value
        for key, value in given.items()
    }
    return replace(document, data=named)


def _check(document: Document, spec: FleetSpec) -> None:
    """Refuse repairs of what never fails, and shares that do not sum to 1."""
    findings = [
        Finding(
            ("pools", at, "failures"), "repairs replicas that never fail", "give mtbf_h, or outages"
        )
        for at, pool in enumerate(spec.pools)
        if pool.failures and pool.failures.mtbf_h is None and not pool.failures.outages
    ]
    given = [service.share_frac for service in spec.services]
    total = sum(share or 0.0 for share in given)
    if any(share is not None for share in given):
        if None in given:
            findings.append(Finding(("services",), "some shares are missing", "give all of them"))
        elif abs(total - 1) > ROUNDING:
            what = f"shares sum to {total:g}"
            findings.append(Finding(("services",), what, "must sum to 1"))
    refuse(document, findings)


def _shares(services: list[ServiceSpec]) -> tuple[float, ...]:
    """The share of the requests of each service; equal where none is given."""
    equal = 1 / max(1, len(services))
    return tuple(equal if one.share_frac is None else one.share_frac for one in services)


def _assumed(spec: FleetSpec) -> Iterator[Assumption]:
    """Defaults of the file that matter much to the outcome."""
    yield from _clients(spec)
    yield from _clock(spec)
    yield from _affinity(spec)
    for pool in spec.pools:
        yield from _lifecycle(pool)
        yield from _scaling(pool)


def _lifecycle(pool: PoolSpec) -> Iterator[Assumption]:
    """How spot reclaims and repairs go where the file does not say."""
    where = f"pools: {pool.name}"
    if pool.spot is not None and not {"notice_s", "away_min"} <= pool.spot.model_fields_set:
        value = f"{pool.spot.notice_s:g} s of notice, back after {pool.spot.away_min:g} min"
        why = "not given; clouds give 30 to 120 s, and do not say when capacity returns"
        what, change = f"spot capacity of {pool.name}", f"{where}: spot"
        yield Assumption(what=what, value=value, why=why, change=change)
    failures = pool.failures
    if failures is not None and failures.mtbf_h is not None and failures.mttr_min is None:
        what, why = f"repair of {pool.name}", "no mttr_min was given"
        yield Assumption(what=what, value="never", why=why, change=f"{where}: failures")


def _scaling(pool: PoolSpec) -> Iterator[Assumption]:
    scaler = pool.autoscaling
    if scaler is None or {"interval_s", "down_window_s"} <= scaler.model_fields_set:
        return
    value = f"evaluates every {scaler.interval_s:g} s, scales down after {scaler.down_window_s:g} s"
    why = "defaults of the Kubernetes Horizontal Pod Autoscaler"
    what, change = f"autoscaling of {pool.name}", f"pools: {pool.name}: autoscaling"
    yield Assumption(what=what, value=value, why=why, change=change)


def _clients(spec: FleetSpec) -> Iterator[Assumption]:
    clients = spec.clients
    if not clients.max_retries or {"backoff_s", "max_backoff_s"} <= clients.model_fields_set:
        return
    value = f"after {clients.backoff_s:g} s, doubling up to {clients.max_backoff_s:g} s"
    why = "not given; the usual exponential back-off"
    yield Assumption(what="retries", value=value, why=why, change="clients")


def _clock(spec: FleetSpec) -> Iterator[Assumption]:
    """Scheduled minimums need to know what hour it is."""
    has_hours = any(pool.autoscaling and pool.autoscaling.hours for pool in spec.pools)
    if has_hours and "first_hour" not in spec.model_fields_set:
        why = "scheduled minimums count from there, whatever the clock of a trace says"
        value = "Monday, midnight"
        yield Assumption(what="first request", value=value, why=why, change="first_hour")


def _affinity(spec: FleetSpec) -> Iterator[Assumption]:
    router = spec.router
    has_affinity = router.rule in ("prefix_affinity", "session")
    if not has_affinity or {"guard_requests", "guard_ratio"} & router.model_fields_set:
        return
    value = f"yields where a replica has {router.guard_requests:g} requests more than the least"
    why = "not given; a replica with a popular prefix would be overloaded"
    yield Assumption(what="affinity", value=value, why=why, change="router: guard_requests")
