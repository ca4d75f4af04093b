"""Predicted training peaks against published ones: error budgets that may only fall."""

import math
import statistics
from collections import defaultdict

import pytest

from gpuplan.performance.memory.training.peak import memory_range
from shared_data import shared_file
from validation.training_memory_rows import CARD_BYTES, Row, rows

pytestmark = pytest.mark.shared

HOLDOUT_MEDIAN = 0.075
SOURCE_MEDIAN = {
    "torchtune": 0.095,
    "torchtune-flags": 0.03,
    "litgpt-hub": 0.055,
    "bloom": 0.07,
    "peft": 0.11,
    "internevo": 0.32,
}
LEAST_COVERAGE = 0.75


@pytest.fixture(scope="module")
def judged() -> list[Row]:
    return rows(shared_file("measured/llm_training.csv").parent)


def holdout(judged: list[Row]) -> list[Row]:
    return [row for row in judged if row.role == "holdout" and row.measured_bytes]


def test_holdout_median(judged: list[Row]) -> None:
    found = holdout(judged)
    assert len(found) >= 70
    assert statistics.median(abs(row.error) for row in found) <= HOLDOUT_MEDIAN


@pytest.mark.parametrize("source", sorted(SOURCE_MEDIAN))
def test_each_holdout_source(judged: list[Row], source: str) -> None:
    errors = [abs(row.error) for row in holdout(judged) if row.source == source]
    assert statistics.median(errors) <= SOURCE_MEDIAN[source]


def test_jobs_that_ran_out_of_memory_are_told_so(judged: list[Row]) -> None:
    failed = [r for r in judged if r.measured_bytes is None and r.role in ("fit", "holdout")]
    assert len(failed) >= 6
    for row in failed:
        assert row.memory.least_bytes > CARD_BYTES[row.card], row.id


def test_jobs_that_ran_are_not_refused(judged: list[Row]) -> None:
    ran = [r for r in judged if r.measured_bytes and r.role in ("fit", "holdout")]
    for row in [r for r in ran if r.card in CARD_BYTES]:
        assert row.memory.least_bytes <= CARD_BYTES[row.card], row.id


def test_range_holds_on_sources_that_did_not_set_it(judged: list[Row]) -> None:
    ratios: dict[str, list[float]] = defaultdict(list)
    for row in holdout(judged):
        assert row.measured_bytes is not None
        ratios[row.source].append(math.log(row.measured_bytes / row.predicted_bytes))
    n_held = 0
    for source, left_out in ratios.items():
        low, high = _bounds({name: r for name, r in ratios.items() if name != source})
        n_held += sum(low <= ratio <= high for ratio in left_out)
    assert n_held / sum(map(len, ratios.values())) >= LEAST_COVERAGE
    low, high = _bounds(ratios)
    assert memory_range(1.0) == pytest.approx((math.exp(low), math.exp(high)), abs=0.015)


def _bounds(ratios: dict[str, list[float]]) -> tuple[float, float]:
    """Deciles, each source weighing as the root of its rows."""
    weighed = sorted((r, len(found) ** -0.5) for found in ratios.values() for r in found)
    total = sum(weight for _, weight in weighed)

    def quantile(frac: float) -> float:
        seen = 0.0
        for ratio, weight in weighed:
            seen += weight
            if seen >= frac * total:
                return ratio
        return weighed[-1][0]

    return quantile(0.1), quantile(0.9)
