"""What is typed reaches its request: no option of a command and no key of a body is dropped."""

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from gpuplan.cli import diagnose, explain, fit, forecast
from gpuplan.cli.predict import network, serving, training
from gpuplan.domain.cluster.answer import EtaRequest
from gpuplan.domain.plan.probe import ProbeRequest
from gpuplan.domain.requests import requests
from gpuplan.domain.requests.typed import UNITS_S
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.telemetry.forecast import ForecastRequest
from gpuplan.domain.telemetry.replan import ReplanRequest
from gpuplan.domain.traffic.drawn import DrawnLoad
from gpuplan.domain.training.scaling import ScaleRequest
from gpuplan.server.rest import bodies, verbs

NOUNS = {
    noun.__name__: noun
    for noun in (
        requests.FitRequest,
        requests.LoadRequest,
        requests.NetworkRequest,
        requests.PredictRequest,
        requests.TrainingRequest,
        DiagnoseRequest,
        DrawnLoad,
        EtaRequest,
        ForecastRequest,
        ProbeRequest,
        ReplanRequest,
        ScaleRequest,
        SimulateRequest,
    )
}


def read_names(function: ast.AST) -> tuple[set[str], set[str]]:
    """Attributes that a function reads, and nouns that it fills by name."""
    nodes = list(ast.walk(function))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    filled = {
        node.args[0].id
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "request_of"
        and isinstance(node.args[0], ast.Name)
    }
    return read, filled


def dropped(names: set[str], source: ModuleType) -> Iterator[str]:
    """Names that nothing in the module reads, and that are no field of a noun it fills."""
    read, filled = read_names(ast.parse(inspect.getsource(source)))
    assert filled <= NOUNS.keys(), "add the noun above"
    fields = {field.name for noun in filled for field in dataclasses.fields(NOUNS[noun])}
    for name in sorted(names - read - fields):
        ends = [end for end in UNITS_S if name.endswith(end)]
        if not any(name.removesuffix(end) + "_s" in fields for end in ends):
            yield name


@pytest.mark.parametrize(
    "options",
    [
        diagnose.DiagnoseOptions,
        explain.ProbeOptions,
        fit.FitOptions,
        fit.FitTrainingOptions,
        forecast.EtaOptions,
        forecast.ForecastOptions,
        forecast.ReplanOptions,
        network.NetworkOptions,
        serving.PredictOptions,
        serving.RooflineOptions,
        training.ScaleOptions,
    ],
)
def test_every_option_is_read_or_fills_a_field(options):
    assert list(dropped(set(options._fields), inspect.getmodule(options))) == []


def test_every_key_of_a_body_is_read_or_fills_a_field():
    own = [body for _, body in inspect.getmembers(bodies, inspect.isclass)]
    keys = {key for body in own if issubclass(body, bodies.Body) for key in body.model_fields}
    assert list(dropped(keys, verbs)) == []


def test_the_check_tells_a_name_that_leads_nowhere():
    assert list(dropped({"horizon_h", "metric", "horizon_fortnights"}, forecast)) == [
        "horizon_fortnights"
    ]
