"""A simulated cluster as it is shown: first line, tables, document, drawing."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import (
    ClusterAdvice,
    ClusterRequest,
    EtaRequest,
    PolicyRow,
    QuotaAdvice,
    StartEstimate,
)
from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.report.cluster.drawing import cluster_svg
from gpuplan.report.cluster.sheet import cluster_sheet, eta_sheet, job_columns, span
from gpuplan.studies.cluster.simulate import answers


@pytest.fixture(scope="module")
def run():
    jobs = Jobs(
        arrive_s=np.array([0.0, 0.0, 7200.0]),
        duration_s=np.array([3600.0, 1800.0, 60.0]),
        n_accelerators=np.array([8, 8, 1]),
        team=np.array([0, 1, 0]),
        team_names=("a", "b"),
        remarks=("passed over jobs without GPUs: 4",),
    )
    group = NodeGroup(
        accelerator="H100", n_nodes=1, n_accelerators_per_node=8, usd_per_accelerator_h=2.0
    )
    teams = (ClusterTeam(name="a"), ClusterTeam(name="b", wait_p90_s=60.0))
    described = Cluster(name="test", groups=(group,), teams=teams)
    return answers(described, jobs, ClusterRequest(policies=("fifo",), n_changes=1))


def titles(sheet):
    return [table.title for table in sheet.tables]


def test_the_first_line_is_the_answer(run):
    head = cluster_sheet(run).head
    assert head.startswith("3 jobs on 8 GPUs (fifo, easy): half start at once, 90 % within")
    assert head.endswith("out of target: b.")


def test_tables_without_rows_are_not_shown(run):
    shown = titles(cluster_sheet(run))
    assert "Waits by team" in shown
    assert "Showback by team" in shown
    assert "Quotas that meet the wait targets" not in shown


def test_the_document_is_whole_and_plain(run):
    document = json.loads(json.dumps(cluster_sheet(run).document, allow_nan=False))
    assert document["n_jobs"] == 3
    assert document["by_team"][1]["wait_p90_s"] == 3600.0
    assert document["bills"][0]["held_gpu_h"] == pytest.approx(8 + 1 / 60)
    assert set(document["utilization"]) == {
        "batch_frac", "service_frac", "down_frac", "idle_frac", "quota_blocked_frac",
        "too_few_frac", "fragmented_frac",
    }  # fmt: skip
    # Three jobs are too few for an interval: it is absent, not infinite.
    assert document["policies"][0]["saved_low_s"] is None
    assert document["last_useful"] == {"H100": 8}


def test_remarks_of_the_trace_and_of_the_last_gpu_stand_beside(run):
    remarks = dict(cluster_sheet(run).remarks)
    assert remarks["Trace:"] == ("passed over jobs without GPUs: 4",)
    assert remarks["Last useful GPU:"] == ("H100: 8 of 8; fewer would make jobs wait longer",)


def test_changes_say_what_they_save_and_how_surely(run):
    row = PolicyRow(
        name="fair",
        wait_mean_s=600.0,
        wait_p90_s=1200.0,
        saved_mean_s=-60.0,
        saved_low_s=-90.0,
        saved_high_s=-30.0,
        utilization_frac=0.5,
        goodput_frac=1.0,
        n_preempted=3,
        n_violated=1,
    )
    quota = QuotaAdvice(
        team="b",
        accelerator="H100",
        n_now=8,
        n_advised=None,
        wait_now_s=900.0,
        wait_then_s=700.0,
        target_s=60.0,
    )
    shown = cluster_sheet(replace(run, advice=ClusterAdvice(policies=(row,), quotas=(quota,))))
    tables = {table.title: table for table in shown.tables}
    assert "-60 s ± 30 s" in tables["Policies compared, same jobs and failures"].rows[0]
    assert "none does" in tables["Quotas that meet the wait targets"].rows[0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (119.0, "119 s"), (1800.0, "30.0 min"), (36_000.0, "10.0 h")],
)
def test_waits_are_whole_seconds_then_longer_units(seconds, text):
    assert span(seconds) == text


def test_every_job_in_a_file(run):
    columns = job_columns(run)
    assert columns["team"] == ["a", "b", "a"]
    assert {len(values) for values in columns.values()} == {3}


def test_the_drawing_is_lawful_and_has_its_panels(run):
    root = ElementTree.fromstring(cluster_svg(run))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    for title in ("GPUs", "GPUs queued", "Utilization by hour of the week", "Runs by node"):
        assert title in texts
    bars = [e for e in root.iter() if e.get("class") == "run"]
    assert len(bars) == 3  # one for each run


def test_a_start_as_a_sentence():
    found = StartEstimate(
        request=EtaRequest(n_accelerators=8, duration_s=7200.0, team="a"),
        wait_p50_s=600.0,
        wait_low_s=0.0,
        wait_high_s=3600.0,
        n_running=5,
        n_queued=2,
        queued_accelerators=16,
        n_record=40,
    )
    sheet = eta_sheet(found)
    assert sheet.head == ("8 GPUs for 2.0 h would start in about 10.0 min (80 %: 0 s to 60.0 min).")
    assert sheet.document["wait_high_s"] == 3600.0
    free = replace(found, wait_p50_s=0.0, wait_high_s=0.0)
    assert eta_sheet(free).head == "8 GPUs for 2.0 h would start at once: the GPUs are free."
