"""A recorded load, in order: trace file → requests → figures → sheet."""

from pathlib import Path

from gpuplan.demand.scale import served
from gpuplan.demand.statistics import counts, summary, telling_window_s
from gpuplan.domain.sheet import Sheet
from gpuplan.inputs.traces.read import read_trace
from gpuplan.report.simulation.trace import trace_sheet as sheet_of


def trace_sheet(path: Path) -> Sheet:
    """What a recorded load is like: rates, burstiness, lengths, requests over time."""
    trace = read_trace(path)
    requests, n_without_work = served(trace.requests)
    figures = summary(requests)
    step_s = telling_window_s(figures.span_s)
    per_step = counts(requests.arrive_s, step_s)
    return sheet_of(
        figures,
        requests,
        per_step=(step_s, per_step),
        notes=trace.remarks,
        n_without_work=n_without_work,
    )
