"""Simulated runs as charts: utilization, throughput, queue, power, latencies, replicas."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.simulation.fleet import FleetOutcome
from gpuplan.domain.simulation.fleet_file import FleetSimulation
from gpuplan.domain.simulation.outcome import Outcome, SloTargets, Summary
from gpuplan.domain.simulation.simulation import (
    FleetSizeCurve,
    NetworkSimulation,
    Simulation,
    StreamedSimulation,
)
from gpuplan.units import KW, MINUTE, MS

Run = Simulation | StreamedSimulation | NetworkSimulation
PERCENT = 100.0
LEAST_COVER_FRAC = 0.25
SHARES = np.concatenate([np.linspace(0, 99, 100), [99.5, 99.9]])
POINTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
STATUSES = ("ready", "starting", "draining", "failed")
TIME, SHARE = Axis(label="Time", unit="min"), Axis(label="Share", unit="%")
REPLICAS = Axis(label="Replicas")


def simulate_charts(found: Run) -> tuple[Chart, ...]:
    """Every chart of a run; power only where it is known."""
    use = found.outcome.use
    busy = _covered(use.busy_frac, found)
    first = utilization(busy, use.bin_s, mean_frac=found.statistics.busy_frac)
    return (first, _layers(found), *_flows(found), *_power(found), *_latencies(found))


def fleet_charts(run: FleetSimulation) -> tuple[Chart, ...]:
    """Replicas first where they change; then the charts of any run."""
    charts = simulate_charts(run.simulation)
    if len(run.found.timeline.at_s) <= len(run.found.pools):
        return charts
    return (charts[0], _replicas(run.found), *charts[1:])


def utilization(busy_frac: Floats, bin_s: float, *, mean_frac: float | None = None) -> Chart:
    """Minute against busy share: the mean alone would hide the peak."""
    y = floats(PERCENT * busy_frac)
    mean = y.mean() if mean_frac is None else PERCENT * mean_frac
    note = f"mean {mean:.0f} %, peak {y.max():.0f} %; the rest of each bar is idle"
    series = ChartSeries(name="busy", x=_minutes(len(y), bin_s), y=y, style="bars")
    chart = _over_time("GPU utilization: busy and idle", "GPU Utilization", "%", series, note=note)
    return replace(chart, top=(PERCENT,))


def curve_charts(curve: FleetSizeCurve) -> tuple[Chart, ...]:
    """Precision against recall by fleet size, and what each size costs."""
    sizes = floats([point.n_replicas for point in curve.points])
    recall = floats([PERCENT * point.recall_frac for point in curve.points])
    precision = floats(PERCENT * np.array(curve.precision_frac))
    names = tuple(str(point.n_replicas) for point in curve.points)
    best, least = curve.best, int(np.argmin(curve.cost_usd))
    points = ChartSeries(name="fleet sizes", x=recall, y=precision, style="points", labels=names)
    chosen = ChartSeries(name="best", x=recall[[best]], y=precision[[best]], style="points")
    scores = {"precision": precision, "recall": recall, "F": PERCENT * np.array(curve.f_frac)}
    return (
        Chart(
            title="Precision against recall by fleet size",
            x=Axis(label="Recall", unit="%"),
            y=Axis(label="Precision", unit="%"),
            series=(points, chosen),
            note=f"numbers are replicas; best at {names[best]} "
            f"(F with beta {curve.beta_ratio:.2f})",
        ),
        Chart(
            title="Precision, recall and F by fleet size",
            x=REPLICAS,
            y=SHARE,
            series=tuple(ChartSeries(name=n, x=sizes, y=floats(y)) for n, y in scores.items()),
            top=(PERCENT,),
        ),
        Chart(
            title="Cost of waste and delay",
            x=REPLICAS,
            y=Axis(label="Cost", unit="USD"),
            series=(ChartSeries(name="waste and delay", x=sizes, y=floats(curve.cost_usd)),),
            note=f"least: {curve.cost_usd[least]:,.2f} USD at {names[least]} replicas",
        ),
    )


def _over_time(title: str, label: str, unit: str, *series: ChartSeries, note: str = "") -> Chart:
    return Chart(title=title, x=TIME, y=Axis(label=label, unit=unit), series=series, note=note)


def _minutes(n: int, bin_s: float) -> Floats:
    return floats(np.arange(n) * bin_s / MINUTE)


def _n_shown(found: Run) -> int:
    """Bins to draw: of a last one that has hardly begun, shares and rates mislead."""
    use = found.outcome.use
    n, last_s = len(use.busy_frac), use.last_s(found.outcome.totals.span_s)
    is_stub = n > 2 and last_s < LEAST_COVER_FRAC * use.bin_s
    return n - 1 if is_stub else n


def _covered(values: Floats | Ints, found: Run) -> Floats:
    """Shares and rates of the bins that are drawn."""
    covered = found.outcome.use.covered(values, found.outcome.totals.span_s)
    return floats(covered[: _n_shown(found)])


def _steps(name: str, values: Floats | Ints, found: Run) -> ChartSeries:
    """Values that hold for a whole bin, to the end of what is shown."""
    shown = values[: _n_shown(found)]
    y = np.append(shown, shown[-1:])
    x = _minutes(len(y), found.outcome.use.bin_s).copy()
    x[-1] = min(x[-1], max(x[-2], found.outcome.totals.span_s / MINUTE))
    return ChartSeries(name=name, x=floats(x), y=floats(y), style="step")


def _layers(found: Run) -> Chart:
    use = found.outcome.use
    layers = {
        "busy": use.busy_frac,
        "KV cache": use.cache_frac,
        "memory bandwidth": use.bandwidth_frac,
        "compute": use.compute_frac,
    }
    share = np.ones(len(use.busy_frac)) if use.allocated_frac is None else use.allocated_frac
    paid = _steps("allocated", PERCENT * share, found)
    parts = [_steps(name, _covered(PERCENT * y, found), found) for name, y in layers.items()]
    chart = _over_time("Layers of utilization", "Share", "%", paid, *parts)
    return replace(chart, top=(PERCENT,))


def _flows(found: Run) -> Iterator[Chart]:
    flow = found.flow

    def rate(name: str, counts: Floats | Ints) -> ChartSeries:
        return _steps(name, _covered(counts / flow.bin_s, found), found)

    arrived, done = rate("arrived", flow.n_arrived), rate("done", flow.n_ended)
    yield _over_time("Requests", "Requests", "1/s", arrived, done)
    tokens = rate("output tokens", flow.output_tokens)
    note = "tokens count when their response is complete"
    yield _over_time("Throughput", "Output tokens", "1/s", tokens, note=note)
    queued = _steps("outstanding", flow.n_outstanding, found)
    note = "at the end of each bin"
    yield _over_time("Requests in the fleet", "Outstanding", "", queued, note=note)


def _power(found: Run) -> Iterator[Chart]:
    if found.power is None:
        return
    watts = found.power.mean_power_w
    note = f"mean {watts.value / KW:.2f} kW ({watts.low / KW:.2f} to {watts.high / KW:.2f})"
    series = _steps("power", found.power.power_w / KW, found)
    yield _over_time("Power of the accelerators", "Power", "kW", series, note=note)


def _latencies(found: Run) -> Iterator[Chart]:
    """One chart for each latency: beside end-to-end latency TTFT would be a flat line."""
    statistics = found.statistics
    for measure, title, summary in (
        ("ttft", "TTFT", statistics.ttft),
        ("e2e", "End-to-end latency", statistics.e2e),
    ):
        if summary is not None:
            yield Chart(
                title=f"{title} by percentile",
                x=Axis(label="Requests at or below", unit="%"),
                y=Axis(label="Time", unit="s"),
                series=(_quantiles(found, summary, measure),),
                note=_target(found.slo, measure),
            )


def _quantiles(found: Run, summary: Summary, measure: str) -> ChartSeries:
    """Of the requests that are measured, as the table says."""
    outcome = found.outcome
    if isinstance(outcome, Outcome):
        rows = outcome.finished
        since_s = outcome.requests.arrive_s[rows] - outcome.requests.arrive_s[0]
        is_measured = since_s >= found.statistics.delivery.warmup.cut_s
        values = getattr(outcome.times, f"{measure}_s")[rows][is_measured]
        return ChartSeries(name=measure, x=floats(SHARES), y=floats(np.percentile(values, SHARES)))
    y = [getattr(summary, f"{point}_s") for point in POINTS]
    return ChartSeries(name=measure, x=floats(list(POINTS.values())), y=floats(y))


def _target(slo: SloTargets, measure: str) -> str:
    limit_s = getattr(slo, f"{measure}_s")
    return "" if limit_s is None else f"SLO target: {limit_s / MS:,.0f} ms"


def _replicas(found: FleetOutcome) -> Chart:
    """By status where there is one pool, else what each pool has ready."""
    timeline, last_s = found.timeline, found.outcome.totals.span_s
    if len(found.pools) == 1:
        columns = {status: getattr(timeline, f"n_{status}") for status in STATUSES}
        series = [
            _stairs(status, timeline.at_s, column, last_s=last_s)
            for status, column in columns.items()
            if status == "ready" or column.any()
        ]
        return _over_time("Replicas by status", "Replicas", "", *series)
    series = [
        _stairs(pool.name, timeline.at_s[rows], timeline.n_ready[rows], last_s=last_s)
        for at, pool in enumerate(found.pools)
        if (rows := np.flatnonzero(timeline.pool == at)).size
    ]
    return _over_time("Replicas ready, by pool", "Replicas", "", *series)


def _stairs(name: str, at_s: Floats, values: Ints, *, last_s: float) -> ChartSeries:
    """Values that hold until the next change, to the end of the run."""
    rows = np.flatnonzero(at_s <= last_s)
    x = np.append(at_s[rows], max(last_s, float(at_s[rows][-1])))
    y = np.append(values[rows], values[rows][-1:])
    return ChartSeries(name=name, x=floats(x / MINUTE), y=floats(y), style="step")
