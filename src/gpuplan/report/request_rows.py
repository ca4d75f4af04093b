"""Simulated requests as rows: one line each, in order of arrival."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuplan.domain.outcome import Outcome, RequestTimes
from gpuplan.domain.stream import Requests

COLUMNS = ("request_id", "arrival_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions")


def request_columns(outcome: Outcome) -> dict[str, list[float | int | None]]:
    """Columns by name; what a request never had is empty."""
    columns = passed_columns(outcome.requests, outcome.times)
    return {name: _listed(column) for name, column in columns.items()}


def passed_columns(requests: Requests, times: RequestTimes, *, first: int = 0) -> dict[str, Any]:
    """Columns of arrays, the requests numbered from `first`; what never was is masked."""
    is_lost = times.is_finished == 0
    has_no_tpot = is_lost | (requests.output_tokens <= 1)
    return {
        "request_id": np.arange(first, first + len(requests)),
        "arrival_s": requests.arrive_s,
        "ttft_s": np.ma.masked_array(times.ttft_s, is_lost),
        "tpot_s": np.ma.masked_array(times.tpot_s, has_no_tpot),
        "e2e_s": np.ma.masked_array(times.e2e_s, is_lost),
        "n_preemptions": times.n_preemptions,
    }


def requests_csv(outcome: Outcome) -> Iterator[str]:
    """Lines of a CSV file."""
    columns = request_columns(outcome)
    yield ",".join(COLUMNS) + "\n"
    for row in zip(*(columns[name] for name in COLUMNS), strict=True):
        yield ",".join("" if cell is None else str(cell) for cell in row) + "\n"


def _listed(column: Any) -> list[float | int | None]:
    """Masked values become None."""
    listed: list[float | int | None] = column.tolist()
    return listed
