"""The verbs that HTTP offers: each takes a checked body and gives a document.

They run in processes of their own, in an empty folder: nothing that a request names is opened.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gpuplan import api
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.plan import PlanBasis, PlanRequest
from gpuplan.domain.requests.requests import (
    FitRequest,
    LoadRequest,
    NetworkRequest,
    PredictRequest,
    ReplicaSpan,
    TrainingRequest,
)
from gpuplan.domain.requests.typed import request_of
from gpuplan.domain.result import Result
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest, SimulateRequest
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.telemetry.forecast import ForecastRequest
from gpuplan.domain.telemetry.replan import ReplanRequest
from gpuplan.domain.traffic.drawn import DrawnLoad
from gpuplan.domain.training.scaling import ScaleRequest
from gpuplan.errors import InputError, one
from gpuplan.server.rest.bodies import (
    Body,
    CalibrateBody,
    CatalogBody,
    DiagnoseBody,
    DiffBody,
    FitBody,
    ForecastBody,
    NetworkBody,
    PlanBody,
    PlanFileBody,
    PredictBody,
    RenderBody,
    ReplanBody,
    ReportBody,
    ScaleBody,
    SimulateBody,
    SystemBody,
    TextBody,
    TrainingBody,
    TrainingFitBody,
    ValidateBody,
    WhatIfBody,
)
from gpuplan.server.rest.content import refuse_files
from gpuplan.units import GBIT

Document = dict[str, Any]


class Verb(NamedTuple):
    """A verb, what it is asked, and what its page says."""

    body: type[Body]
    run: Callable[[Any], Result | Sheet | Document]
    summary: str


def answer(name: str, body: Mapping[str, Any]) -> Document:
    """The document of a verb; with tables and remarks for people where the name asks for them.

    `plan+sheet` is `plan` with its sheet, `plan+quick` the same for a hand on a slider.
    """
    plain, _, form = name.partition("+")
    found = found_by(plain, body)
    if isinstance(found, dict):
        return found
    sheet = api.Presenter().sheet(found) if isinstance(found, Result) else found
    if not form:
        return sheet.document
    return {
        "document": sheet.document,
        "head": sheet.head,
        "tables": [pick_table(each) for each in sheet.file_tables],
        "remarks": [[title, list(lines)] for title, lines in sheet.remarks if lines],
        "heat": _heat(found),
        "purchases": _purchases(found, form),
        "reading": _reading(found, body),
    }


def pick_table(table: Table) -> Document:
    """A table as plain values."""
    rows = [list(row) for row in table.rows]
    columns, right = list(table.columns), list(table.right)
    return {"title": table.title, "columns": columns, "right": right, "rows": rows}


def _purchases(found: Result | Sheet, form: str) -> list[Document]:
    """Compared fleets at prices that the plan may not use; none for a hand on a slider."""
    if not isinstance(found, Answer) or found.plan is None or form != "sheet":
        return []
    return [each._asdict() for each in api.purchases(found)]


def _reading(found: Result | Sheet, body: Mapping[str, Any]) -> Document | None:
    """What the words of a plan were understood as, and what was assumed for the rest."""
    is_plan = isinstance(found, Answer) and "words" in body
    described = is_plan and api.describe(_requested(PlanBody.model_validate(body)))
    return api.description_sheet(described).document if described else None


def _heat(found: Result | Sheet) -> Document | None:
    """Utilization by device and time, where telemetry was looked at."""
    heat = getattr(found, "heat", None)
    if heat is None:
        return None
    rows = [[None if isnan(v) else float(v) for v in row] for row in heat.use_frac]
    return {"rows": list(heat.rows), "at_s": heat.at_s.tolist(), "use_frac": rows}


def found_by(name: str, body: Mapping[str, Any]) -> Result | Sheet | Document:
    """What the verb itself gives."""
    refuse_files(body)
    verb = VERBS[name]
    return verb.run(verb.body.model_validate(body))


def _requested(body: PlanBody) -> PlanRequest:
    if (body.scenario is None) == (body.words is None):
        raise one(InputError, "request", "body", "needs one of scenario and words", "send either")
    tree = body.scenario
    return PlanRequest(
        target=str(body.words if tree is None else tree.get("name", "the scenario")),
        tree=tree,
        today=date.today(),
        changes=tuple(body.changes),
        n_samples=body.samples,
        seed=body.seed,
        min_probability_frac=body.confidence,
        basis=PlanBasis(is_brief=body.brief, is_largest=body.largest_load),
    )


def _plan(body: PlanBody) -> Result:
    return api.plan(_requested(body))


def _what_if(body: WhatIfBody) -> Sheet:
    return api.diff_sheet(*api.what_if(_requested(body), tuple(body.what_if)))


def _explain(body: PlanFileBody) -> Sheet:
    return api.explain_sheet(api.explain(_file(body.plan, "plan.yaml")))


def _probe(body: PlanFileBody) -> Result:
    return api.probe(_file(body.plan, "plan.yaml"))


def _verify(body: PlanFileBody) -> Sheet:
    return api.verified_sheet(api.verify(_file(body.plan, "plan.yaml")))


def _diff(body: DiffBody) -> Sheet:
    old, new = api.diff(_file(body.plan, "plan.yaml"), _file(body.other, "other.yaml"))
    return api.diff_sheet(old, new)


def _design(body: PlanFileBody) -> Sheet:
    return api.design_sheet(api.design(_file(body.plan, "plan.yaml")))


def _check(body: SystemBody) -> Sheet:
    return api.check_sheet(api.check(_file(body.system, "system.yaml"), tuple(body.changes)))


def _report(body: ReportBody) -> Document:
    made = api.report(_file(body.plan, "plan.yaml"), body.to)
    if body.to == "html":
        return {"html": made}
    return _packed([(f"plan.{body.to}", made.encode() if isinstance(made, str) else made)])


def _render(body: RenderBody) -> Document:
    files = api.render(_file(body.plan, "plan.yaml"), body.to)
    return _packed([(each.path, each.content) for each in files])


def _packed(files: list[tuple[str, bytes]]) -> Document:
    return {"files": [{"path": path, "base64": b64encode(made).decode()} for path, made in files]}


def _fit(body: FitBody) -> Result:
    request = request_of(FitRequest, body, n_sequences=body.concurrency)
    return api.fit(body.model, body.on, request)


def _predict(body: PredictBody) -> Result:
    return api.predict(body.model, body.on, _served(body))


def _roofline(body: PredictBody) -> Result:
    return api.roofline(body.model, body.on, _served(body))


def _served(body: PredictBody) -> PredictRequest:
    n, hit_frac = body.concurrency, body.prefix_cache_hit_rate
    load = request_of(LoadRequest, body, n_concurrent=n, prefix_hit_frac=hit_frac)
    return request_of(PredictRequest, body, span=_span(body), n_replicas=body.replicas, load=load)


def _span(body: PredictBody) -> ReplicaSpan:
    return ReplicaSpan(network_bytes_per_s=body.node_gbit * GBIT if body.node_gbit else None)


def _simulate(body: SimulateBody) -> Result:
    lengths = {"input": _lengths(body.input_tokens), "output": _lengths(body.output_tokens)}
    load = request_of(DrawnLoad, body, **lengths)
    lora = LoraUse(rank=body.lora_rank, n_adapters=body.loras, n_slots=body.max_loras)
    replica = ReplicaRequest(
        pp=body.pp,
        dp=body.dp,
        ep=body.ep,
        span=_span(body),
        adapters=lora if body.lora_rank else None,
    )
    engine = EngineRequest(replica=replica)
    request = request_of(SimulateRequest, body, n_replicas=body.replicas, scheduler=engine)
    drawn = api.drawn_load(load, seed=body.seed)
    return api.simulate(body.model, body.on, drawn, request)


def _lengths(n_tokens: int | None) -> TokenLengths | None:
    return None if n_tokens is None else TokenLengths(shape="fixed", mean_tokens=float(n_tokens))


def _predict_network(body: NetworkBody) -> Result:
    return api.predict_network(body.network, body.on, request_of(NetworkRequest, body))


def _predict_training(body: TrainingBody) -> Result:
    columns: dict[str, Any] = dict(body.columns)
    run = api.training_run(body.model, body.on, devices=body.devices, tokens=body.tokens, **columns)
    return api.predict_training(run)


def _fit_training(body: TrainingFitBody) -> Result:
    return api.training_fit(body.model, body.on, request_of(TrainingRequest, body))


def _scale(body: ScaleBody) -> Result:
    counts = tuple(body.counts)
    return api.scale(request_of(ScaleRequest, body, accelerator=body.on, counts=counts))


def _diagnose(body: DiagnoseBody) -> Result:
    return api.diagnose_text(body.text, request_of(DiagnoseRequest, body))


def _forecast(body: ForecastBody) -> Result:
    n_devices, n_capacity = body.devices, body.capacity
    request = request_of(ForecastRequest, body, n_devices=n_devices, n_capacity=n_capacity)
    return api.forecast(_text(body.text, "demand"), request)


def _replan(body: ReplanBody) -> Sheet:
    today = date.today().isoformat()
    request = request_of(ReplanRequest, body, as_of=today)
    plan, telemetry = _file(body.plan, "plan.yaml"), _text(body.text, "telemetry")
    return api.replan_sheet(api.replan(plan, telemetry, request))


def _calibrate(body: CalibrateBody) -> Sheet:
    out = Path("calibration.json")
    sheet = api.calibrate_sheet(
        api.calibrate([_text(body.text, "runs")], given=body.given, out=out)
    )
    return replace(sheet, document={**sheet.document, "calibration": out.read_text()})


def _validate(body: ValidateBody) -> Result:
    table = None if body.text is None else _text(body.text, "measured")
    return api.validate(table, kind=body.kind)


def _predict_table(body: TextBody) -> Sheet:
    report = api.predict_table(_text(body.text, "table"))
    sheet = api.validate_sheet(report)
    return replace(sheet, document={**sheet.document, "csv": api.predictions_csv(report)})


def _trace(body: TextBody) -> Sheet:
    return api.trace_sheet(_text(body.text, "trace"))


def _catalog(body: CatalogBody) -> Sheet:
    if body.item is not None:
        return api.catalog_show(body.item)
    return api.catalog_list(
        body.what, accelerator=body.accelerator, cloud=body.cloud, region=body.region
    )


def _text(text: str, name: str) -> Path:
    """A text of the request as a file of the worker's own folder, named by what it looks like."""
    start = text.lstrip()[:1]
    ending = "csv" if start not in "{[#" else "prom" if start == "#" else "json"
    if start == "{" and "\n{" in text:
        ending = "jsonl"
    path = Path(f"{name}.{ending}")
    path.write_text(text, encoding="utf-8")
    return path


