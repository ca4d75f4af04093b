"""A living fleet as charts: its replicas over time, beside what every run shows."""

import numpy as np

from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.simulation.fleet import FleetOutcome
from gpuplan.domain.simulation.fleet_file import FleetSimulation
from gpuplan.report.charts.simulation import simulate_charts
from gpuplan.units import MINUTE

STATUSES = ("ready", "starting", "draining", "failed")


def fleet_charts(run: FleetSimulation) -> tuple[Chart, ...]:
    """Replicas first where they change; then the charts of any run."""
    charts = simulate_charts(run.simulation)
    if len(run.found.timeline.at_s) <= len(run.found.pools):
        return charts
    return (charts[0], _replicas(run.found), *charts[1:])


def _replicas(found: FleetOutcome) -> Chart:
    """By status where there is one pool, else what each pool has ready."""
    timeline, names = found.timeline, [pool.name for pool in found.pools]
    last_s = found.outcome.totals.span_s
    if len(names) == 1:
        columns = {status: getattr(timeline, f"n_{status}") for status in STATUSES}
        series = [
            _stairs(status, timeline.at_s, column, last_s=last_s)
            for status, column in columns.items()
            if status == "ready" or column.any()
        ]
    else:
        series = [
            _stairs(name, timeline.at_s[rows], timeline.n_ready[rows], last_s=last_s)
            for at, name in enumerate(names)
            if (rows := np.flatnonzero(timeline.pool == at)).size
        ]
    what = "by status" if len(names) == 1 else "ready, by pool"
    return Chart(
        title=f"Replicas {what}",
        x=Axis(label="Time", unit="min"),
        y=Axis(label="Replicas"),
        series=tuple(series),
    )


def _stairs(name: str, at_s: Floats, values: Ints, *, last_s: float) -> ChartSeries:
    """Values that hold until the next change, to the end of the run."""
    kept = np.flatnonzero(at_s <= last_s)
    x = np.append(at_s[kept], max(last_s, float(at_s[kept][-1])))
    y = np.append(values[kept], values[kept][-1:])
    return ChartSeries(name=name, x=floats(x / MINUTE), y=floats(y), style="step")
