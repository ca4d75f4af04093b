"""Drawn loads: the rate that is asked for is the rate that is run, however few requests come."""

from pathlib import Path

import pytest

from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.streams import LEAST_REQUESTS, LONGEST_S, RequestStreams

[CHAT] = read_scenario(Path(__file__).parents[4] / "examples" / "chat.yaml").workloads


@pytest.mark.parametrize("per_s", [LEAST_REQUESTS / LONGEST_S, 0.005, 0.05, 3.0])
@pytest.mark.parametrize("n", [6_000, 96_000])
def test_longer_runs_of_small_loads_keep_their_rate(per_s, n):
    """96,000 requests of 20 an hour would take half a year: they came 13 times as fast."""
    requests = RequestStreams(CHAT.work.arrivals, CHAT.work.request, 0).at(per_s, n)
    span_s = float(requests.arrive_s[-1])
    assert len(requests) / span_s == pytest.approx(per_s, rel=0.05)
    assert span_s <= 1.05 * LONGEST_S
    assert LEAST_REQUESTS / 2 < len(requests) < 1.1 * n
