"""Demand in equal steps and what a service saw, by hand; queries of a server in parts."""

import math
from itertools import pairwise

import numpy as np
import pytest

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
from gpuplan.domain.telemetry.observation import Histogram, Series, Subject, Telemetry
from gpuplan.errors import InputError
from gpuplan.observe.demand import demand_series
from gpuplan.observe.prometheus_live import MAX_POINTS, _parts, read_prometheus
from gpuplan.observe.read import read_text
from gpuplan.observe.service import observed_service


def series(metric: str, value, subject: int = 0, step_s: float = 60.0, begin_s: float = 0.0):
    at_s = floats(begin_s + step_s * np.arange(len(value)))
    return Series(metric=metric, subject=subject, at_s=at_s, value=floats(value))


def told(*made: Series, histograms=()) -> Telemetry:
    subjects = tuple(Subject(device=str(k)) for k in range(4))
    return Telemetry(
        source="made", format="", subjects=subjects, series=made, histograms=tuple(histograms)
    )


def test_rates_of_all_replicas_add_up():
    found = demand_series(
        told(series("requests_per_s", [1.0, 2.0]), series("requests_per_s", [3.0, 4.0], 1)),
        None, None,
    )  # fmt: skip
    assert (found.name, found.step_s, found.level.tolist()) == ("requests_per_s", 60.0, [4.0, 6.0])


def test_shares_are_means_of_those_that_report():
    # The second device falls silent: it is missing, not idle.
    found = demand_series(
        told(series("gpu_util_frac", [0.8, 0.6]), series("gpu_util_frac", [0.4], 1)), None, None
    )
    assert found.level == pytest.approx([0.6, 0.6])


def test_requests_say_more_about_demand_than_use():
    both = told(series("gpu_util_frac", [0.5, 0.5]), series("requests_per_s", [1.0, 1.0], 1))
    assert demand_series(both, None, None).name == "requests_per_s"
    assert demand_series(both, "gpu_util_frac", None).name == "gpu_util_frac"
    with pytest.raises(InputError, match="not in it"):
        demand_series(both, "power_w", None)


def test_gaps_are_drawn_through_and_counted():
    found = demand_series(told(series("requests_per_s", [1.0, np.nan, np.nan, 4.0])), None, None)
    assert found.level == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert found.n_filled == 2


def test_samples_of_one_step_are_averaged():
    found = demand_series(told(series("requests_per_s", [1.0, 3.0, 5.0, 7.0])), None, 120.0)
    assert found.level.tolist() == [2.0, 6.0]


@pytest.mark.parametrize(("hours", "step_s"), [(1, 60.0), (6, 600.0), (71, 600.0), (72, 3600.0)])
def test_the_step_grows_with_the_stretch(hours, step_s):
    made = series("requests_per_s", np.ones(60 * hours + 1))
    assert demand_series(told(made), None, None).step_s == step_s


def test_the_busiest_hour_counts_and_not_the_busiest_minute():
    rate = np.concatenate([np.full(60, 2.0), np.full(60, 5.0)])
    rate[0] = 100.0
    found = observed_service(told(series("requests_per_s", rate)))
    assert found.peak_requests_per_s == pytest.approx(5.0)
    assert found.mean_requests_per_s == pytest.approx((100.0 + 59 * 2.0 + 60 * 5.0) / 120)
    assert found.span_s == 119 * 60.0


def histogram(metric: str, upper, count, total: float) -> Histogram:
    return Histogram(
        metric=metric, subject=0, at_s=floats([0.0]), upper=floats(upper), count=floats([count]),
        total=floats([total]),
    )  # fmt: skip


def test_lengths_are_means_and_latencies_quantiles():
    found = observed_service(
        told(
            series("requests_running_count", [1.0, 1.0]),
            series("requests_running_count", [1.0, 1.0], 1),
            series("power_w", [300.0, 500.0], 2),
            series("power_w", [600.0, 600.0], 3),
            histograms=(
                histogram("input_tokens", [1000, math.inf], [8, 2], 5000.0),
                histogram("ttft_s", [1.0, 2.0, math.inf], [90, 10, 0], 70.0),
            ),
        )
    )
    assert (found.input_tokens, found.output_tokens) == (500.0, None)
    assert found.ttft_p95_s == pytest.approx(1.5)
    assert (found.n_replicas, found.power_w) == (2, 1000.0)


