"""A run of a living fleet as a document and tables: what users felt, and what the fleet did."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.fleet import ENDS, ColdStart, FleetOutcome, PoolSize
from gpuplan.domain.simulation.fleet_file import FleetSimulation
from gpuplan.report.formats import count
from gpuplan.report.simulation.run import simulate_sheet, verdict
from gpuplan.units import HOUR

Document = dict[str, Any]
N_SHOWN = 20
STATUSES = ("ready", "starting", "draining", "failed")
PHASES = ("boot_s", "image_s", "load_s", "compile_s", "warmup_s")


def fleet_sheet(run: FleetSimulation) -> Sheet:
    """One run, ready to show."""
    sheet, found = simulate_sheet(run.simulation), run.found
    mine = (_ends_table(found), _pools_table(run))
    return replace(
        sheet,
        head=_head(run),
        document={**sheet.document, "fleet": fleet_document(run)},
        tables=(*sheet.tables[:-1], *mine, _timeline_table(run, N_SHOWN), sheet.tables[-1]),
        whole_tables=(*sheet.file_tables, *mine, _timeline_table(run, None)),
    )


def _head(run: FleetSimulation) -> str:
    pools = ", ".join(f"{pool.name} ({_size(pool.size)})" for pool in run.fleet.pools)
    outcome = run.simulation.outcome
    served = f"{count(outcome.n_completed)} of {count(outcome.n_requests)} requests served"
    return f"pools {pools}: {served}, {verdict(run.simulation)}"


def _size(size: PoolSize) -> str:
    if size.n_least is None and size.n_most is None:
        return str(size.n_first)
    least, most = size.n_least, size.n_most
    return f"{size.n_first if least is None else least} to {size.n_first if most is None else most}"


def fleet_document(run: FleetSimulation) -> Document:
    """What became of the fleet, for machines."""
    found, counts = run.found, run.found.counts
    timeline = found.timeline
    return {
        "router": run.fleet.router.rule,
        "paid_replica_hours": found.paid_s / HOUR,
        "paid_gpu_hours": sum(_gpu_hours(run)),
        "ends": {name: found.n_ended(way) for way, name in enumerate(ENDS)},
        "counts": {name: getattr(counts, name) for name in counts.__dataclass_fields__},
        "pools": [_pool_document(run, at) for at in range(len(found.pools))],
        "timeline": {
            "at_s": timeline.at_s.tolist(),
            "pool": [found.pools[p].name for p in timeline.pool],
            **{name: getattr(timeline, f"n_{name}").tolist() for name in STATUSES},
        },
    }


def _pool_document(run: FleetSimulation, at: int) -> Document:
    totals = run.found.pools[at]
    up_s = totals.ready_s + totals.failed_s + totals.starting_s
    return {
        "name": totals.name,
        "n_served": totals.n_served,
        "n_starts": totals.n_starts,
        "paid_replica_hours": totals.paid_s / HOUR,
        "paid_gpu_hours": _gpu_hours(run)[at],
        "busy_of_paid": totals.busy_s / totals.paid_s if totals.paid_s else 0.0,
        "ready_share": totals.ready_s / up_s if up_s else 0.0,
        "cold_start_s": {"total": totals.start.total_s, **_phases(totals.start)},
    }


def _gpu_hours(run: FleetSimulation) -> list[float]:
    pairs = zip(run.found.pools, run.n_accelerators, strict=True)
    return [pool.paid_s * n / HOUR for pool, n in pairs]


def _phases(start: ColdStart) -> Document:
    return {name.removesuffix("_s"): getattr(start, name) for name in PHASES}


def _ends_table(found: FleetOutcome) -> Table:
    rows = [(name, count(found.n_ended(way))) for way, name in enumerate(ENDS)]
    counts = found.counts
    rows += [
        ("attempts refused", count(counts.n_refusals)),
        ("attempts timed out", count(counts.n_timeouts)),
        ("asked again by clients", count(counts.n_retries)),
        ("sent again by the router", count(counts.n_resends)),
        ("replicas failed or reclaimed", count(counts.n_failures + counts.n_reclaims)),
    ]
    shown = tuple(row for row in rows if row[1] != "0" or row[0] == ENDS[0])
    return Table(
        title="How requests ended", columns=("end", "requests"), rows=shown, right=("requests",)
    )


def _pools_table(run: FleetSimulation) -> Table:
    columns = ("pool", "served", "GPU-hours paid", "busy of paid", "starts", "cold start s")
    rows = tuple(
        (
            pool.name,
            count(pool.n_served),
            f"{hours:,.2f}",
            f"{100 * pool.busy_s / pool.paid_s:.0f} %" if pool.paid_s else "-",
            count(pool.n_starts),
            f"{pool.start.total_s:,.0f}",
        )
        for pool, hours in zip(run.found.pools, _gpu_hours(run), strict=True)
    )
    return Table(title="Pools", columns=columns, rows=rows, right=columns[1:])


def _timeline_table(run: FleetSimulation, n_most: int | None) -> Table:
    timeline, names = run.found.timeline, [pool.name for pool in run.found.pools]
    n = len(timeline.at_s)
    rows = tuple(
        (
            f"{timeline.at_s[at]:,.1f}",
            names[timeline.pool[at]],
            *(str(getattr(timeline, f"n_{name}")[at]) for name in STATUSES),
        )
        for at in _shown(n, n_most)
    )
    rest = f"; {len(rows)} of {n} changes" if len(rows) < n else ""
    columns = ("at s", "pool", *STATUSES)
    title = f"Replicas over time{rest}"
    return Table(title=title, columns=columns, rows=rows, right=("at s", *STATUSES))


def _shown(n: int, n_most: int | None) -> list[int]:
    if n_most is None or n <= n_most:
        return list(range(n))
    return [int(at) for at in np.linspace(0, n - 1, n_most)]
