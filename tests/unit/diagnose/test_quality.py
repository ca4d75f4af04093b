"""Precision, recall, F-beta and the gate, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.diagnose.judge import diagnose
from gpuplan.diagnose.score import score
from gpuplan.diagnose.waste import f_beta
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import DeviceFacts, DiagnoseRequest, ScoreLimits
from gpuplan.domain.telemetry.observation import Histogram, Series, Subject, Telemetry


def series(metric: str, value, subject: int = 0, step_s: float = 60.0) -> Series:
    at_s = floats(step_s * np.arange(len(value)))
    return Series(metric=metric, subject=subject, at_s=at_s, value=floats(value))


def told(*made: Series, histograms=()) -> Telemetry:
    n = 1 + max((one.subject for one in (*made, *histograms)), default=0)
    subjects = tuple(Subject(node="n", device=str(k)) for k in range(n))
    return Telemetry(
        source="made", format="", subjects=subjects, series=made, histograms=tuple(histograms)
    )


def quality(telemetry: Telemetry, **given):
    return diagnose(telemetry, {}, DiagnoseRequest(**given)).quality


@pytest.mark.parametrize(
    ("precision", "recall", "beta", "expected"),
    [
        (0.5, 1.0, 1.0, 2 / 3),
        (0.5, 1.0, 2.0, 5 * 0.5 / (4 * 0.5 + 1.0)),
        (0.5, 1.0, 0.5, 1.25 * 0.5 / (0.25 * 0.5 + 1.0)),
        (0.0, 0.0, 1.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (None, 1.0, 1.0, None),
        (1.0, None, 1.0, None),
    ],
)
def test_f_beta_by_hand(precision, recall, beta, expected):
    assert f_beta(precision, recall, beta) == pytest.approx(expected)


def test_processors_are_better_witnesses_than_kernels():
    use = series("gpu_util_frac", [1.0, 1.0])
    assert quality(told(use)).precision_frac == pytest.approx(1.0)
    deeper = told(use, series("sm_active_frac", [0.2, 0.4]))
    assert quality(deeper).precision_frac == pytest.approx(0.3)


def test_precision_is_weighted_by_measured_time():
    long, short = series("gpu_util_frac", [0.9] * 30), series("gpu_util_frac", [0.1] * 10, 1)
    assert quality(told(long, short)).precision_frac == pytest.approx(0.7)


def test_recall_by_batch_and_queue():
    found = quality(
        told(series("requests_running_count", [8.0, 8.0]), series("requests_waiting_count", [0, 4]))
    )
    assert found.recall_frac == pytest.approx(0.8)
    idle = told(series("requests_running_count", [0, 0]), series("requests_waiting_count", [0, 0]))
    assert quality(idle).recall_frac == 1.0


def test_recall_by_devices_given_and_asked_for():
    found = told(series("allocated_count", [6.0, 6.0]), series("pending_count", [2.0, 2.0]))
    assert quality(found).recall_frac == pytest.approx(0.75)


def test_a_cluster_that_nobody_asks_for_meets_all_demand():
    found = told(series("allocated_count", [0.0, 0.0]), series("pending_count", [0.0, 0.0]))
    assert quality(found).recall_frac == 1.0


def test_recall_counts_buckets_up_to_the_limit():
    made = Histogram(
        metric="ttft_s", subject=0, at_s=floats([0.0]), upper=floats([0.5, 1.0, np.inf]),
        count=floats([[6.0, 3.0, 1.0]]), total=floats([5.0]),
    )  # fmt: skip
    both = told(series("gpu_util_frac", [0.5, 0.5]), histograms=(made, replace(made, subject=1)))
    for limit_s, recall in ((0.49, 0.0), (0.5, 0.6), (0.99, 0.6), (1.0, 0.9)):
        found = quality(both, ttft_limit_s=limit_s, beta_ratio=2.0)
        assert found.recall_frac == pytest.approx(recall)
        assert found.f_beta_ratio == pytest.approx(f_beta(0.5, recall, 2.0))


def test_nothing_measured_is_none():
    found = quality(told(series("power_w", [100.0, 100.0])))
    assert (found.precision_frac, found.recall_frac, found.f_beta_ratio) == (None, None, None)


IDLE = told(series("gpu_util_frac", [0.0] * 61), series("memory_used_bytes", [20e9] * 61))


def test_waste_of_an_hour_is_scaled_to_a_month():
    found = diagnose(IDLE, {0: DeviceFacts(usd_per_h=2.0)})
    assert score(found, ScoreLimits(waste_usd_per_month=1460.01)) == ()
    (broken,) = score(found, ScoreLimits(waste_usd_per_month=1459.0))
    assert (broken.where, broken.what) == ("waste", "1,460 USD a month")


def test_waste_without_a_price_breaks_its_limit():
    (broken,) = score(diagnose(IDLE, {}), ScoreLimits(waste_usd_per_month=1e9))
    assert broken.what == "has no price"


@pytest.mark.parametrize(
    ("worst", "n"), [("fine", 1), ("note", 1), ("waste", 1), ("slow", 0), ("fault", 0)]
)
def test_verdicts_as_grave_as_the_limit_break_it(worst, n):
    found = diagnose(IDLE, {})
    assert [one.cause for one in found.verdicts] == ["idle_allocated"]
    assert len(score(found, ScoreLimits(worst=worst))) == n


@pytest.mark.parametrize(("limit", "is_broken"), [(0.5, False), (0.5 + 1e-12, False), (0.51, True)])
def test_a_limit_that_is_just_met_is_kept(limit, is_broken):
    found = diagnose(told(series("gpu_util_frac", [0.5] * 3)), {})
    limits = ScoreLimits(precision_frac=limit, mean_least_frac=limit)
    names = [one.where for one in score(found, limits)]
    assert names == (["precision", "mean"] if is_broken else [])
