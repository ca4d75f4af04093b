"""Rules of MLPerf that result tables leave out: limits on latency of a benchmark and scenario."""

import pytest

from gpuplan.domain.inference.performance import LatencyLimits
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.measured.mlperf_rules import is_submission, limits_of

ROW = {
    "id": "r", "source": "mlperf_loadgen_logs", "accelerator": "H200 SXM", "n_accelerators": "8",
    "model": "Llama-2-70B", "precision": "", "engine": "TensorRT 10.8", "engine_version": "v5.0",
    "regime": "poisson", "request_rate_per_s": "100", "input_tokens": "", "output_tokens": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("regime", "limits"),
    [("poisson", (2.0, 0.2)), ("MLPerf server", (2.0, 0.2)), ("MLPerf Interactive", (0.45, 0.04))],
)
def test_a_scenario_has_its_own_limits(regime, limits):
    assert limits_of({**ROW, "regime": regime}) == pytest.approx(LatencyLimits(*limits))


def test_only_submissions_are_bound_by_them():
    own = {**ROW, "source": "my own run"}
    assert is_submission(ROW)
    assert not is_submission(own)
    assert limits_of(own) is None
    assert serving_setup(own).load.limits is None


def test_benchmarks_without_known_limits_have_none():
    assert limits_of({**ROW, "model": "GPT-J-6B"}) is None


def test_runs_without_a_rate_are_not_bound():
    offline = {**ROW, "regime": "offline", "request_rate_per_s": ""}
    assert serving_setup(ROW).load.limits == pytest.approx(LatencyLimits(2.0, 0.2))
    assert serving_setup(offline).load.limits is None
