"""Bands at their edges, means beside peaks, quantiles, safe points, precision and recall."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from fakes.telemetry import Scene
from gpuplan.diagnose.bands import safe_use
from gpuplan.diagnose.features import _tails
from gpuplan.diagnose.phases import node_phases
from gpuplan.diagnose.score import score
from gpuplan.diagnose.waste import f_beta
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import BandEdges, DiagnoseRequest, ScoreLimits
from gpuplan.domain.telemetry.digest import quantile
from gpuplan.observe.read import read_telemetry, read_text
from gpuplan.pipeline.diagnose import diagnose
from gpuplan.report.telemetry.autoscaler import reclaim_patches
from shared_data import shared_file

TABLE = "Time (min) | GPU Utilization (%)\n0 | 20\n1 | 50\n2 | 90\n3 | 85\n4 | 95\n"


@pytest.mark.parametrize(
    ("percent", "band"),
    [
        (29.99, "waste"), (30, "under-used"), (69.99, "under-used"), (70, "good"), (90, "good"),
        (90.01, "hot"), (95, "hot"), (95.01, "overload"), (0, "waste"), (100, "overload"),
    ],
)  # fmt: skip
def test_edges_of_the_bands(percent, band):
    assert BandEdges().band(percent * 0.01) == band


def test_the_documents_table():
    found = diagnose(read_text(TABLE, source="table"), DiagnoseRequest())
    assert found.use.mean_frac == pytest.approx(0.68)
    assert found.use.peak_frac == pytest.approx(0.95)
    shares = {band.name: band.time_frac for band in found.use.bands}
    assert shares == pytest.approx(
        {"waste": 0.2, "under-used": 0.2, "good": 0.4, "hot": 0.2, "overload": 0.0}
    )
    assert any("the mean of 68%" in warning for warning in found.use.warnings)
    assert found.verdicts[0].cause == "uneven_load"


@pytest.mark.parametrize(
    ("n", "share"), [(1, 0.20), (2, 0.37), (4, 0.53), (8, 0.65), (16, 0.75), (64, 0.87)]
)
def test_safe_use_grows_with_the_pool(n, share):
    assert safe_use(n) == pytest.approx(share, abs=0.01)


def test_safe_use_of_one_server_is_the_chance_to_wait():
    assert safe_use(1) == pytest.approx(0.2, abs=1e-6)


def test_quantiles_of_added_buckets_match_prometheus():
    upper, count = floats([0.1, 0.5, 1.0, math.inf]), floats([50.0, 30.0, 15.0, 5.0])
    assert quantile(upper, count, 0.5) == pytest.approx(0.1)
    assert quantile(upper, count, 0.95) == pytest.approx(1.0)
    assert quantile(upper, count, 0.99) == pytest.approx(1.0)  # at least: the bucket has no end
    assert quantile(upper, floats([0.0] * 4), 0.5) is None


@given(st.lists(st.floats(0.001, 9.0), min_size=30, max_size=200), st.floats(0.05, 0.95))
def test_quantile_lies_in_the_bucket_of_the_true_one(values, share):
    edges = [0.1, 0.3, 1.0, 3.0, 10.0]
    assume(abs(share * len(values) % 1.0 - 0.5) < 0.499)
    count = np.bincount(np.searchsorted(edges, values), minlength=len(edges))
    ours = quantile(floats(edges), floats(count), share)
    true = float(np.quantile(values, share, method="inverted_cdf"))
    k = int(np.searchsorted(edges, true))
    assert (edges[k - 1] if k else 0.0) - 1e-9 <= ours <= edges[k] + 1e-9


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(0.1, 5.0))
def test_f_beta_lies_between_its_parts(precision, recall, beta):
    low, high = sorted((precision, recall))
    assert low - 1e-12 <= f_beta(precision, recall, beta) <= high + 1e-12


def test_recall_counts_what_came_in_time():
    scene, name = Scene(n_samples=3), "vllm:time_to_first_token_seconds_bucket"
    scene.counter(name, 8.0, le="0.5").counter(name, 10.0, le="+Inf")
    found = diagnose(scene.telemetry(), DiagnoseRequest(ttft_limit_s=0.5))
    assert found.quality.recall_frac == pytest.approx(0.8)


def test_a_gate_tells_every_broken_limit():
    found = diagnose(read_text(TABLE, source="table"), DiagnoseRequest())
    limits = ScoreLimits(peak_frac=0.9, mean_least_frac=0.7, recall_frac=0.9)
    assert [one.where for one in score(found, limits)] == ["recall", "peak", "mean"]
    assert score(found, ScoreLimits(peak_frac=0.95)) == ()


def test_idle_time_is_counted_and_owned():
    scene = Scene(n_samples=241)
    scene.device(0, gpu_util=0.0, power_w=100.0, held_bytes=20e9, namespace="nlp", pod="p")
    scene.device(1, gpu_util=0.8, power_w=500.0, held_bytes=20e9, namespace="cv", pod="q")
    found = diagnose(scene.telemetry(), DiagnoseRequest(usd_per_h=3.0))
    waste, pauses = found.waste
    assert pauses.accelerator_s == pytest.approx(0.2 * 1200, rel=0.05)
    assert waste.accelerator_s == pytest.approx(1200)
    assert waste.usd == pytest.approx(1.0)
    assert [(one.team, one.job, one.usd_per_month) for one in found.reclaims] == [
        ("nlp", "p", 2190.0)
    ]
    assert {team.team: team.busy_frac for team in found.teams} == {"cv": 1.0, "nlp": 0.0}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("b1_telemetry", "idle_allocated"),
        ("t2_telemetry", "demand_unknown"),
        ("t3_telemetry", "compute_bound"),
        ("t13_node0_telemetry", "communication_heavy"),
    ],
)
def test_recorded_runs(name, cause):
    path = shared_file(f"traces/h100_workload_telemetry/{name}.csv.gz")
    telemetry = read_telemetry(path)
    found = diagnose(telemetry, DiagnoseRequest())
    assert found.verdicts[0].cause == cause
    assert not any(verdict.severity == "fault" for verdict in found.verdicts)
    assert recall_of_phases(telemetry) > 0.9


def recall_of_phases(telemetry) -> float:
    """Mean over phases of the share of seconds that are recognised."""
    stated = [span for span in telemetry.spans if span.subject == 0]
    told = node_phases(telemetry)
    right: dict[str, list[bool]] = {}
    for span in stated:
        start_s = span.begin_s + min(0.5, (span.end_s - span.begin_s) / 2)
        for at_s in np.arange(start_s, span.end_s, 1.0):
            phase = next((p.phase for p in told if p.begin_s <= at_s < p.end_s), "")
            right.setdefault(span.label, []).append(phase == span.label)
    return float(np.mean([np.mean(hits) for hits in right.values()]))


def test_reclaim_marks_and_never_kills():
    scene = Scene(n_samples=241)
    scene.device(0, gpu_util=0.0, power_w=100.0, held_bytes=20e9, namespace="nlp", pod="p")
    text = reclaim_patches(diagnose(scene.telemetry(), DiagnoseRequest(usd_per_h=3.0)))
    (document,) = yaml.safe_load_all(text)
    assert document["metadata"]["name"] == "p"
    assert document["metadata"]["annotations"]["gpuplan.io/usd-per-month"] == "2190"
    assert "delete" not in text


@pytest.mark.parametrize("n", [1, 2, 3, 20, 21, 22, 41, 977])
def test_tails_are_numpys(n):
    value = np.random.default_rng(n).normal(size=n)
    assert _tails(value) == pytest.approx(tuple(np.quantile(value, [0.05, 0.95])))
