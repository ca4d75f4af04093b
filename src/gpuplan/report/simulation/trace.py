"""A recorded load, ready to show: rates, burstiness, lengths and the busiest hours."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.traffic.stream import Requests
from gpuplan.domain.traffic.trace import LoadSummary
from gpuplan.report.document import pick, result_sheet
from gpuplan.report.formats import plural, span

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def trace_sheet(
    found: LoadSummary,
    requests: Requests,
    *,
    per_step: tuple[float, Ints],
    notes: Sequence[str],
    n_without_work: int = 0,
) -> Sheet:
    """The load in both forms."""
    if n_without_work:
        notes = [*notes, f"{plural(n_without_work, 'request')} without tokens not counted"]
    lengths = {"input": requests.input_tokens, "output": requests.output_tokens}
    body = {
        **pick(found, *found.__dataclass_fields__),
        **{f"{name}_tokens": _lengths(tokens) for name, tokens in lengths.items()},
        "counts": {"step_s": per_step[0], "n_requests": per_step[1].tolist()},
        "notes": list(notes),
    }
    head = (
        f"{found.n_requests:,} requests in {span(found.span_s)}: "
        f"{found.peak_hour_requests_per_s:,.3g} requests/s in the busiest hour, "
        f"{body['input_tokens']['mean']:,.0f} input and {body['output_tokens']['mean']:,.0f} "
        "output tokens on average"
    )
    return result_sheet(body, [_rates(found), _length_table(body)], head=head, remarks=_odd(notes))


def _odd(notes: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    return [("Odd in the file:", notes)] if notes else []


def _lengths(tokens: Ints) -> dict[str, float]:
    shares = np.quantile(tokens, list(QUANTILES.values()))
    found = dict(zip(QUANTILES, map(float, shares), strict=True))
    return {"mean": float(tokens.mean()), **found, "max": float(tokens.max())}


def _rates(found: LoadSummary) -> Table:
    rows = [
        ("mean", f"{found.mean_requests_per_s:,.3g}"),
        ("busiest hour", f"{found.peak_hour_requests_per_s:,.3g}"),
        ("p99 minute", f"{found.p99_minute_requests_per_s:,.3g}"),
        ("busiest minute", f"{found.peak_minute_requests_per_s:,.3g}"),
    ]
    cv = found.gap_cv_ratio
    known = "" if cv is None else f"; burstiness (CV of inter-arrival times) {cv:.2f}"
    columns = ("rate", "requests/s")
    return Table(title=f"Load{known}", columns=columns, rows=tuple(rows), right=columns[1:])


def _length_table(body: dict[str, Any]) -> Table:
    names = ("mean", *QUANTILES, "max")
    rows = tuple(
        (side, *(f"{body[f'{side}_tokens'][name]:,.0f}" for name in names))
        for side in ("input", "output")
    )
    columns = ("tokens", *names)
    return Table(title="Lengths", columns=columns, rows=rows, right=columns[1:])