def _file(document: Mapping[str, Any], name: str) -> Path:
    """A document of the request as a file of the worker's own folder."""
    path = Path(name)
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False), encoding="utf-8")
    return path


VERBS = {
    "plan": Verb(PlanBody, _plan, "Plan a fleet."),
    "what-if": Verb(WhatIfBody, _what_if, "A plan beside one with keys of the scenario changed."),
    "explain": Verb(PlanFileBody, _explain, "Explain a plan."),
    "verify": Verb(PlanFileBody, _verify, "Verify a plan with an independent checker."),
    "diff": Verb(DiffBody, _diff, "Compare two plans."),
    "report": Verb(ReportBody, _report, "A plan as a page, Markdown, a table or a workbook."),
    "render": Verb(RenderBody, _render, "A plan as files that other tools run."),
    "check": Verb(SystemBody, _check, "Bottlenecks, power, cooling and network of a system."),
    "design": Verb(PlanFileBody, _design, "Hosts, network, storage, site and cost of a plan."),
    "fit": Verb(FitBody, _fit, "Whether a model fits in memory for inference."),
    "fit-training": Verb(TrainingFitBody, _fit_training, "Whether a training job fits in memory."),
    "predict": Verb(PredictBody, _predict, "Throughput, latency, power and memory."),
    "predict-table": Verb(TextBody, _predict_table, "Predictions for each row of a table."),
    "predict-training": Verb(TrainingBody, _predict_training, "Step time of a training run."),
    "predict-network": Verb(NetworkBody, _predict_network, "Other networks: CNNs, encoders …"),
    "roofline": Verb(PredictBody, _roofline, "What limits prefill and decode."),
    "scale": Verb(ScaleBody, _scale, "Training speed-up over the number of accelerators."),
    "simulate": Verb(SimulateBody, _simulate, "A load replayed request by request."),
    "trace": Verb(TextBody, _trace, "What a recorded load is like: rates, lengths, burstiness."),
    "diagnose": Verb(DiagnoseBody, _diagnose, "Utilization, waste, causes and actions."),
    "forecast": Verb(ForecastBody, _forecast, "Demand ahead, and when to order."),
    "replan": Verb(ReplanBody, _replan, "A plan compared with telemetry, and the next one."),
    "validate": Verb(ValidateBody, _validate, "Predictions against measured rows."),
    "calibrate": Verb(CalibrateBody, _calibrate, "The model refitted to own benchmark runs."),
    "catalog": Verb(CatalogBody, _catalog, "Facts of the catalog, with their sources."),
    "probe": Verb(PlanFileBody, _probe, "The benchmark runs worth most to a plan."),
}
