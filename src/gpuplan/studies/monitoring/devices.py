"""What the catalog knows of monitored devices, in: telemetry; out: power, memory, links, price."""

import math
from collections.abc import Iterable, Sequence
from statistics import mean, median

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers, rentable
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.telemetry.diagnosis import (
    DeviceFacts,
    DiagnoseRequest,
    ModelFacts,
)
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError, one
from gpuplan.studies.naming import model_named


def refuse_empty(telemetry: Telemetry) -> Telemetry:
    """The telemetry; InputError where nothing in it can be judged: silence is not health."""
    if telemetry.series or telemetry.histograms or telemetry.spans or telemetry.allocations:
        return telemetry
    fix = "give samples over time of known metrics (DCGM, vLLM …), or a table of time and percent"
    raise one(InputError, telemetry.source, "telemetry", "holds nothing that can be judged", fix)


def device_facts(
    telemetry: Telemetry, request: DiagnoseRequest
) -> tuple[dict[int, DeviceFacts], list[Assumption]]:
    """What the catalog knows of each device, found by the name that the source gives it."""
    names = [request.accelerator or subject.model or "" for subject in telemetry.subjects]
    known, assumed = _facts_by_name(dict.fromkeys(names), request)
    unknown = DeviceFacts(usd_per_h=request.usd_per_h)
    return {row: known.get(name, unknown) for row, name in enumerate(names)}, assumed


def model_facts(name: str | None) -> ModelFacts | None:
    """What a token of this model takes, in 16 bits; None where none was named."""
    if name is None:
        return None
    model = model_named(name)
    if not isinstance(model, Model):
        what, fix = f"{name!r} writes no tokens", "name a language model"
        raise one(InputError, "diagnose", "--model", what, fix)
    active = model.n_active_params - model.embedding.n_params
    return ModelFacts(n_active_params=active, weights_bytes=2.0 * model.n_params)


def facts_of_fleet(
    models: Sequence[str], request: DiagnoseRequest
) -> tuple[list[DeviceFacts], list[Assumption]]:
    """Facts of each device of a fleet by its model's name; the unknown ones are empty."""
    known, assumed = _facts_by_name({request.accelerator or model for model in models}, request)
    return [known.get(request.accelerator or model, DeviceFacts()) for model in models], assumed


def mean_price(facts: Sequence[DeviceFacts], request: DiagnoseRequest) -> float | None:
    """The price of an accelerator-hour: as given, else the mean of what is known."""
    prices = [one.usd_per_h for one in facts if one.usd_per_h is not None]
    if request.usd_per_h is not None or not prices:
        return request.usd_per_h
    return mean(prices)


def power_limits_w(facts: Sequence[DeviceFacts]) -> Floats:
    """Power limit of each device; not a number where it is unknown."""
    return floats([one.tdp_w or math.nan for one in facts])


def _facts_by_name(
    names: Iterable[str], request: DiagnoseRequest
) -> tuple[dict[str, DeviceFacts], list[Assumption]]:
    catalog = read_catalog()
    found = {name: _named(name, catalog, request) for name in names if name}
    notes = [note for _, assumed in found.values() for note in assumed]
    return {name: facts for name, (facts, _) in found.items()}, notes


def _named(
    name: str, catalog: Catalog, request: DiagnoseRequest
) -> tuple[DeviceFacts, list[Assumption]]:
    try:
        choice = find_accelerator(name, catalog)
    except InputError:
        if request.accelerator:
            raise
        why = "its power, memory and links are not compared with the board's"
        unknown = assume(f"device {name!r}", "not in the catalog", why, "--on")
        return DeviceFacts(usd_per_h=request.usd_per_h), [unknown]
    device = choice.accelerator
    usd_per_h, assumed = _price(device, request)
    return DeviceFacts(
        tdp_w=device.power.limit_w,
        memory_bytes=device.memory.driver_bytes,
        link_bytes_per_s=device.scale_up.bytes_per_s if device.scale_up else None,
        pcie_bytes_per_s=device.host_link.bytes_per_s if device.host_link else None,
        usd_per_h=usd_per_h,
        name=device.name,
        flop_per_s=device.peak_flop_per_s.get("bf16"),
        memory_bytes_per_s=device.memory.bytes_per_s,
        slices=tuple(one for one in catalog.mig_profiles if one.accelerator == device.id),
    ), [*choice.assumptions, *assumed]


def _price(device: Accelerator, request: DiagnoseRequest) -> tuple[float | None, list[Assumption]]:
    if request.usd_per_h is not None:
        return request.usd_per_h, []
    by_cloud: dict[str, list[float]] = {}
    for offer in rentable(read_offers()):
        if offer.accelerator == device.id and (price := offer.usd_per_accelerator_h):
            by_cloud.setdefault(offer.cloud, []).append(price)
    if not by_cloud:
        return None, []
    # A cloud counts once, however many of its regions are listed.
    usd = median(median(prices) for prices in by_cloud.values())
    why = f"median of {len(by_cloud)} clouds' on-demand prices: what the hour is worth elsewhere"
    value = f"{usd:.2f} USD"
    return usd, [assume(f"price of an hour of {device.id}", value, why, "--usd-per-h")]
