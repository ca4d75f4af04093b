"""Replicas that the load calls for, by hand."""

import numpy as np
import pytest

from gpuplan.diagnose.bands import safe_use
from gpuplan.diagnose.features import EngineView
from gpuplan.diagnose.replicas import recommended_replicas
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import UseFigures
from gpuplan.domain.telemetry.observation import Series


def engine(row: int = 0, **levels: float) -> EngineView:
    made = {
        name: Series(
            metric=name, subject=row, at_s=floats(np.arange(10.0)), value=floats([value] * 10)
        )
        for name, value in levels.items()
    }
    return EngineView(row=row, name=f"engine {row}", series=made)


def use(peak: float) -> UseFigures:
    return UseFigures(
        metric="gpu_util_frac", mean_frac=peak, peak_frac=peak, bands=(), layers=(), n_devices=1,
        span_s=60.0, safe_frac=0.2, warnings=(),
    )  # fmt: skip


def wanted(engines, peak: float | None = None, target: float = 0.8) -> int:
    figures = None if peak is None else use(peak)
    return recommended_replicas(engines, figures, cache_target_frac=target)[0]


def test_no_engine_no_replicas():
    assert recommended_replicas([], None, cache_target_frac=0.8) == (0, "no engine reports")


@pytest.mark.parametrize(
    ("n", "cache", "replicas"), [(2, 0.8, 2), (2, 0.81, 3), (4, 0.4, 2), (4, 0.41, 3), (1, 0.01, 1)]
)
def test_the_cache_is_brought_to_its_target(n, cache, replicas):
    assert wanted([engine(k, kv_cache_frac=cache) for k in range(n)]) == replicas


def test_the_fullest_cache_counts():
    assert wanted([engine(0, kv_cache_frac=0.2), engine(1, kv_cache_frac=0.96)]) == 3  # 2 x 1.2


@pytest.mark.parametrize(("waiting", "replicas"), [(2.0, 2), (8.0, 3), (16.0, 4)])
def test_requests_that_wait_get_places(waiting, replicas):
    # Two engines run 8 each; up to one that waits for each engine is no queue.
    one = {"requests_running_count": 8.0, "requests_waiting_count": waiting / 2}
    assert wanted([engine(k, **one) for k in range(2)]) == replicas


def test_use_counts_only_where_no_cache_is_told():
    running = engine(requests_running_count=1.0)
    assert wanted([running], peak=0.9) == int(np.ceil(0.9 / safe_use(1)))
    assert wanted([engine(kv_cache_frac=0.8)], peak=0.9) == 1


def test_the_measure_that_asks_for_most_wins_and_is_named():
    busy = engine(kv_cache_frac=0.4, requests_running_count=10.0, requests_waiting_count=10.0)
    assert recommended_replicas([busy], None, cache_target_frac=0.8) == (2, "10 requests wait")
