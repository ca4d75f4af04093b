"""A simulated run as charts: use, throughput, queue, power, latencies."""

import numpy as np

from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.simulation.outcome import Outcome, SloTargets, Summary
from gpuplan.domain.simulation.simulation import (
    FleetSizeCurve,
    NetworkSimulation,
    Simulation,
    StreamedSimulation,
)
from gpuplan.units import MINUTE, MS

Run = Simulation | StreamedSimulation | NetworkSimulation
PERCENT = 100.0
LEAST_COVER_FRAC = 0.25
SHARES = np.concatenate([np.linspace(0, 99, 100), [99.5, 99.9]])
POINTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


def simulate_charts(found: Run) -> tuple[Chart, ...]:
    """Every chart of a run; power only where it is known."""
    power = _power(found)
    return (
        utilization(
            _covered(found.outcome.use.busy_frac, found),
            found.outcome.use.bin_s,
            mean_frac=found.statistics.busy_frac,
        ),
        _layers(found),
        _throughput(found),
        _tokens(found),
        _outstanding(found),
        *([power] if power else []),
        *_latencies(found),
    )


def utilization(busy_frac: Floats, bin_s: float, *, mean_frac: float | None = None) -> Chart:
    """Minute against busy share: the mean alone would hide the peak."""
    y = floats(PERCENT * busy_frac)
    mean = y.mean() if mean_frac is None else PERCENT * mean_frac
    note = f"mean {mean:.0f} %, peak {y.max():.0f} %; the rest of each bar is idle"
    series = ChartSeries(name="busy", x=_minutes(len(y), bin_s), y=y, style="bars")
    return Chart(
        title="GPU utilization: busy and idle",
        x=Axis(label="Time", unit="min"),
        y=Axis(label="GPU Utilization", unit="%"),
        series=(series,),
        top=(PERCENT,),
        note=note,
    )


def curve_charts(curve: FleetSizeCurve) -> tuple[Chart, ...]:
    """Precision against recall by fleet size, and what each size costs."""
    sizes = floats([point.n_replicas for point in curve.points])
    recall = floats([PERCENT * point.recall_frac for point in curve.points])
    precision = floats(PERCENT * np.array(curve.precision_frac))
    names = tuple(str(point.n_replicas) for point in curve.points)
    best, least = curve.best, int(np.argmin(curve.cost_usd))
    note = f"numbers are replicas; best at {names[best]} (F with beta {curve.beta_ratio:.2f})"
    both = Chart(
        title="Precision against recall by fleet size",
        x=Axis(label="Recall", unit="%"),
        y=Axis(label="Precision", unit="%"),
        note=note,
        series=(
            ChartSeries(name="fleet sizes", x=recall, y=precision, style="points", labels=names),
            ChartSeries(name="best", x=recall[[best]], y=precision[[best]], style="points"),
        ),
    )
    scores = Chart(
        title="Precision, recall and F by fleet size",
        x=Axis(label="Replicas"),
        y=Axis(label="Share", unit="%"),
        top=(PERCENT,),
        series=tuple(
            ChartSeries(name=name, x=sizes, y=y)
            for name, y in (
                ("precision", precision),
                ("recall", recall),
                ("F", floats(PERCENT * np.array(curve.f_frac))),
            )
        ),
    )
    cost = Chart(
        title="Cost of waste and delay",
        x=Axis(label="Replicas"),
        y=Axis(label="Cost", unit="USD"),
        series=(ChartSeries(name="waste and delay", x=sizes, y=floats(curve.cost_usd)),),
        note=f"least: {curve.cost_usd[least]:,.2f} USD at {names[least]} replicas",
    )
    return both, scores, cost


TIME = Axis(label="Time", unit="min")


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
    return Chart(
        title="Layers of utilization",
        x=TIME,
        y=Axis(label="Share", unit="%"),
        top=(PERCENT,),
        series=(
            paid,
            *(
                _steps(name, _covered(PERCENT * share, found), found)
                for name, share in layers.items()
            ),
        ),
    )


def _throughput(found: Run) -> Chart:
    flow = found.flow
    return Chart(
        title="Requests",
        x=TIME,
        y=Axis(label="Requests", unit="1/s"),
        series=tuple(
            _steps(name, _covered(counts / flow.bin_s, found), found)
            for name, counts in (("arrived", flow.n_arrived), ("done", flow.n_ended))
        ),
    )


def _tokens(found: Run) -> Chart:
    flow = found.flow
    rate = _covered(flow.output_tokens / flow.bin_s, found)
    return Chart(
        title="Throughput",
        x=TIME,
        y=Axis(label="Output tokens", unit="1/s"),
        series=(_steps("output tokens", rate, found),),
        note="tokens count when their answer is whole",
    )


def _outstanding(found: Run) -> Chart:
    flow = found.flow
    return Chart(
        title="Requests in the fleet",
        x=TIME,
        y=Axis(label="Outstanding"),
        series=(_steps("outstanding", flow.n_outstanding, found),),
        note="at the end of each bin",
    )


def _power(found: Run) -> Chart | None:
    if found.power is None:
        return None
    watts = found.power.mean_power_w
    return Chart(
        title="Power of the accelerators",
        x=TIME,
        y=Axis(label="Power", unit="kW"),
        series=(_steps("power", found.power.power_w / 1e3, found),),
        note=f"mean {watts.value / 1e3:.2f} kW ({watts.low / 1e3:.2f} to {watts.high / 1e3:.2f})",
    )


def _latencies(found: Run) -> tuple[Chart, ...]:
    """One chart for each time: beside a whole answer a first token would be a flat line."""
    statistics, slo = found.statistics, found.slo
    return tuple(
        Chart(
            title=f"{title} by percentile",
            x=Axis(label="Requests at or below", unit="%"),
            y=Axis(label="Time", unit="s"),
            series=(series,),
            note=_promise(slo, measure),
        )
        for measure, title, summary in (
            ("ttft", "First token", statistics.ttft),
            ("e2e", "Whole answer", statistics.e2e),
        )
        if summary is not None and (series := _quantiles(found, summary, measure))
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


def _promise(slo: SloTargets, measure: str) -> str:
    limit_s = getattr(slo, f"{measure}_s")
    return "" if limit_s is None else f"objective: {limit_s / MS:,.0f} ms"
