"""Verbs with the defaults that people expect; each loads its rooms when it is called."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.requests.requests import (
    FitRequest,
    NetworkRequest,
    PredictRequest,
    TrainingRun,
)
from gpuplan.errors import InputError, one
from gpuplan.units import GB, HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuplan.domain.calibration.validation import ValidationReport
    from gpuplan.domain.chart import Chart
    from gpuplan.domain.hardware.catalog import Catalog
    from gpuplan.domain.inference.fit import Fit, Survey
    from gpuplan.domain.inference.prediction import Prediction, Roofline
    from gpuplan.domain.model.other import NetworkForecast
    from gpuplan.domain.plan.answer import Answer
    from gpuplan.domain.scenario.scenario import Scenario
    from gpuplan.domain.simulation.fleet_file import FleetSimulation
    from gpuplan.domain.simulation.simulation import (
        CurveRequest,
        FleetSizeCurve,
        NetworkSimulation,
        PreparedFleet,
        SimulateRequest,
        Simulation,
    )
    from gpuplan.domain.system.check import SystemCheck
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest, Diagnosis
    from gpuplan.domain.telemetry.forecast import ForecastRequest, Outlook
    from gpuplan.domain.telemetry.monitoring import LiveSource, ServerAccess, TimeWindow, TopFrame
    from gpuplan.domain.telemetry.replan import Replanned, ReplanRequest
    from gpuplan.domain.traffic.drawn import LoadSource
    from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
    from gpuplan.domain.traffic.trace import TraceQuery
    from gpuplan.domain.training.run import RunForecast

Target = str | Path | Mapping[str, Any]
# Columns of a training table, with what is usual; None: the framework's usual.
TRAINING_COLUMNS: dict[str, object] = {
    "seq_len": 4096,
    "global_batch": 128,
    "micro_batch": 1,
    "tp": 1,
    "pp": 1,
    "vp": None,
    "cp": 1,
    "ep": 1,
    "sharding": None,
    "recompute": None,
    "precision": "bf16",
    "framework": None,
    "task": "pretrain",
    "fabric": None,
    "devices_per_node": None,
    "lora_rank": 16,
    "lora_targets": "all",
}


def plan(scenario: "Target | PlanRequest", **options: Any) -> "Answer":
    """What to get, how many, from where, at what cost, and why not the others.

    The scenario is a file, a line of words, a mapping with the keys of a scenario file, or a whole
    request. Options are fields of `PlanRequest`: seed, n_samples, changes, overlays, today …
    """
    from gpuplan.pipeline.plan import plan as verb

    if isinstance(scenario, PlanRequest):
        return verb(replace(scenario, **options))
    if isinstance(scenario, Mapping):
        name = str(scenario.get("name", "the scenario"))
        options = {"target": name, "tree": scenario, **options}
    else:
        options = {"target": str(scenario), **options}
    return verb(PlanRequest(**{"today": date.today(), **options}))


def scenario(tree: Mapping[str, Any] | None = None, **keys: Any) -> "Scenario":
    """A scenario built in Python: the keys of a scenario file, checked like one."""
    from gpuplan.inputs.scenario.read import scenario_from_dict

    whole = {**(tree or {}), **keys}
    return scenario_from_dict(whole, name=str(whole.get("name", "the scenario")))


def diff(old: Path, new: Path) -> "tuple[Answer, Answer]":
    """Two plan files as values."""
    from gpuplan.inputs.plan_file import read_plan

    return read_plan(old), read_plan(new)


def check(path: Path | str, changes: tuple[str, ...] = ()) -> "SystemCheck":
    """What a described system lacks, in order, and what would balance it.

    Changes such as "site.software.cuda=13.0" are set before it is judged.
    """
    from gpuplan.pipeline.check import check as verb

    return verb(Path(path), changes=changes, month=date.today().isoformat()[:7])


def fit(
    model: str,
    on: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Fit":
    """Whether this model fits on this accelerator, and with what room to spare."""
    from gpuplan.studies.fit import fit as verb

    return verb(model, on, request or FitRequest(), overlays=overlays, store=store)


def survey(
    model: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Survey":
    """Where this model fits: every accelerator of the catalog, fewest devices first."""
    from gpuplan.studies.fit import survey as verb

    return verb(model, request or FitRequest(), overlays=overlays, store=store)


def catalog(*, overlays: Sequence[Path] = ()) -> "Catalog":
    """Accelerators, servers, networks and storage, every number with its source."""
    from gpuplan.catalog.load import read_catalog
    from gpuplan.studies.naming import with_overlays

    return with_overlays(read_catalog(), overlays)


def predict(
    model: str,
    on: str,
    request: PredictRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
    calibration: Path | None = None,
) -> "Prediction":
    """Throughput, latency, power and memory of one configuration, each with a range."""
    from gpuplan.studies.inference.configuration import predict as verb

    asked = request or PredictRequest()
    return verb(model, on, asked, overlays=overlays, store=store, calibration=calibration)


def roofline(
    model: str,
    on: str,
    request: PredictRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Roofline":
    """Where prefill and decode sit under the roofline, and what limits each."""
    from gpuplan.studies.inference.roofline import roofline as verb

    return verb(model, on, request or PredictRequest(), overlays=overlays, store=store)


def predict_network(
    name: str, on: str, request: NetworkRequest | None = None, *, overlays: Sequence[Path] = ()
) -> "NetworkForecast":
    """Time of a batch of a network that is no language model, with its range."""
    from gpuplan.studies.networks.predict import predict_network as verb

    return verb(name, on, request or NetworkRequest(), overlays=overlays)


def predict_training(run: TrainingRun) -> "RunForecast":
    """Step time, throughput, MFU and length of a training run, with ranges.

    `training_run` builds the run from keywords.
    """
    from gpuplan.studies.training.predict import predict_run as verb

    return verb(run)


def training_run(
    model: str,
    on: str,
    *,
    devices: int = 8,
    tokens: float | None = None,
    mtbf_h: float | None = None,
    restart_min: float = 15.0,
    checkpoint_gb_per_s: float | None = None,
    **columns: object,
) -> TrainingRun:
    """A training run to predict, from keywords.

    Columns are those of a training table: seq_len, global_batch, micro_batch, tp, pp, vp, cp, ep,
    sharding, recompute, precision, framework, task, fabric, devices_per_node, lora_rank.
    """
    unknown = columns.keys() - TRAINING_COLUMNS.keys()
    if unknown:
        known = ", ".join(TRAINING_COLUMNS)
        raise one(InputError, "training_run", ", ".join(sorted(unknown)), "unknown", f"use {known}")
    first = {"id": "asked", "model": model, "accelerator": on, "n_accelerators": devices}
    given = {**first, **TRAINING_COLUMNS, **columns}
    return TrainingRun(
        columns=tuple((name, "" if v is None else str(v)) for name, v in given.items()),
        n_tokens=tokens,
        mtbf_s=None if mtbf_h is None else mtbf_h * HOUR,
        restart_s=restart_min * MINUTE,
        checkpoint_bytes_per_s=None if checkpoint_gb_per_s is None else checkpoint_gb_per_s * GB,
    )


def validate(
    path: Path | None = None,
    *,
    kind: str = "llm_inference",
    cross: bool = False,
    columns: Sequence[str] = (),
) -> "ValidationReport":
    """Predictions against a measured table, or against the package's own of this kind.

    `columns` name what a table calls otherwise: "gpu=accelerator", "seq_len:=2048".
    """
    from gpuplan.studies.validation.report import validate_file, validate_package

    if path is None:
        return validate_package(kind, cross=cross)
    return validate_file(path, cross=cross, columns=columns)


def simulate(
    model: str,
    on: str,
    requests: "Requests | LoadSource",
    request: "SimulateRequest | None" = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Simulation":
    """Requests replayed against a fleet: every request's times and what they say.

    Requests come from `read_trace(path).requests` or from `drawn_load(DrawnLoad(…))`.
    """
    from gpuplan.domain.simulation.simulation import SimulateRequest
    from gpuplan.domain.traffic.drawn import LoadSource
    from gpuplan.studies.replay.replicas import simulate as verb
    from gpuplan.studies.replay.replicas import simulate_load

    asked = request or SimulateRequest()
    if isinstance(requests, LoadSource):
        ready = prepare_fleet(model, on, requests.requests, asked, overlays=overlays, store=store)
        return simulate_load(ready, requests, asked)
    return verb(model, on, requests, asked=asked, overlays=overlays, store=store)


def prepare_fleet(
    model: str,
    on: str,
    requests: "Requests",
    request: "SimulateRequest",
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "PreparedFleet":
    """Engines ready to replay streams like this one."""
    from gpuplan.studies.replay.replicas import prepared as verb

    return verb(model, on, requests, asked=request, overlays=overlays, store=store)


def simulate_fleet(
    fleet: Path,
    load: "LoadSource",
    request: "SimulateRequest",
    *,
    served: "tuple[str | None, str]",
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "FleetSimulation":
    """A load replayed against the fleet of a file: pools, autoscaling, failures, clients."""
    from gpuplan.studies.replay.autoscaled.run import simulate_autoscaled as verb

    return verb(fleet, served, load, asked=request, overlays=overlays, store=store)


def simulate_network(
    network: str,
    on: str,
    load: "LoadSource",
    request: "SimulateRequest",
    *,
    overlays: Sequence[Path] = (),
) -> "NetworkSimulation":
    """A load replayed against servers of a network that is no language model."""
    from gpuplan.studies.replay.network import simulate_network as verb

    return verb(network, on, load, asked=request, overlays=overlays)


def simulate_curve(
    ready: "PreparedFleet",
    requests: "Requests",
    curve: "CurveRequest",
    *,
    request: "SimulateRequest",
    blocks: "PrefixBlocks | None" = None,
    told: "Callable[[int], None] | None" = None,
) -> "FleetSizeCurve":
    """Precision and recall over the size of the fleet, and the size that balances them."""
    from gpuplan.studies.replay.sizes import fleet_curve as verb

    return verb(ready, requests, curve, run=request, blocks=blocks, told=told)


def trace_load(
    path: Path, *, query: "TraceQuery | None" = None, scale: float = 1.0, seed: int = 0
) -> "LoadSource":
    """Requests of a trace file, more or fewer of them, as bursty as they were."""
    from gpuplan.studies.replay.load import traced_load as verb

    return verb(path, query=query, scale_factor=scale, seed=seed)


def clients_load(
    folder: Path,
    *,
    query: "TraceQuery | None" = None,
    duration_s: float | None = None,
    scale: float = 1.0,
    seed: int = 0,
) -> "LoadSource":
    """Requests drawn from recorded clients: a folder as ServeGen publishes them."""
    from gpuplan.studies.replay.clients import clients_load as verb

    return verb(folder, query=query, duration_s=duration_s, scale_factor=scale, seed=seed)


def diagnose(
    source: "Path | str | ServerAccess",
    request: "DiagnoseRequest | None" = None,
    *,
    window: "TimeWindow | None" = None,
) -> "Diagnosis":
    """What telemetry says: bands, peaks, causes with evidence, waste, and what helps."""
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
    from gpuplan.pipeline.diagnose import diagnose_file, diagnose_server

    asked = request or DiagnoseRequest()
    if isinstance(source, Path | str):
        return diagnose_file(Path(source), asked)
    if window is None:
        raise one(InputError, "diagnose", "window", "missing", "say from when to when")
    return diagnose_server(source, window, asked)


def diagnose_text(text: str, request: "DiagnoseRequest | None" = None) -> "Diagnosis":
    """The same, of a text: a pasted table, a scrape."""
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
    from gpuplan.pipeline.diagnose import diagnose_text as verb

    return verb(text, request or DiagnoseRequest())


def forecast(source: "Path | LiveSource", request: "ForecastRequest | None" = None) -> "Outlook":
    """Demand ahead with its range and record, and when to order; of a file or a server."""
    from gpuplan.domain.telemetry.forecast import ForecastRequest
    from gpuplan.studies.monitoring.outlook import outlook_of as verb

    return verb(source, request or ForecastRequest())


def replan(
    plan_file: Path, telemetry: "Path | LiveSource", request: "ReplanRequest | None" = None
) -> "Replanned":
    """A plan held against what happened: drift, the new plan, and whether to move."""
    from gpuplan.domain.telemetry.replan import ReplanRequest
    from gpuplan.pipeline.replan import replan_files as verb

    return verb(plan_file, telemetry, request or ReplanRequest())


def top_frames(path: Path, *, n_frames: int) -> "Iterator[TopFrame]":
    """A recording as frames for a screen."""
    from gpuplan.pipeline.top import recorded_frames as verb

    return verb(path, n_frames)
