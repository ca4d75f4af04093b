"""Results of the real verbs, each made once, for whoever shows them."""

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from fakes.telemetry import Scene
from gpuplan import api
from gpuplan.domain.requests.requests import (
    FitRequest,
    LoadRequest,
    NetworkRequest,
    PredictRequest,
    TrainingRequest,
    TrainingRun,
)
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.domain.training.scaling import NodeLinks, ScaleRequest
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of
from gpuplan.report.plan.document import plan_text
from gpuplan.units import GBIT
from shared_data import ROOT

GOLDEN_PLANS = sorted((ROOT / "tests" / "golden" / "documents" / "plan").glob("*.json"))


def golden_plan(path: Path):
    """The answer behind a golden document."""
    document = json.loads(path.read_text())["document"]
    document["provenance"] |= {"package_version": "0", "catalog_sha256": "0"}
    return plan_of(read_yaml_text(json.dumps(document), name=path.name))


@cache
def example_plan(name: str):
    return golden_plan(next(path for path in GOLDEN_PLANS if path.stem == name))


@cache
def fit(on: str = "2xH100", model: str = "Llama-3.3-70B", **asked: object):
    return api.fit(model, on, FitRequest(precision="fp8", **asked))


@cache
def survey(model: str = "Llama-3.1-8B"):
    return api.survey(model)


@cache
def training_fit(on: str = "8xH100", task: str = "full", **asked: int):
    return api.training_fit("Llama-3.1-8B", on, TrainingRequest(task=task, **asked))


@cache
def prediction(model: str = "Llama-3.1-8B", on: str = "H100", n_concurrent: int = 16):
    load = LoadRequest(input_tokens=1000, output_tokens=200, n_concurrent=n_concurrent)
    return api.predict(model, on, PredictRequest(load=load))


@cache
def roofline():
    return api.roofline("Llama-3.1-8B", "H100", PredictRequest())


@cache
def network(batch: int = 64):
    return api.predict_network("resnet50", "A100-80GB", NetworkRequest(batch=batch))


@cache
def training_run(**more: float):
    columns = (
        ("model", "Llama-3.1-70B"), ("accelerator", "h100-sxm"), ("n_accelerators", "64"),
        ("tp", "4"), ("pp", "4"),
    )  # fmt: skip
    return api.predict_training(TrainingRun(columns=columns, **more))


@cache
def scale(counts: tuple[int, ...] = (8, 16, 32, 64), price: float | None = None):
    asked = ScaleRequest(
        model="Llama-3.1-8B", accelerator="H100", counts=counts, mfu_frac=0.45,
        links=NodeLinks(adapters_bytes_per_s=100 * GBIT),
        price_usd_per_h=price,
    )  # fmt: skip
    return api.scale(asked)


def requests(n: int = 600, per_s: float = 6.0, seed: int = 0):
    draw = np.random.default_rng(seed)
    arrive_s = np.cumsum(draw.exponential(1 / per_s, n))
    return requests_of(arrive_s, draw.integers(100, 900, n), draw.integers(20, 200, n))


@cache
def simulation(per_s: float = 6.0, ttft_s: float | None = 0.3, n: int = 600):
    asked = SimulateRequest(slo=SloTargets(ttft_s=ttft_s))
    return api.simulate("Llama-3.1-8B", "H100", requests(n, per_s), asked)


FLEET = """
pools:
  - {name: fast, replicas: 1, failures: {outages: [{at_s: 5, replica: 0, lasts_s: 3}]}}
  - {name: slow, on: L40S, replicas: 1, start: {load_s: 7}}
"""


def fleet_run(folder: Path, text: str = FLEET):
    file = folder / "fleet.yaml"
    file.write_text(text)
    load = LoadSource(requests=requests(200, 10.0), source="drawn")
    served = ("Llama-3.1-8B", "H100")
    return api.simulate_fleet(file, load, SimulateRequest(), served=served)


def scene(n_samples: int = 240) -> Scene:
    """Four GPUs of one team, of which the last does nothing."""
    made = Scene(n_samples=n_samples)
    for gpu in range(4):
        busy = 0.5 if gpu < 3 else 0.0
        made.device(
            gpu, "n1", gpu_util=busy, sm=0.7 * busy, tensor=0.2 * busy, dram=0.3, power_w=400.0,
            held_bytes=60e9, free_bytes=20e9, namespace="team-a", pod=f"job-{gpu}",
        )  # fmt: skip
    return made


@cache
def diagnosis(usd_per_h: float | None = 2.0):
    data = {"resultType": "matrix", "result": scene().result}
    text = json.dumps({"status": "success", "data": data})
    return api.diagnose_text(text, DiagnoseRequest(usd_per_h=usd_per_h))


def titled(sheet: Sheet, begin: str) -> Table:
    """The table of a sheet whose title begins so."""
    [found] = [table for table in sheet.file_tables if table.title.startswith(begin)]
    return found


def column(table: Table, head: str) -> list[str]:
    """The cells under one heading."""
    place = table.columns.index(head)
    return [row[place] for row in table.rows]


def lines(sheet: Sheet, heading: str) -> tuple[str, ...]:
    """The remarks under one heading; none where it is not there."""
    return dict(sheet.remarks).get(heading, ())


def figure(text: str) -> float:
    """The number at the beginning of a cell."""
    return float(text.replace(",", "").replace("−", "-").replace("$", "").split()[0])


@cache
def checked(name: str):
    return api.check(ROOT / "examples" / f"{name}.yaml")


@cache
def designed(name: str):
    """A plan of the examples with everything around it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.yaml"
        path.write_text(plan_text(example_plan(name)))
        return api.design(path)
