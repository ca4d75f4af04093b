"""Predicted against what vLLM logged on an H100.

Weights rest on no constant: they are judged here. The cache is only guarded: the sampler's bytes
of a logit and the driver's share were seen in these very logs.
"""

import statistics

import pytest

from gpuplan.units import GIB
from shared_data import shared_file
from validation.inference_memory_rows import Row, rows

pytestmark = pytest.mark.shared
MEDIAN = 0.01  # it was 0.6 % when this was written; may only fall


@pytest.fixture(scope="module")
def judged() -> list[Row]:
    return rows(shared_file("measured/memory_vllm_h100.csv"))[0]


def test_most_rows_are_judged(judged):
    assert len(judged) >= 10


def test_weights_and_cache_are_close(judged):
    errors = []
    for row in judged:
        if row.started:
            errors.append(abs(row.memory.weights_bytes / GIB / row.measured_weights_gib - 1))
            errors.append(abs(row.memory.cache_bytes / GIB / row.measured_cache_gib - 1))
    assert statistics.median(errors) <= MEDIAN


def test_every_verdict_is_right(judged):
    for row in judged:
        assert row.fits == row.started, row


def test_fp8_70b_lacks_about_a_gibibyte_on_one_device(judged):
    """The engine logged -1.44 GiB for the cache."""
    (found,) = [row.memory for row in judged if "70B" in row.model and row.tp == 1]
    assert -2.0 < found.cache_bytes / GIB < -0.9
