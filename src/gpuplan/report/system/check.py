"""A judged system as a sheet: chain of bottlenecks, objections, what would balance it."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.check import SystemCheck, WorkCheck
from gpuplan.domain.system.parts import BalancedSystem, Bottleneck
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.report.system.facility import facility_document, facility_sheet, finding_document
from gpuplan.report.system.parts import (
    fabric_document,
    gravest_first,
    host_document,
    hosts_table,
    moved_document,
    moves_table,
    networks_table,
    objections_table,
    range_document,
    spare_document,
    spares_table,
    tier_document,
    usd_text,
)
from gpuplan.units import GB, KW, KWH, YEAR


def check_sheet(checked: SystemCheck) -> Sheet:
    """The judgement, ready to show."""
    n_errors = sum(finding.severity == "error" for finding in checked.findings)
    head = "sound" if checked.is_ok else f"rejected for {n_errors} reason{'s'[: n_errors - 1]}"
    busy = min((work.busy_frac for work in checked.works), default=1.0)
    head = f"{checked.name}: {head}; accelerators can be busy {busy:.0%} of the time"
    return Sheet(
        document=check_document(checked),
        tables=tuple(_tables(checked)),
        head=head,
        remarks=(("Assumed:", assumption_lines(checked.assumptions)),),
    )


def check_document(checked: SystemCheck) -> dict[str, Any]:
    """The judgement for machines."""
    around = checked.around
    return {
        "schema_version": SCHEMA_VERSION,
        "name": checked.name,
        "ok": checked.is_ok,
        "bottlenecks": [_bottleneck(b, work) for work in checked.works for b in work.bottlenecks],
        "findings": [finding_document(finding) for finding in gravest_first(checked.findings)],
        "workloads": [_work(work) for work in checked.works],
        "balanced": [_balanced(one, checked.budget_usd) for one in checked.balanced],
        "budget_usd": checked.budget_usd,
        "fabrics": [fabric_document(plan) for plan in around.fabrics],
        "hosts": [
            {"machine": name, "parts": [host_document(line) for line in lines]}
            for name, lines in around.hosts
        ],
        "spares": [spare_document(need) for need in around.spares],
        "facilities": [facility_document(plan) for plan in around.facilities],
        "energy": _energy(checked),
        "assumptions": assumptions_document(checked.assumptions),
    }


def _energy(checked: SystemCheck) -> dict[str, Any] | None:
    """Of a year at the typical draw, cooling and losses included; the highest is for breakers."""
    around = checked.around
    if not around.facilities:
        return None
    used_j = sum(plan.level("facility").typical_w for plan in around.facilities) * YEAR
    price = around.electricity_usd_per_j
    usd = None if price is None else range_document(price.times(used_j))
    return {"kwh_per_year": used_j / KWH, "usd_per_year": usd}


def _bottleneck(found: Bottleneck, work: WorkCheck) -> dict[str, Any]:
    stage = found.stage
    return {
        "workload": work.name,
        "stage": stage.name,
        "gpu_busy_frac": found.busy_frac,
        "gpu_busy_after_frac": found.busy_after_frac,
        "gpu_idle_frac": found.idle_frac,
        "gain": found.gain_ratio,
        "demand": stage.n_wanted,
        "supply": stage.n_given,
        "unit": stage.unit,
        "fix": stage.fix,
        "options": [{"what": o.what, "gpu_busy_frac": o.busy_frac} for o in stage.options],
    }


def _work(work: WorkCheck) -> dict[str, Any]:
    demand = work.demand
    return {
        "name": work.name,
        "accelerator": work.accelerator,
        "n_accelerators": work.n_accelerators,
        "gpu_busy_frac": work.busy_frac,
        "demand": None
        if demand is None
        else {
            "samples_per_s": demand.samples_per_s,
            "bytes_per_s": demand.bytes_per_s,
            "reads_per_s": demand.operations_per_s,
            "opens_per_s": demand.open_operations_per_s,
        },
        "staging": None if work.moved is None else moved_document(work.moved),
        "storage": [tier_document(choice) for choice in work.storage],
        "checkpoints": [
            {
                "write_bytes_per_s": rate.write_bytes_per_s,
                "write_s": rate.write_s,
                "interval_s": rate.interval_s,
                "lost_frac": rate.lost_frac,
            }
            for rate in work.checkpoints
        ],
    }


def _balanced(one: BalancedSystem, budget_usd: float | None) -> dict[str, Any]:
    within = None if one.usd is None or budget_usd is None else one.usd.mid <= budget_usd
    return {
        "what": one.what,
        "n_accelerators": one.n_accelerators,
        "gpu_busy_frac": one.busy_frac,
        "speed_beside_described": one.speed_ratio,
        "accelerators_at_work": one.n_at_work,
        "usd": None if one.usd is None else range_document(one.usd),
        "within_budget": within,
        "parts": [{"part": name, "usd": range_document(usd)} for name, usd in one.parts],
    }


# --- tables -------------------------------------------------------------------------------------


def _tables(checked: SystemCheck) -> Iterator[Table]:
    for work in checked.works:
        if work.bottlenecks:
            yield _chain(work)
    if checked.findings:
        yield objections_table(checked.findings)
    if checked.balanced:
        yield _balance(checked)
    yield from _around(checked)


def _chain(work: WorkCheck) -> Table:
    rows = tuple(
        (
            str(place),
            b.stage.name,
            amount(b.stage.n_wanted, b.stage.unit),
            amount(b.stage.n_given, b.stage.unit),
            f"{b.busy_frac:.0%}",
            f"{b.busy_after_frac:.0%}",
            b.stage.fix,
        )
        for place, b in enumerate(work.bottlenecks, 1)
    )
    title = f"Bottlenecks of {work.name}, in the order in which they bind"
    if work.demand is not None:
        title += (
            f"; it reads {amount(work.demand.bytes_per_s, 'bytes/s')}, "
            f"{amount(work.demand.operations_per_s, 'reads/s')}"
        )
    columns = ("", "stage", "needs", "has", "busy", "then", "what helps")
    return Table(title=title, columns=columns, rows=rows, right=columns[2:6])


def _balance(checked: SystemCheck) -> Table:
    budget = checked.budget_usd
    rows = tuple(
        (
            one.what,
            f"{one.n_at_work:.1f}",
            usd_text(one.usd),
            "; ".join(f"{name} {usd_text(usd)}" for name, usd in one.parts),
        )
        for one in checked.balanced
    )
    money = "no price is known" if budget is None else f"at {budget:,.0f} USD"
    columns = ("system", "at work", "USD", "parts")
    return Table(
        title=f"Balanced alternatives, {money}; work in accelerators of the described kind",
        columns=columns,
        rows=rows,
        right=columns[1:3],
    )


def _around(checked: SystemCheck) -> Iterator[Table]:
    around = checked.around
    moves = [work.moved for work in checked.works if work.moved is not None]
    if moves:
        yield moves_table(moves)
    for work in checked.works:
        if work.storage:
            yield _storage(work)
        if work.checkpoints:
            yield _checkpoints(work)
    for name, lines in around.hosts:
        yield hosts_table(name, lines)
    if around.fabrics:
        yield networks_table(around.fabrics)
    if around.spares:
        yield spares_table(around.spares)
    if around.facilities:
        yield _places(checked)
    for plan in around.facilities:
        yield from (table for table in facility_sheet(plan).tables if table.title != "Objections")


def _storage(work: WorkCheck) -> Table:
    rows = tuple((c.tier.name, str(c.n_units), c.reason, usd_text(c.usd)) for c in work.storage)
    columns = ("storage", "units", "decided by", "USD")
    title = f"Storage that would feed {work.name}"
    return Table(title=title, columns=columns, rows=rows, right=("units", "USD"))


def _checkpoints(work: WorkCheck) -> Table:
    rows = tuple(
        (
            f"{r.write_bytes_per_s / GB:g}",
            f"{r.write_s:.0f}",
            f"{r.interval_s / 60:.0f}",
            f"{r.lost_frac:.1%}",
        )
        for r in work.checkpoints
    )
    columns = ("write GB/s", "write s", "every min", "lost")
    return Table(title=f"Checkpoints of {work.name}", columns=columns, rows=rows, right=columns)


def _places(checked: SystemCheck) -> Table:
    rows = tuple(
        (
            plan.node.name,
            f"{plan.n_nodes}",
            f"{plan.n_racks}",
            f"{plan.level('machines').max_w / KW:.1f}",
            f"{plan.level('facility').max_w / KW:.1f}",
            f"{plan.cooling.btu_per_h / 1e3:,.0f}",
            f"{plan.cooling.tons:.1f}",
            f"{plan.level('facility').typical_w * YEAR / KWH / 1e3:,.0f}",
        )
        for plan in checked.around.facilities
    )
    columns = ("machine", "n", "racks", "kW", "kW with cooling", "kBTU/h", "tons", "MWh a year")
    return Table(title="Place", columns=columns, rows=rows, right=columns[1:])


def amount(n: float, unit: str) -> str:
    """A quantity for people."""
    return f"{n / GB:.2f} GB/s" if unit == "bytes/s" else f"{n:,.0f} {unit}"
