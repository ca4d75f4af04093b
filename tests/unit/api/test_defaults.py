"""What a verb takes for granted: said in full, the answer is the same."""

import csv
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

import gpuplan
from fakes import results
from gpuplan import api
from gpuplan.api.pages import need
from gpuplan.api.presenter import Presenter, shown
from gpuplan.api.verbs import TRAINING_COLUMNS
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.requests.requests import FitRequest, NetworkRequest, PredictRequest
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.errors import InputError
from gpuplan.report.plan.document import plan_text
from gpuplan.units import GB, HOUR, MINUTE
from shared_data import ROOT

MODEL, ON = "Llama-3.1-8B", "H100"
SHEETS = {kind: row["sheet"] for kind, row in shown().items()}
ROWS = {kind: row["rows"] for kind, row in shown().items() if row["rows"]}
HOSTILE = "<script>alert('x')</script>"


@pytest.mark.parametrize(
    ("short", "full"),
    [
        (lambda: api.fit(MODEL, ON), lambda: api.fit(MODEL, ON, FitRequest())),
        (lambda: api.survey(MODEL), lambda: api.survey(MODEL, FitRequest())),
        (lambda: api.predict(MODEL, ON), lambda: api.predict(MODEL, ON, PredictRequest())),
        (lambda: api.roofline(MODEL, ON), lambda: api.roofline(MODEL, ON, PredictRequest())),
        (
            lambda: api.predict_network("resnet50", "A100-80GB"),
            lambda: api.predict_network("resnet50", "A100-80GB", NetworkRequest()),
        ),
        (
            lambda: api.diagnose_text("Time (min),GPU Utilization (%)\n0,20\n1,90\n"),
            lambda: api.diagnose_text(
                "Time (min),GPU Utilization (%)\n0,20\n1,90\n", DiagnoseRequest()
            ),
        ),
    ],
    ids=["fit", "survey", "predict", "roofline", "predict_network", "diagnose_text"],
)
def test_a_request_that_is_left_out_is_the_usual_one(short, full):
    assert short().to_dict() == full().to_dict()


def test_a_training_run_fills_every_column_with_what_is_usual():
    run = api.training_run(MODEL, ON)
    columns = dict(run.columns)
    assert columns.keys() >= TRAINING_COLUMNS.keys()
    assert (columns["n_accelerators"], columns["seq_len"], columns["task"]) == (
        "",  # those that the name counts, or a server of them
        "4096",
        "pretrain",
    )
    assert columns["sharding"] == ""  # the framework's usual
    assert (run.n_tokens, run.mtbf_s, run.checkpoint_bytes_per_s) == (None, None, None)
    assert run.restart_s == 15 * MINUTE


def test_what_a_training_run_is_given_is_kept_in_seconds_and_bytes():
    run = api.training_run(MODEL, ON, mtbf_h=2.0, restart_min=3.0, checkpoint_gb_per_s=4.0, tp=2)
    assert (run.mtbf_s, run.restart_s) == (2 * HOUR, 3 * MINUTE)
    assert run.checkpoint_bytes_per_s == 4 * GB
    assert dict(run.columns)["tp"] == "2"


def test_an_overlay_is_laid_on_the_catalog(tmp_path: Path):
    path = tmp_path / "lab.yaml"
    path.write_text("accelerators:\n  h100-sxm:\n    tdp_w: 650\n")
    assert api.catalog(overlays=[path]).accelerators["h100-sxm"].power.limit_w == 650
    assert api.catalog().accelerators["h100-sxm"].power.limit_w == 700


def test_telemetry_of_a_server_needs_a_window():
    with pytest.raises(InputError, match="say from when to when"):
        api.diagnose(object())


def test_what_if_changes_the_second_answer_alone():
    request = PlanRequest(
        target=str(ROOT / "examples" / "which-gpu.yaml"), today=date(2026, 11, 16), n_samples=0
    )
    before, after = api.what_if(request, ("workloads[0].demand.output_tokens_per_s=40000",))
    assert before == gpuplan.plan(request)
    small, large = (sum(p.n_replicas for p in answer.plan.pools) for answer in (before, after))
    assert large > small


def test_a_trace_is_replayed_request_by_request(tmp_path: Path):
    path = tmp_path / "trace.csv"
    path.write_text("arrive_s,input_tokens,output_tokens\n0,100,10\n1,200,20\n3,300,30\n")
    found = api.simulate(MODEL, ON, api.read_trace(path).requests)
    table = found.to_polars()
    assert table["input_tokens"].to_list() == [100, 200, 300]
    assert table["output_tokens"].to_list() == [10, 20, 30]
    again = api.simulate(MODEL, ON, api.read_trace(path).requests, SimulateRequest())
    assert table.equals(again.to_polars())
    taken = api.trace_load(path)
    assert api.simulate(MODEL, ON, taken).outcome.n_completed == 3


