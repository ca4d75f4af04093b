"""A simulated run, ready to show: head, tables, and what to know about its figures."""

from dataclasses import replace

from gpuplan.domain.sheet import Sheet
from gpuplan.domain.simulation.simulation import NetworkSimulation, Simulation, SmallestFleet
from gpuplan.report.document import result_sheet
from gpuplan.report.formats import count
from gpuplan.report.prediction.setup import precision_name
from gpuplan.report.simulation.document import DEFINITIONS, Run, run_body, verdict
from gpuplan.report.simulation.tables import (
    class_table,
    interval_table,
    latency_table,
    ms,
    totals_table,
)
from gpuplan.report.simulation.utilization import use_table

N_SHOWN_BINS = 20


def simulate_sheet(found: Run) -> Sheet:
    """One run, ready to show."""
    first = [latency_table(found), class_table(found), totals_table(found)]
    sheet = result_sheet(
        run_body(found),
        [*first, use_table(found.outcome, N_SHOWN_BINS)],
        head=_head(found),
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
    n = found.fleet.n_engines // setup.layout.n_engines
    return (
        f"{setup.model.name} ({precision_name(setup.storage)}) on {n} × "
        f"{setup.layout.n_accelerators} {setup.accelerator.name}, "
        f"{setup.engine.name} {setup.engine.version}"
    )


def _head(found: Run) -> str:
    return f"{_deployment(found)}: {served_words(found)}"


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
