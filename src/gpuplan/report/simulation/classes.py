"""Classes of requests, services or urgencies, as rows."""

from typing import Any

from gpuplan.domain.sheet import Table
from gpuplan.domain.simulation.outcome import Summary
from gpuplan.domain.simulation.simulation import NetworkSimulation, Simulation, StreamedSimulation
from gpuplan.report.formats import count
from gpuplan.units import MS

Run = Simulation | StreamedSimulation | NetworkSimulation
TIMES = ("ttft", "tpot", "e2e")
POINTS = ("mean", "p50", "p95", "p99")


def class_documents(found: Run) -> list[dict[str, Any]]:
    """For machines; empty where all requests are of one class."""
    if not isinstance(found, Simulation):
        return []
    return [
        {
            "name": each.name,
            "n_requests": each.n_requests,
            "n_completed": each.n_completed,
            "recall": each.recall_frac,
            **{f"{time}_s": _points(getattr(each, time)) for time in TIMES},
        }
        for each in found.classes
    ]


def class_tables(found: Run) -> tuple[Table, ...]:
    """One table, or none."""
    if not isinstance(found, Simulation) or not found.classes:
        return ()
    rows = tuple(
        (
            each.name,
            count(each.n_requests),
            f"{100 * each.recall_frac:.1f} %",
            _ms(each.ttft, "p50"),
            _ms(each.ttft, "p99"),
            _ms(each.tpot, "mean"),
            _ms(each.e2e, "p50"),
            _ms(each.e2e, "p99"),
        )
        for each in found.classes
    )
    columns = (
        "class",
        "requests",
        "recall",
        "TTFT p50 ms",
        "TTFT p99 ms",
        "TPOT mean ms",
        "E2E p50 ms",
        "E2E p99 ms",
    )
    return (Table(title="By class", columns=columns, rows=rows, right=columns[1:]),)


def _points(summary: Summary | None) -> dict[str, float] | None:
    return None if summary is None else {p: getattr(summary, f"{p}_s") for p in POINTS}


def _ms(summary: Summary | None, point: str) -> str:
    return "-" if summary is None else f"{getattr(summary, f'{point}_s') / MS:,.1f}"
