"""Diagnose: telemetry from a file or a server -> facts of its devices -> causes."""

import math
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers, rentable
from gpuplan.diagnose.fleet import diagnose_fleet
from gpuplan.diagnose.judge import diagnose as judge
from gpuplan.diagnose.score import score as judge_score
from gpuplan.domain.columns import floats
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.diagnosis import (
    BandEdges,
    DeviceFacts,
    DiagnoseRequest,
    Diagnosis,
    ScoreLimits,
)
from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError, Problem
from gpuplan.observe.fleet import is_fleet, read_fleet
from gpuplan.observe.parquet import MAX_ROWS
from gpuplan.observe.prometheus_live import read_prometheus
from gpuplan.observe.read import read_telemetry, read_text


def diagnose_file(path: Path, asked: DiagnoseRequest) -> Diagnosis:
    """What a file of telemetry says, or a folder of them."""
    if is_fleet(path, MAX_ROWS):
        return _diagnose_fleet(path, asked)
    return diagnose(read_telemetry(path), asked)


def _diagnose_fleet(path: Path, asked: DiagnoseRequest) -> Diagnosis:
    """A fleet too large for series, device by device."""
    digest, catalog = read_fleet(path), read_catalog()
    known, assumed = dict[str, DeviceFacts](), list[Assumption]()
    for name in {asked.accelerator or model for model in digest.devices.model}:
        if name:
            known[name], more = _named(name, catalog, asked)
            assumed += more
    facts = [known.get(asked.accelerator or m, DeviceFacts()) for m in digest.devices.model]
    prices = [one.usd_per_h for one in facts if one.usd_per_h is not None]
    found = diagnose_fleet(
        digest,
        tdp_w=floats([one.tdp_w if one.tdp_w else math.nan for one in facts]),
        usd_per_h=asked.usd_per_h
        if asked.usd_per_h is not None
        else mean(prices)
        if prices
        else None,
        edges=asked.edges or BandEdges(),
        beta_ratio=asked.beta_ratio,
    )
    return replace(found, assumptions=tuple(assumed))


def diagnose_text(text: str, asked: DiagnoseRequest) -> Diagnosis:
    """What a pasted text says."""
    return diagnose(read_text(text, source="pasted text"), asked)


def diagnose_server(access: ServerAccess, window: TimeWindow, asked: DiagnoseRequest) -> Diagnosis:
    """What a live server says of a stretch of time."""
    return diagnose(read_prometheus(access, window), asked)


def diagnose(telemetry: Telemetry, asked: DiagnoseRequest) -> Diagnosis:
    """The same, of telemetry that is here."""
    facts, assumed = _facts(telemetry, asked)
    found = judge(
        telemetry,
        facts,
        edges=asked.edges,
        ttft_limit_s=asked.ttft_limit_s,
        beta_ratio=asked.beta_ratio,
    )
    return replace(found, assumptions=(*found.assumptions, *assumed))


def score(found: Diagnosis, limits: ScoreLimits) -> tuple[Problem, ...]:
    """Every limit that is broken."""
    return judge_score(found, limits)


def _facts(
    telemetry: Telemetry, asked: DiagnoseRequest
) -> tuple[dict[int, DeviceFacts], list[Assumption]]:
    """What the catalog knows of each device, found by the name that the source gives it."""
    catalog, assumed, known = read_catalog(), [], dict[str, DeviceFacts]()
    facts = {}
    for row, subject in enumerate(telemetry.subjects):
        name = asked.accelerator or subject.model
        if not name:
            facts[row] = DeviceFacts(usd_per_h=asked.usd_per_h)
            continue
        if name not in known:
            known[name], more = _named(name, catalog, asked)
            assumed += more
        facts[row] = known[name]
    return facts, assumed


def _named(
    name: str, catalog: Catalog, asked: DiagnoseRequest
) -> tuple[DeviceFacts, list[Assumption]]:
    try:
        choice = find_accelerator(name, catalog)
    except InputError:
        if asked.accelerator:
            raise
        why = "its power, memory and links are not held against the board's"
        unknown = Assumption(
            what=f"device {name!r}", value="not in the catalog", why=why, change="--on"
        )
        return DeviceFacts(usd_per_h=asked.usd_per_h), [unknown]
    device = choice.accelerator
    usd_per_h, assumed = _price(device, asked)
    return DeviceFacts(
        tdp_w=device.power.limit_w,
        memory_bytes=device.memory.driver_bytes,
        link_bytes_per_s=device.scale_up.bytes_per_s if device.scale_up else None,
        pcie_bytes_per_s=device.host_link.bytes_per_s if device.host_link else None,
        usd_per_h=usd_per_h,
    ), [*choice.assumptions, *assumed]


def _price(device: Accelerator, asked: DiagnoseRequest) -> tuple[float | None, list[Assumption]]:
    if asked.usd_per_h is not None:
        return asked.usd_per_h, []
    prices = [
        price
        for offer in rentable(read_offers())
        if offer.accelerator == device.id and (price := offer.usd_per_accelerator_h)
    ]
    if not prices:
        return None, []
    usd = median(prices)
    why = f"median of {len(prices)} published on-demand prices: what the hour is worth elsewhere"
    value = f"{usd:.2f} USD"
    return usd, [
        Assumption(
            what=f"price of an hour of {device.id}", value=value, why=why, change="--usd-per-h"
        )
    ]
