"""Simulated requests as rows: one line each, in order of arrival."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.simulation.fleet import ENDS
from gpuplan.domain.simulation.outcome import Outcome, RequestTimes
from gpuplan.domain.traffic.stream import Requests

Cell = float | int | str | None


def request_columns(outcome: Outcome, end: Ints | None = None) -> dict[str, list[Cell]]:
    """Columns by name; what a request never had is empty."""
    columns = passed_columns(outcome.requests, outcome.times, end=end)
    # Masked values become None.
    return {name: column.tolist() for name, column in columns.items()}


def passed_columns(
    requests: Requests, times: RequestTimes, *, first: int = 0, end: Ints | None = None
) -> dict[str, Any]:
    """Columns of arrays, the requests numbered from `first`; what never was is masked.

    `end` says how each request ended, as a place in ENDS; of equal engines it is known without.
    """
    is_lost = times.is_finished == 0
    has_no_tpot = is_lost | (requests.output_tokens <= 1)
    return {
        "request_id": np.arange(first, first + len(requests)),
        "arrival_s": requests.arrive_s,
        "ttft_s": np.ma.masked_array(times.ttft_s, is_lost),
        "tpot_s": np.ma.masked_array(times.tpot_s, has_no_tpot),
        "e2e_s": np.ma.masked_array(times.e2e_s, is_lost),
        "n_preemptions": times.n_preemptions,
        "wait_s": np.ma.masked_array(times.wait_s, is_lost),
        "input_tokens": requests.input_tokens,
        "output_tokens": requests.output_tokens,
        "cached_tokens": _cached(times),
        "session": np.ma.masked_array(requests.session, requests.session < 0),
        "priority": requests.priority,
        "end": np.array(ENDS)[is_lost.astype(np.int64) if end is None else end],
    }


def _cached(times: RequestTimes) -> Any:
    n_all, found = len(times.e2e_s), times.n_cached_tokens
    if found is None:
        return np.ma.masked_array(np.zeros(n_all, dtype=np.int64), np.ones(n_all, dtype=np.bool_))
    return found


def requests_csv(outcome: Outcome, end: Ints | None = None) -> Iterator[str]:
    """Lines of a CSV file."""
    columns = request_columns(outcome, end)
    yield ",".join(columns) + "\n"
    for row in zip(*columns.values(), strict=True):
        yield ",".join("" if cell is None else str(cell) for cell in row) + "\n"