def test_what_telemetry_does_not_say_is_none():
    found = observed_service(told())
    assert found.peak_requests_per_s is None
    assert (found.n_replicas, found.power_w, found.span_s) == (None, None, 0.0)


def test_parts_of_a_window_meet_without_gap_or_overlap():
    parts = list(_parts(TimeWindow(begin_s=7.0, end_s=5 + 2.5 * MAX_POINTS * 5, step_s=5.0)))
    assert parts[0][0] == 5.0
    for (_, end_s), (begin_s, _) in pairwise(parts):
        assert begin_s - end_s == 5.0
    assert all((end_s - begin_s) / 5.0 < MAX_POINTS for begin_s, end_s in parts)
    assert parts[-1][1] == 5 + 2.5 * MAX_POINTS * 5


@pytest.mark.parametrize(
    ("url", "window"),
    [
        ("ftp://x", TimeWindow(begin_s=0.0, end_s=1.0, step_s=1.0)),
        ("http://", TimeWindow(begin_s=0.0, end_s=1.0, step_s=1.0)),
        ("http://x", TimeWindow(begin_s=2.0, end_s=1.0, step_s=1.0)),
        ("http://x", TimeWindow(begin_s=0.0, end_s=1.0, step_s=0.0)),
    ],
)
def test_bad_questions_are_refused_before_anybody_is_asked(url, window):
    with pytest.raises(InputError):
        read_prometheus(ServerAccess(url=url), window)


@pytest.mark.parametrize(
    ("heading", "times", "metric"),
    [
        ("week,gpus", ("2026-01-05", "2026-01-12", "2026-01-19"), "allocated_count"),
        ("date,rps", ("2026-01-05", "2026-01-06", "2026-01-07"), "requests_per_s"),
        ("day,accelerators", ("2026-01-05", "2026-01-06", "2026-01-07"), "allocated_count"),
        ("month,GPUs in use", ("2026-01", "2026-02", "2026-03"), "allocated_count"),
        ("Month,Peak GPUs", ("Jan 2026", "Feb 2026", "Mar 2026"), "allocated_count"),
    ],
)
def test_a_table_of_dates_and_counts_is_demand(heading, times, metric):
    lines = [heading, *(f"{at},{10 + n}" for n, at in enumerate(times))]
    found = demand_series(read_text("\n".join(lines), source="t.csv"), None, None)
    assert found.name == metric
    assert (found.level[0], found.level[-1]) == (10.0, 12.0)


def test_months_are_equal_steps_and_a_missing_one_is_drawn_through():
    months = [f"{2024 + n // 12}-{n % 12 + 1:02d}" for n in range(30) if n != 7]
    lines = ["month,gpus", *(f"{at},{10 + n}" for n, at in enumerate(months))]
    found = demand_series(read_text("\n".join(lines), source="t.csv"), None, None)
    assert (len(found.level), found.n_filled, found.n_before_gap) == (30, 1, 0)
    assert found.step_s == pytest.approx(365 / 12 * 86400)
    assert found.level[7] == pytest.approx((found.level[6] + found.level[8]) / 2)
    after = ["month,gpus", "2024-01,3", "2024-02,3", "2024-09,4", "2024-10,5", "2024-11,6"]
    assert demand_series(read_text("\n".join(after), source="t.csv"), None, None).n_before_gap == 2


def test_a_pasted_table_of_months_and_percent_is_read():
    text = "month,utilization\n" + "\n".join(f"2026-{n:02d},{40 + n}" for n in range(1, 8))
    found = demand_series(read_text(text, source="t.csv"), None, None)
    assert found.name == "gpu_util_frac"
    assert found.level == pytest.approx([0.40 + n / 100 for n in range(1, 8)])
