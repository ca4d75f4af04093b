"""A run of an autoscaled fleet as a document and tables: latencies, and what the fleet did."""

from dataclasses import asdict, replace

import numpy as np

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.fleet import ENDS, FleetOutcome, PoolSize
from gpuplan.domain.simulation.fleet_file import FleetSimulation
from gpuplan.report.document import Document, pick, plain
from gpuplan.report.formats import count, percent
from gpuplan.report.simulation.run import served_words, simulate_sheet
from gpuplan.report.table import pairs, table
from gpuplan.units import HOUR

N_SHOWN = 20
STATUSES = ("ready", "starting", "draining", "failed")
PHASES = ("total", "boot", "image", "load", "compile", "warmup")


def fleet_sheet(run: FleetSimulation) -> Sheet:
    """One run, ready to show."""
    sheet, found = simulate_sheet(run.simulation), run.found
    mine = (_ends_table(found), _pools_table(run))
    pools = ", ".join(f"{pool.name} ({_size(pool.size)})" for pool in run.fleet.pools)
    return replace(
        sheet,
        head=f"pools {pools}: {served_words(run.simulation)}",
        document={**sheet.document, "fleet": _body(run)},
        tables=(*sheet.tables[:-1], *mine, _timeline_table(run, N_SHOWN), sheet.tables[-1]),
        whole_tables=(*sheet.file_tables, *mine, _timeline_table(run, None)),
    )


def _size(size: PoolSize) -> str:
    if size.n_least is None and size.n_most is None:
        return str(size.n_first)
    least, most = size.n_least, size.n_most
    return f"{size.n_first if least is None else least} to {size.n_first if most is None else most}"


def _body(run: FleetSimulation) -> Document:
    found, timeline = run.found, run.found.timeline
    return {
        "router": run.fleet.router.rule,
        "paid_replica_hours": found.paid_s / HOUR,
        "paid_gpu_hours": sum(_gpu_hours(run)),
        "ends": {name: found.n_ended(way) for way, name in enumerate(ENDS)},
        "counts": asdict(found.counts),
        "pools": [_pool_document(run, at) for at in range(len(found.pools))],
        "timeline": {
            "at_s": plain(timeline.at_s),
            "pool": [found.pools[p].name for p in timeline.pool],
            **{name: plain(getattr(timeline, f"n_{name}")) for name in STATUSES},
        },
    }


def _pool_document(run: FleetSimulation, at: int) -> Document:
    totals = run.found.pools[at]
    up_s = totals.ready_s + totals.failed_s + totals.starting_s
    return {
        **pick(totals, "name", "n_served", "n_starts"),
        "paid_replica_hours": totals.paid_s / HOUR,
        "paid_gpu_hours": _gpu_hours(run)[at],
        "busy_of_paid": totals.busy_s / totals.paid_s if totals.paid_s else 0.0,
        "ready_share": totals.ready_s / up_s if up_s else 0.0,
        "cold_start_s": pick(totals.start, **{phase: f"{phase}_s" for phase in PHASES}),
    }


def _gpu_hours(run: FleetSimulation) -> list[float]:
    pools = zip(run.found.pools, run.n_accelerators, strict=True)
    return [pool.paid_s * n / HOUR for pool, n in pools]


def _ends_table(found: FleetOutcome) -> Table:
    rows = [(name, count(found.n_ended(way))) for way, name in enumerate(ENDS)]
    counts = found.counts
    rows += [
        ("attempts rejected", count(counts.n_refusals)),
        ("attempts timed out", count(counts.n_timeouts)),
        ("retries by clients", count(counts.n_retries)),
        ("retries by the router", count(counts.n_resends)),
        ("replicas failed or preempted (spot)", count(counts.n_failures + counts.n_reclaims)),
    ]
    shown = [row for row in rows if row[1] != "0" or row[0] == ENDS[0]]
    return pairs("How requests ended", shown, "end", "requests")


def _pools_table(run: FleetSimulation) -> Table:
    columns = {
        "pool": lambda row: row[0].name,
        ">served": lambda row: count(row[0].n_served),
        ">GPU-hours paid": lambda row: f"{row[1]:,.2f}",
        ">utilization": lambda row: (
            percent(row[0].busy_s / row[0].paid_s) if row[0].paid_s else "–"
        ),
        ">starts": lambda row: count(row[0].n_starts),
        ">cold start (s)": lambda row: f"{row[0].start.total_s:,.0f}",
    }
    return table("Pools", zip(run.found.pools, _gpu_hours(run), strict=True), columns)


def _timeline_table(run: FleetSimulation, n_most: int | None) -> Table:
    timeline, names = run.found.timeline, [pool.name for pool in run.found.pools]
    n = len(timeline.at_s)
    shown = range(n) if n_most is None or n <= n_most else np.linspace(0, n - 1, n_most).astype(int)
    rows = tuple(
        (
            f"{timeline.at_s[at]:,.1f}",
            names[timeline.pool[at]],
            *(str(getattr(timeline, f"n_{name}")[at]) for name in STATUSES),
        )
        for at in shown
    )
    rest = f"; {len(rows)} of {n} changes" if len(rows) < n else ""
    columns = ("time (s)", "pool", *STATUSES)
    right = ("time (s)", *STATUSES)
    return Table(title=f"Replicas over time{rest}", columns=columns, rows=rows, right=right)
