"""A simulated run, ready to show: head, tables, and what to know about its figures.

A simulated run for people: latencies, intervals, classes and totals as tables.
"""

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.outcome import WEIGHTED, Summary
from gpuplan.domain.simulation.simulation import NetworkSimulation, Simulation, SmallestFleet
from gpuplan.report.document import result_sheet
from gpuplan.report.formats import count, frac
from gpuplan.report.prediction.setup import precision_name
from gpuplan.report.simulation.document import (
    DEFINITIONS,
    MEASURES,
    PERCENTILES,
    Run,
    run_body,
    verdict,
)
from gpuplan.report.simulation.utilization import use_table
from gpuplan.report.table import pairs, table
from gpuplan.units import KW, KWH, MS

LABELS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E", "wait": "queue wait"}


N_SHOWN_BINS = 20


def simulate_sheet(found: Run) -> Sheet:
    """One run, ready to show."""
    first = [latency_table(found), class_table(found), totals_table(found)]
    sheet = result_sheet(
        run_body(found),
        [*first, use_table(found.outcome, N_SHOWN_BINS)],
        head=f"{_deployment(found)}: {served_words(found)}",
        remarks=[
            ("Overloaded:", overload_lines(found)),
            ("Too small:", rejection_lines(found)),
            ("Rejected:", [f"{why}: {count(n)} requests" for why, n in found.outcome.refused]),
            ("Measured:", _measured_lines(found)),
        ],
        assumptions=found.outcome.assumptions,
    )
    whole = (*sheet.tables[:-1], interval_table(found), use_table(found.outcome, None))
    return replace(sheet, whole_tables=whole)


def overload_lines(found: Run) -> tuple[str, ...]:
    """How fast the queue grows, and what would carry the load."""
    if not found.statistics.is_overloaded:
        return ()
    growth = found.statistics.backlog_requests_per_s
    lines = [f"the queue grows by {growth:,.2f} requests/s: waiting time has no upper limit"]
    return (*lines, *(() if found.holding is None else (smallest_line(found.holding),)))


def rejection_lines(found: Run) -> tuple[str, ...]:
    """Of a fleet that rejects requests instead of queueing them, what would serve them."""
    if found.statistics.is_overloaded or found.holding is None:
        return ()
    return ("requests are rejected, or abandoned by their clients", smallest_line(found.holding))


def smallest_line(fleet: SmallestFleet) -> str:
    """The smallest fleet, and what shows that it is the smallest."""
    if fleet.n_replicas is None:
        most = max(point.n_replicas for point in fleet.tried)
        return f"not even {most:,} replicas carry the load ({fleet.criterion})"
    below = [p for p in fleet.tried if p.n_replicas == fleet.n_replicas - 1]
    proof = f"; {below[0].n_replicas:,} do not" if below else ""
    return f"{fleet.n_replicas:,} replicas would carry the load ({fleet.criterion}{proof})"


def _deployment(found: Run) -> str:
    if isinstance(found, NetworkSimulation):
        forecast = found.forecast
        return f"{forecast.name} on {found.servers.n_engines} × {forecast.accelerator.name}"
    setup = found.setup
    if isinstance(found, Simulation) and found.fleet.router == WEIGHTED:
        pools = " + ".join(each.name for each in found.classes)
        return f"{setup.model.name} ({precision_name(setup.storage)}) on {pools}"
    n, decode = found.fleet.n_engines // setup.n_engines, found.fleet.decode
    replicas = f"{n} replicas of " if n > 1 else ""
    if decode is not None:
        replicas = f"{n} prefill and {decode.n_engines} decode replicas of "
    return (
        f"{setup.model.name} ({precision_name(setup.storage)}) on {replicas}"
        f"{setup.layout.n_accelerators} × {setup.accelerator.name}, "
        f"{setup.engine.name} {setup.engine.version}"
    )


def served_words(found: Run) -> str:
    """How many requests were served, and the verdict."""
    outcome = found.outcome
    served = f"{count(outcome.n_completed)} of {count(outcome.n_requests)} requests served"
    return f"{served}, {verdict(found)}"


def _warmup_line(found: Run) -> str:
    warmup = found.statistics.delivery.warmup
    if not warmup.is_automatic and warmup.cut_s == 0:
        return "none, the run is measured from its first request"
    how = "found by MSER-5" if warmup.is_automatic and warmup.is_settled else warmup.note
    cut = f"{warmup.cut_s:,.1f} s and {count(warmup.n_requests)} requests not measured"
    return f"{cut} ({how})"


def _load_lines(found: Run) -> tuple[str, ...]:
    """One line: rate, busiest minute, and how bursty; Poisson has 1 and 1."""
    load = found.load if isinstance(found, Simulation) else None
    if load is None or load.gap_cv_ratio is None:
        return ()
    line = (
        f"load: {load.mean_requests_per_s:,.2f} requests/s, "
        f"{load.peak_minute_requests_per_s:,.2f} in the busiest minute; burstiness (CV of "
        f"inter-arrival times) {load.gap_cv_ratio:.2f}"
    )
    if load.dispersion_ratio is not None:
        line += f", index of dispersion per minute {load.dispersion_ratio:.2f}"
    return (f"{line} (Poisson: 1)",)


def _measured_lines(found: Run) -> tuple[str, ...]:
    gap_s = found.statistics.delivery.itl_mean_s
    lines = [*_load_lines(found), f"TPOT: {DEFINITIONS['tpot']}"]
    if gap_s is not None:
        more = "" if found.gaps else "; percentiles with --itl"
        lines.append(f"ITL: mean of all single gaps between tokens {ms(gap_s)} ms{more}")
    lines.append(f"warm-up: {_warmup_line(found)}; change with --warmup")
    lines.append("busy: an iteration runs, however small its batch; the other layers say how full")
    return (*lines, "p99 ± %: its 95 % interval; ? where the run is too short to bound it")


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
