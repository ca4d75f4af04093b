"""Diagnose: telemetry from a file or a server -> facts of its devices -> causes."""

from dataclasses import replace
from pathlib import Path

from gpuplan.diagnose.fleet import diagnose_fleet
from gpuplan.diagnose.judge import diagnose as judge
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.telemetry.diagnosis import BandEdges, DiagnoseRequest, Diagnosis
from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.inputs.plan_file import read_plan
from gpuplan.observe.fleet import is_fleet, read_fleet
from gpuplan.observe.prometheus_live import read_prometheus
from gpuplan.observe.read import read_telemetry, read_text
from gpuplan.observe.tables import MAX_ROWS
from gpuplan.studies.monitoring.devices import (
    device_facts,
    facts_of_fleet,
    mean_price,
    model_facts,
    power_limits_w,
    refuse_empty,
)
from gpuplan.studies.planning.gate import refuse


def learn(path: Path) -> Diagnosis | Answer:
    """What lessons are drawn from: a plan file (YAML) that stands, or telemetry."""
    if path.suffix in (".yaml", ".yml"):
        answer = read_plan(path)
        refuse(answer)
        return answer
    return diagnose_file(path, DiagnoseRequest())


def diagnose_file(path: Path, request: DiagnoseRequest) -> Diagnosis:
    """What a file of telemetry says, or a folder of them."""
    if is_fleet(path, MAX_ROWS):
        return _diagnose_fleet(path, request)
    return diagnose(refuse_empty(read_telemetry(path)), request)


def _diagnose_fleet(path: Path, request: DiagnoseRequest) -> Diagnosis:
    """A fleet too large for series, device by device."""
    digest = read_fleet(path)
    facts, assumptions = facts_of_fleet(digest.devices.model, request)
    found = diagnose_fleet(
        digest,
        tdp_w=power_limits_w(facts),
        usd_per_h=mean_price(facts, request),
        edges=request.edges or BandEdges(),
        beta_ratio=request.beta_ratio,
    )
    return replace(found, assumptions=tuple(assumptions))


def diagnose_text(text: str, request: DiagnoseRequest | None = None) -> Diagnosis:
    """What a text says: a pasted table, a scrape."""
    read = read_text(text, source="pasted text")
    return diagnose(refuse_empty(read), request or DiagnoseRequest())


def diagnose_server(
    access: ServerAccess, window: TimeWindow, request: DiagnoseRequest
) -> Diagnosis:
    """What a live server says of a stretch of time."""
    return diagnose(refuse_empty(read_prometheus(access, window)), request)


def diagnose(telemetry: Telemetry, request: DiagnoseRequest) -> Diagnosis:
    """What telemetry says that is here already."""
    facts, assumptions = device_facts(telemetry, request)
    found = judge(telemetry, facts, request, model=model_facts(request.model))
    return replace(found, assumptions=(*found.assumptions, *assumptions))