def test_a_trace_may_be_scaled(tmp_path: Path):
    path = tmp_path / "trace.csv"
    rows = "".join(f"{k},100,10\n" for k in range(200))
    path.write_text(f"arrive_s,input_tokens,output_tokens\n{rows}")
    assert len(api.trace_load(path).requests) == 200
    assert len(api.trace_load(path, scale=2.0).requests) == pytest.approx(400, rel=0.2)


def test_a_small_table_is_validated_row_by_row(tmp_path: Path):
    rows = [dict(row) for row in read_rows("llm_inference.csv")[:3]]
    rows.append({**rows[0], "id": "bad", "model": "no such model"})
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    report = api.validate(path)
    assert (report.kind, report.n_rows, report.n_covered) == ("llm_inference", 4, 3)
    assert [name for name, _ in report.refused] == ["bad"]
    assert report.to_dict()["covered"] == 3


def test_a_system_is_checked_with_its_keys_changed():
    path = ROOT / "examples" / "system-slow-disks-basic-switch.yaml"
    named = results.checked(path.stem)
    changed = api.check(str(path), changes=("name=another",))
    assert changed.to_dict()["name"] == "another" != named.to_dict()["name"]
    with pytest.raises(InputError, match="no_such_key"):
        api.check(path, changes=("site.no_such_key=1",))


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = results.example_plan("chat")
    path = tmp_path_factory.mktemp("plans") / "plan.yaml"
    path.write_text(plan_text(answer))
    return path


def test_a_plan_file_is_a_page_and_a_value(plan_file: Path):
    page = api.report(plan_file)
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert page == api.plan_page(api.read_plan(plan_file))
    assert api.explain(plan_file) == api.read_plan(plan_file)
    assert api.diff(plan_file, plan_file) == (api.read_plan(plan_file),) * 2


def test_hostile_names_are_text_on_a_page(plan_file: Path):
    answer = api.read_plan(plan_file)
    page = api.plan_page(replace(answer, name=HOSTILE))
    assert HOSTILE not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize("part", ["title", "column", "cell", "remark"])
def test_hostile_cells_are_escaped(part: str):
    said = {name: HOSTILE if name == part else "plain" for name in ("title", "column", "cell")}
    table = Table(title=said["title"], columns=(said["column"],), rows=((said["cell"],),))
    remark = HOSTILE if part == "remark" else "plain"
    page = Presenter().html(Sheet(document={}, tables=(table,), remarks=(("Notes", (remark,)),)))
    assert page is not None
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_without_the_package_that_makes_pages_it_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gpuplan.api.pages.find_spec", lambda _: None)
    with pytest.raises(InputError, match="need jinja2") as caught:
        need("jinja2", "pages")
    assert "gpuplan[report]" in caught.value.problems[0].fix
    monkeypatch.setattr("gpuplan.api.presenter.find_spec", lambda _: None)
    assert Presenter().html(Sheet(document={}, tables=())) is None


SHOWN = {
    "Fit": results.fit,
    "Survey": results.survey,
    "TrainingFit": results.training_fit,
    "Prediction": results.prediction,
    "Roofline": results.roofline,
    "NetworkForecast": results.network,
    "RunForecast": results.training_run,
    "ScaleCurve": results.scale,
    "Simulation": results.simulation,
    "Diagnosis": results.diagnosis,
    "Answer": lambda: results.example_plan("chat"),
    "SystemCheck": lambda: results.checked("system-slow-disks-basic-switch"),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_each_kind_of_result_shows_itself(kind: str):
    result = SHOWN[kind]()
    assert type(result).__name__ == kind
    sheet = Presenter().sheet(result)
    assert result.to_dict() == sheet.document
    assert sheet == getattr(api, SHEETS[kind])(result)
    rows = Presenter().columns(result)
    if kind in ROWS:
        assert rows is not None
        assert len(rows) == len(sheet.document[ROWS[kind]])
    else:
        assert (rows is None) == (kind != "Simulation")


def test_every_main_table_is_of_a_kind_that_is_shown():
    assert ROWS.keys() <= SHEETS.keys()
    assert all(callable(getattr(api, sheet)) for sheet in SHEETS.values())


def test_names_are_loaded_from_where_they_live():
    assert api.read_plan is api.explain
    assert api.fabric_svg.__name__ == "fabric_drawing"
    with pytest.raises(AttributeError, match="no attribute '__wrapped__'"):
        api.__wrapped__  # noqa: B018
