"""A simulated run for people: latencies, intervals, classes and totals as tables."""

from collections.abc import Iterator

from gpuplan.domain.sheet import Table
from gpuplan.domain.simulation.outcome import Summary
from gpuplan.domain.simulation.simulation import Simulation
from gpuplan.report.formats import count, frac
from gpuplan.report.simulation.document import MEASURES, PERCENTILES, Run
from gpuplan.report.table import pairs, table
from gpuplan.units import KW, KWH, MS

LABELS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E", "wait": "queue wait"}


def _summaries(found: Run) -> Iterator[tuple[str, Summary]]:
    for name in MEASURES:
        summary: Summary | None = getattr(found.statistics, name)
        if summary is not None:
            yield LABELS[name], summary


def latency_table(found: Run) -> Table:
    """Latencies by percentile; gaps between tokens where they were kept."""
    rows = [(label, *_points(summary), _interval(summary)) for label, summary in _summaries(found)]
    if found.gaps is not None:
        rows.append(("ITL", *_points(found.gaps), ""))
    heads = ("mean", "p50", "p90", "p95", "p99", "p99.9")
    return pairs("Latency (ms)", rows, "latency", *heads, "p99 ± %")


def _points(found: object) -> list[str]:
    return [ms(getattr(found, f"{point}_s")) for point in ("mean", *PERCENTILES)]


def _interval(summary: Summary) -> str:
    """How far the bounds of p99 are from it, in percent."""
    p99 = next(bound for bound in summary.bounds if bound.percentile == "p99")
    return f"{_off(p99.low_s, summary.p99_s)} {_off(p99.high_s, summary.p99_s)}"


def _off(bound_s: float | None, value_s: float) -> str:
    if bound_s is None or value_s <= 0:
        return "?"
    return f"{100 * (bound_s / value_s - 1):+.0f}"


def interval_table(found: Run) -> Table:
    """Every percentile with its bounds."""
    rows = []
    for label, summary in _summaries(found):
        mean = ("mean", summary.mean_s, summary.mean_low_s, summary.mean_high_s)
        points = [
            (b.percentile, getattr(summary, f"{b.percentile}_s"), b.low_s, b.high_s)
            for b in summary.bounds
        ]
        rows += [(label, name, *map(ms, values)) for name, *values in (mean, *points)]
    columns = ("latency", "statistic", "ms", "low (ms)", "high (ms)")
    return Table(title="95 % intervals", columns=columns, rows=tuple(rows), right=columns[2:])


def ms(seconds: float | None) -> str:
    """Milliseconds, with a tenth where the time is below ten seconds."""
    if seconds is None:
        return "?"
    return f"{seconds / MS:,.1f}" if seconds < 10 else f"{seconds / MS:,.0f}"


def class_table(found: Run) -> Table:
    """One row for each class of requests; empty where all are of one."""
    columns = {
        "class": lambda c: c.name,
        ">requests": lambda c: count(c.n_requests),
        ">recall": lambda c: frac(c.recall_frac),
        ">TTFT p50 (ms)": lambda c: _of(c.ttft, "p50"),
        ">TTFT p99 (ms)": lambda c: _of(c.ttft, "p99"),
        ">TPOT mean (ms)": lambda c: _of(c.tpot, "mean"),
        ">E2E p50 (ms)": lambda c: _of(c.e2e, "p50"),
        ">E2E p99 (ms)": lambda c: _of(c.e2e, "p99"),
    }
    return table("By class", found.classes if isinstance(found, Simulation) else (), columns)


def _of(summary: Summary | None, point: str) -> str:
    return "–" if summary is None else ms(getattr(summary, f"{point}_s"))


def totals_table(found: Run) -> Table:
    """Rates, shares, power and counts of the fleet."""
    return pairs("Fleet", _totals(found))


def _totals(found: Run) -> Iterator[tuple[str, str]]:
    """Without an SLO nothing is within it, so those rows are not shown."""
    statistics, totals, delivery = found.statistics, found.outcome.totals, found.statistics.delivery
    is_given = found.slo.is_given
    good = "within SLO" if is_given else "served (no SLO was given)"
    yield "requests/s", f"{delivery.requests_per_s:,.2f}"
    if is_given:
        yield "goodput (requests/s within SLO)", f"{delivery.good_requests_per_s:,.2f}"
    yield "output tokens/s", f"{statistics.output_tokens_per_s:,.0f}"
    if is_given:
        yield "output tokens/s within SLO", f"{delivery.good_output_tokens_per_s:,.0f}"
    yield "utilization (share of time busy)", frac(statistics.busy_frac)
    yield "precision (useful share of paid GPU time)", frac(statistics.precision_frac)
    yield f"recall (requests {good})", frac(statistics.recall_frac)
    yield f"recall (tokens {good})", frac(delivery.token_recall_frac)
    yield from _power(found)
    if totals.n_hit_tokens:
        yield "prefix cache hit rate (tokens)", frac(totals.n_hit_tokens / totals.n_asked_tokens)
    yield "preemptions", count(totals.n_preemptions)
    yield "iterations", count(totals.n_steps)
    yield "simulated time", f"{totals.span_s:,.1f} s"
    yield "requests simulated per second", f"{found.outcome.n_requests / found.wall_s:,.0f}"


def _power(found: Run) -> Iterator[tuple[str, str]]:
    power = found.power
    if power is None:
        return
    yield "power of the accelerators", f"{power.mean_power_w.value / KW:,.2f} kW"
    yield "energy of the accelerators", f"{power.energy_j.value / KWH:,.3f} kWh"
    if power.energy_j_per_output_token is not None:
        yield "energy per output token", f"{power.energy_j_per_output_token.value:.3f} J"
