"""Scenarios as understood, and a plan against what happened."""

from dataclasses import replace

import pytest

from fakes.plans import answer
from fakes.results import column, lines, titled
from gpuplan.domain.telemetry.replan import Drift, Observed, Replanned
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.report.plan.difference import replan_sheet
from gpuplan.report.plan.document import scenario_sheet
from shared_data import ROOT

DRIFT = Drift(what="peak", planned="4 requests/s", observed="8", change_ratio=2.0, is_beyond=True)
SEEN = Observed(
    peak_requests_per_s=8.0, mean_requests_per_s=6.0, input_tokens=900.0, output_tokens=150.0,
    ttft_p95_s=0.1, tpot_p95_s=None, e2e_p95_s=None, power_w=None, n_replicas=3, span_s=600.0,
)  # fmt: skip


def replanned(**changed):
    found = Replanned(
        old=answer(6), new=answer(8), drifts=(DRIFT,), observed=SEEN, forecast=None,
        advice="change", n_added=2, n_step=2, saved_usd_per_month=-4307.0,
        once_usd=0.0, reasons=("demand doubled",), assumptions=(),
    )  # fmt: skip
    return replace(found, **changed)


def test_a_scenario_says_what_it_understood_and_assumed():
    scenario = read_scenario(ROOT / "examples" / "chat.yaml")
    sheet = scenario_sheet(scenario, "chat.yaml")
    n = len(scenario.assumptions)
    assert sheet.head == f"chat.yaml: 1 workload, {n} defaults assumed"
    assert column(sheet.tables[0], "kind") == ["online_inference"]
    assert len(lines(sheet, "Assumptions:")) == n
    assert sheet.document["ok"] is True
    assert sheet.document["workloads"][0]["model"] == scenario.workloads[0].model.name


def test_work_without_a_model_has_a_dash():
    sheet = scenario_sheet(read_scenario(ROOT / "examples" / "shared-cluster.yaml"), "s")
    assert set(column(sheet.tables[0], "model")) == {"–"}
    assert sheet.head.startswith("s: 3 workloads, ")


def test_drift_is_shown_with_its_ratio():
    sheet = replan_sheet(replanned())
    [row] = titled(sheet, "Plan against observation").rows
    assert row == ("peak", "4 requests/s", "8", "2.00", "yes")
    assert sheet.document["drift"][0]["beyond"] is True
    assert lines(sheet, "Why:") == ("demand doubled",)


@pytest.mark.parametrize(
    ("changed", "head"),
    [
        ({}, "add 2 accelerators: +4,307 $/month"),
        ({"advice": "change in steps"}, "add 2 accelerators now: +4,307 $/month"),
        ({"n_step": -1, "saved_usd_per_month": 10.0}, "release 1 accelerator: -10 $/month"),
        ({"n_step": 0}, "change the fleet: +4,307 $/month"),
        ({"advice": "keep"}, "keep the fleet"),
    ],
)
def test_the_head_is_what_to_do(changed, head):
    assert replan_sheet(replanned(**changed)).head.startswith(head)


def test_drift_is_part_of_the_head():
    assert "drifted" in replan_sheet(replanned()).head
    assert "drifted" not in replan_sheet(replanned(drifts=())).head


def test_both_fleets_stand_side_by_side():
    sheet = replan_sheet(replanned())
    table = titled(sheet, "Fleets")
    assert column(table, "fleet") == [
        "6 × H100 SXM (3 replicas, TP2)",
        "8 × H100 SXM (4 replicas, TP2)",
    ]
    assert sheet.document["old"]["fleet"] == "6 x h100-sxm as 3 x TP2"


def test_a_new_plan_that_is_not_feasible_is_said():
    nothing = replace(answer(), plan=None)
    sheet = replan_sheet(replanned(new=nothing))
    assert column(titled(sheet, "Fleets"), "fleet")[1] == "none feasible"
    assert sheet.document["new"] == {"fleet": "none that keeps the limits", "usd_per_month": ""}
