"""Diagnoses, forecasts and manifests: figures with units, causes with evidence, nothing stopped."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from fakes.results import column, diagnosis, figure, lines, titled
from gpuplan.domain.telemetry.forecast import ForecastRequest
from gpuplan.errors import InputError, Problem
from gpuplan.observe.read import read_text
from gpuplan.report.telemetry.autoscaler import autoscaler_manifest, reclaim_patches
from gpuplan.report.telemetry.diagnosis import diagnose_sheet, score_sheet
from gpuplan.report.telemetry.forecast import forecast_sheet
from gpuplan.studies.monitoring.outlook import outlook
from gpuplan.units import HOUR, WEEK

PROBLEM = Problem("peak", "95 %", "at most 90 %")


def hours(values):
    rows = [f"{1.7e9 + 3600 * k:.0f},0,{v:.5f}" for k, v in enumerate(values)]
    return read_text("timestamp,gpu,allocated_frac\n" + "\n".join(rows) + "\n", source="made")


@pytest.fixture(scope="module")
def growing():
    asked = ForecastRequest(n_devices=48, lead_s=16 * WEEK, growth_frac_per_month=0.08)
    return outlook(hours([0.70] * 24 * 28), asked)


def test_the_head_is_the_first_verdict_with_mean_and_peak():
    found = diagnosis()
    head = diagnose_sheet(found).head
    assert head.startswith(f"utilization mean {found.use.mean_frac:.0%}, peak ")
    assert found.verdicts[0].title in head


@pytest.mark.parametrize(
    ("helps", "words"), [(True, "more GPUs would help"), (False, "more GPUs will not help")]
)
def test_the_head_says_whether_more_gpus_help(helps, words):
    found = diagnosis()
    first = replace(found.verdicts[0], more_devices_help=helps)
    assert words in diagnose_sheet(replace(found, verdicts=(first,))).head


def test_time_in_bands_is_all_of_the_time():
    table = titled(diagnose_sheet(diagnosis()), "Time in each utilization band")
    shares = [figure(cell.rstrip("%")) for cell in column(table, "share of time")]
    assert sum(shares) == pytest.approx(100, abs=3)
    bars = [cell.count("█") for cell in column(table, "")]
    assert bars == [round(0.3 * share) for share in shares] or max(bars) <= 30


def test_layers_of_utilization_lie_between_mean_and_peak():
    table = titled(diagnose_sheet(diagnosis()), "Layers of utilization")
    for mean, peak in zip(column(table, "mean"), column(table, "peak minute"), strict=True):
        assert figure(mean.rstrip("%")) <= figure(peak.rstrip("%")) + 1


def test_verdicts_have_evidence_and_actions_are_numbered():
    found = diagnosis()
    sheet = diagnose_sheet(found)
    table = titled(sheet, "Verdicts")
    causes = [one.cause.replace("_", " ") for one in found.verdicts]
    assert column(table, "cause") == causes
    assert all(column(table, "evidence"))
    actions = titled(sheet, "Actions, best first")
    assert column(actions, "")[0] == "1"


def test_many_subjects_are_shortened_on_the_screen_only():
    found = diagnosis()
    many = replace(found.verdicts[0], subjects=tuple(f"n{k}" for k in range(9)))
    sheet = diagnose_sheet(replace(found, verdicts=(many,)))
    assert column(titled(sheet, "Verdicts"), "where") == ["n0, n1, n2 and 6 more"]
    assert len(sheet.document["verdicts"][0]["subjects"]) == 9


def test_idle_time_is_gpu_hours_and_dollars():
    found = diagnosis()
    sheet = diagnose_sheet(found)
    for row, one in zip(sheet.document["waste"], found.waste, strict=True):
        assert row["accelerator_h"] == pytest.approx(one.accelerator_s / HOUR)
    if found.waste:
        table = titled(sheet, "Paid and lost")
        assert {"GPU-hours", "$", "kWh"} <= set(table.columns)


def test_without_a_price_no_dollars_are_invented():
    found = diagnosis()
    waste = tuple(replace(one, usd=None) for one in found.waste)
    teams = tuple(replace(one, usd=None) for one in found.teams)
    sheet = diagnose_sheet(replace(found, waste=waste, teams=teams))
    assert waste
    assert all(row["usd"] is None for row in sheet.document["waste"])
    for table in sheet.tables:
        if "$" in table.columns:
            assert set(column(table, "$")) == {""}


def test_the_document_keeps_the_contract():
    document = json.loads(json.dumps(diagnose_sheet(diagnosis()).document, allow_nan=False))
    assert {"mean", "peak", "bands", "verdicts", "precision", "recall", "reclaim"} <= set(document)
    assert {"cause", "confidence", "evidence", "actions"} <= set(document["verdicts"][0])


def test_a_diagnosis_without_utilization_has_no_bands():
    found = replace(diagnosis(), use=None)
    sheet = diagnose_sheet(found)
    assert sheet.document["mean"] is None
    assert sheet.document["bands"] == {}
    assert not any("utilization" in table.title.lower() for table in sheet.tables)
    assert sheet.head.startswith(found.verdicts[0].title)


def test_a_gate_names_every_violated_limit():
    sheet = score_sheet(diagnosis(), (PROBLEM,))
    assert sheet.head == "1 of the limits violated"
    assert sheet.document["ok"] is False
    assert sheet.document["broken"] == [{"where": "peak", "what": "95 %", "fix": "at most 90 %"}]
    assert titled(sheet, "Violated limits").rows == (("peak", "95 %", "at most 90 %"),)


def test_a_gate_that_holds_says_so():
    sheet = score_sheet(diagnosis(), ())
    assert sheet.head == "all limits met"
    assert sheet.document["ok"] is True
    assert not any(table.title == "Violated limits" for table in sheet.tables)


def test_idle_gpus_are_annotated_never_stopped():
    found = diagnosis()
    text = reclaim_patches(found)
    documents = [d for d in yaml.safe_load_all(text) if d]
    assert len(documents) == len({(one.team, one.job) for one in found.reclaims if one.job})
    for document in documents:
        assert document["kind"] == "Pod"
        assert set(document) == {"apiVersion", "kind", "metadata"}
        assert document["metadata"]["annotations"]["gpuplan.io/reclaim"] == "proposed"
    assert "delete" not in text


def test_reclaims_without_a_pod_are_a_comment():
    found = diagnosis()
    if not found.reclaims:
        pytest.skip("nothing is idle in this scene")
    text = reclaim_patches(replace(found, reclaims=(replace(found.reclaims[0], job=""),)))
    assert f"# allocated to no pod that telemetry names: {found.reclaims[0].subject}" in text
    assert [d for d in yaml.safe_load_all(text) if d] == []


def test_an_order_that_is_late_is_said_first(growing):
    sheet = forecast_sheet(growing)
    assert sheet.head.startswith("order now: the trigger is reached in 10.9 weeks")
    assert "bridge" in sheet.head


def test_orders_are_in_weeks_for_every_growth(growing):
    table = titled(forecast_sheet(growing), "When to order")
    assert column(table, "growth") == ["+4.0%", "+8.0%", "+12.0%"]
    triggers = [figure(cell) for cell in column(table, "trigger")]
    assert triggers == sorted(triggers, reverse=True)


def test_an_order_in_time_says_within_how_many_weeks(growing):
    later = replace(growing.advice[1], order_in_s=3 * WEEK, trigger_in_s=19 * WEEK)
    head = forecast_sheet(replace(growing, advice=(later, later, later))).head
    assert head == "order by 2024-01-02: trigger in 19.0 weeks"
    never = replace(later, trigger_in_s=None, order_in_s=None)
    sheet = forecast_sheet(replace(growing, advice=(never, never, never)))
    assert "not reached" in sheet.head
    assert set(column(titled(sheet, "When to order"), "order by")) == {"never"}


def test_the_forecast_stays_in_its_range_and_is_dated(growing):
    table = titled(forecast_sheet(growing), "GPU allocation ahead")
    assert all(cell.startswith("20") for cell in column(table, "time"))
    for expected, spread in zip(
        column(table, "expected"), column(table, "80 % range"), strict=True
    ):
        low, high, middle = (figure(p.rstrip("%")) for p in (*spread.split(" … "), expected))
        assert low <= middle <= high


def test_interpolated_gaps_are_a_warning(growing):
    series = replace(growing.forecast.series, n_filled=7)
    found = replace(growing, forecast=replace(growing.forecast, series=series))
    assert "7 steps without samples were interpolated" in lines(forecast_sheet(found), "Warnings:")


def test_without_devices_there_is_nothing_to_order():
    found = outlook(
        hours(0.5 + 0.1 * np.sin(np.arange(24 * 28) / 24 * 2 * np.pi)), ForecastRequest()
    )
    sheet = forecast_sheet(found)
    assert sheet.head.startswith("GPU allocation peaks at 60% (")
    assert sheet.document["orders"] == []
    assert not any(table.title == "When to order" for table in sheet.tables)


@pytest.mark.parametrize("kind", ["keda", "hpa"])
def test_autoscalers_follow_the_recommendation_not_utilization(kind):
    text = autoscaler_manifest(kind, target="chat", server="http://prometheus:9090")
    document = yaml.safe_load(text)
    assert document["metadata"]["name"] == "chat-gpuplan"
    assert "gpuplan_recommended_replicas" in text
    assert document["spec"]["scaleTargetRef"]["name"] == "chat"
    assert "stabilizationWindowSeconds: 900" in text


def test_an_unknown_autoscaler_is_an_input_error():
    with pytest.raises(InputError, match="keda or hpa"):
        autoscaler_manifest("cron", target="x", server="y")


def test_a_hostile_target_stays_a_string():
    document = yaml.safe_load(autoscaler_manifest("hpa", target="a: {b}", server="s"))
    assert document["spec"]["scaleTargetRef"]["name"] == "a: {b}"
