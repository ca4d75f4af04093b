"""A simulated run as charts: use, throughput, queue, power, latencies."""

import numpy as np

from gpuplan.domain.chart import Axis, Chart, Series
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.outcome import Outcome, Slo, Summary
from gpuplan.domain.simulation import FleetCurve, Simulation, StreamedSimulation
from gpuplan.units import MINUTE, MS

Run = Simulation | StreamedSimulation
PERCENT = 100.0
SHARES = np.concatenate([np.linspace(0, 99, 100), [99.5, 99.9]])
POINTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


def simulate_charts(found: Run) -> tuple[Chart, ...]:
    """Every chart of a run; power only where it is known."""
    power = _power(found)
    return (
        utilization(found.outcome.use.busy_frac, found.outcome.use.bin_s),
        _layers(found),
        _throughput(found),
        _tokens(found),
        _outstanding(found),
        *([power] if power else []),
        _latencies(found),
    )


def utilization(busy_frac: Floats, bin_s: float) -> Chart:
    """Minute against busy share: the mean alone would hide the peak."""
    y = floats(PERCENT * busy_frac)
    note = f"mean {y.mean():.0f} %, peak {y.max():.0f} %; the rest of each bar is idle"
    series = Series(name="busy", x=_minutes(len(y), bin_s), y=y, style="bars")
    return Chart(
        title="GPU utilization: busy and idle", x=Axis(label="Time", unit="min"),
        y=Axis(label="GPU Utilization", unit="%"), series=(series,), top=(PERCENT,), note=note,
    )  # fmt: skip


def curve_charts(curve: FleetCurve) -> tuple[Chart, ...]:
    """Precision against recall by fleet size, and what each size costs."""
    sizes = floats([point.n_replicas for point in curve.points])
    recall = floats([PERCENT * point.recall_frac for point in curve.points])
    precision = floats([PERCENT * point.precision_frac for point in curve.points])
    names = tuple(str(point.n_replicas) for point in curve.points)
    best = curve.best
    note = f"numbers are replicas; best at {names[best]} (F with beta {curve.beta_ratio:.2f})"
    both = Chart(
        title="Precision against recall by fleet size", x=Axis(label="Recall", unit="%"),
        y=Axis(label="Precision", unit="%"), note=note,
        series=(
            Series(name="fleet sizes", x=recall, y=precision, style="points", labels=names),
            Series(name="best", x=recall[[best]], y=precision[[best]], style="points"),
        ),
    )  # fmt: skip
    scores = Chart(
        title="Precision, recall and F by fleet size", x=Axis(label="Replicas"),
        y=Axis(label="Share", unit="%"), top=(PERCENT,),
        series=tuple(
            Series(name=name, x=sizes, y=y)
            for name, y in (
                ("precision", precision), ("recall", recall),
                ("F", floats(PERCENT * np.array(curve.f_frac))),
            )
        ),
    )  # fmt: skip
    cost = Chart(
        title="Cost of waste and delay", x=Axis(label="Replicas"),
        y=Axis(label="Cost", unit="USD"),
        series=(Series(name="waste and delay", x=sizes, y=floats(curve.cost_usd)),),
    )  # fmt: skip
    return both, scores, cost


TIME = Axis(label="Time", unit="min")


def _minutes(n: int, bin_s: float) -> Floats:
    return floats(np.arange(n) * bin_s / MINUTE)


def _steps(name: str, values: Floats | Ints, bin_s: float) -> Series:
    """Values that hold for a whole bin, to the end of the last."""
    y = np.append(values, values[-1:])
    return Series(name=name, x=_minutes(len(y), bin_s), y=floats(y), style="step")


def _layers(found: Run) -> Chart:
    use = found.outcome.use
    layers = (
        ("allocated", np.ones(len(use.busy_frac))), ("busy", use.busy_frac),
        ("KV cache", use.cache_frac), ("memory bandwidth", use.bandwidth_frac),
        ("compute", use.compute_frac),
    )  # fmt: skip
    return Chart(
        title="Layers of utilization", x=TIME, y=Axis(label="Share", unit="%"), top=(PERCENT,),
        series=tuple(_steps(name, PERCENT * share, use.bin_s) for name, share in layers),
    )  # fmt: skip


def _throughput(found: Run) -> Chart:
    flow = found.flow
    return Chart(
        title="Requests", x=TIME, y=Axis(label="Requests", unit="1/s"),
        series=tuple(
            _steps(name, counts / flow.bin_s, flow.bin_s)
            for name, counts in (("arrived", flow.n_arrived), ("done", flow.n_ended))
        ),
    )  # fmt: skip


def _tokens(found: Run) -> Chart:
    flow = found.flow
    rate = flow.output_tokens / flow.bin_s
    return Chart(
        title="Throughput", x=TIME, y=Axis(label="Output tokens", unit="1/s"),
        series=(_steps("output tokens", rate, flow.bin_s),),
        note="tokens count when their answer is whole",
    )  # fmt: skip


def _outstanding(found: Run) -> Chart:
    flow = found.flow
    return Chart(
        title="Requests in the fleet", x=TIME, y=Axis(label="Outstanding"),
        series=(_steps("outstanding", flow.n_outstanding, flow.bin_s),),
    )  # fmt: skip


def _power(found: Run) -> Chart | None:
    if found.power is None:
        return None
    watts = found.power.mean_power_w
    return Chart(
        title="Power of the accelerators", x=TIME, y=Axis(label="Power", unit="kW"),
        series=(_steps("power", found.power.power_w / 1e3, found.power.bin_s),),
        note=f"mean {watts.value / 1e3:.2f} kW ({watts.low / 1e3:.2f} to {watts.high / 1e3:.2f})",
    )  # fmt: skip


def _latencies(found: Run) -> Chart:
    statistics = found.statistics
    series = [
        _quantiles(found.outcome, statistics.ttft, "ttft", "first token"),
        _quantiles(found.outcome, statistics.e2e, "e2e", "whole answer"),
    ]
    return Chart(
        title="Latency by percentile", x=Axis(label="Requests at or below", unit="%"),
        y=Axis(label="Time", unit="s"), series=tuple(one for one in series if one is not None),
        note=_promise(found.slo),
    )  # fmt: skip


def _quantiles(outcome: object, summary: Summary | None, measure: str, name: str) -> Series | None:
    if summary is None:
        return None
    if isinstance(outcome, Outcome):
        rows: Ints = outcome.finished
        values = getattr(outcome.times, f"{measure}_s")[rows]
        return Series(name=name, x=floats(SHARES), y=floats(np.percentile(values, SHARES)))
    y = [getattr(summary, f"{point}_s") for point in POINTS]
    return Series(name=name, x=floats(list(POINTS.values())), y=floats(y))


def _promise(slo: Slo) -> str:
    limits = [
        f"{name} {limit_s / MS:,.0f} ms"
        for name, limit_s in (("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s), ("E2E", slo.e2e_s))
        if limit_s is not None
    ]
    return "objective: " + ", ".join(limits) if limits else ""
