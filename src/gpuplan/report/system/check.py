"""A checked system as a sheet: chain of bottlenecks, findings, what would balance it."""

from collections.abc import Callable, Iterator, Sequence

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.check import LoaderAdvice, Need, SystemCheck, WorkCheck, next_bottleneck
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import BalancedSystem, Bottleneck, CapacityPoint
from gpuplan.report.document import Document, pick, pick_each, plain, result_document, result_sheet
from gpuplan.report.formats import plural
from gpuplan.report.needs import amount, needs_table
from gpuplan.report.system.facility import facility_document, facility_tables
from gpuplan.report.system.parts import (
    fabric_document,
    finding_documents,
    findings_table,
    gravest_first,
    host_documents,
    hosts_table,
    moved_document,
    moves_table,
    networks_table,
    spare_document,
    spares_table,
    tier_document,
    usd_text,
)
from gpuplan.report.table import table
from gpuplan.units import GB, KW, KWH, MONTH, TB, YEAR


def check_sheet(checked: SystemCheck) -> Sheet:
    """The check, ready to show."""
    n_errors = sum(finding.severity == "error" for finding in checked.findings)
    state = "no errors" if checked.is_ok else plural(n_errors, "error")
    head = f"{checked.name}: {state}; accelerators can be utilized {_utilization(checked):.0%}"
    body = _body(checked)
    return result_sheet(body, _tables(checked), head=head, assumptions=checked.assumptions)


def check_document(checked: SystemCheck) -> Document:
    """The check for machines."""
    return result_document(_body(checked), assumptions=checked.assumptions)


def change_sheet(before: SystemCheck, after: SystemCheck) -> Sheet:
    """A system before and after a change: what is mended, what is new, what stays."""
    words = {True: "no errors", False: "errors"}
    states = f"{words[before.is_ok]} before, {words[after.is_ok]} after"
    shares = f"utilization {_utilization(before):.0%} before, {_utilization(after):.0%} after"
    columns = {
        "change": lambda row: row[0],
        "severity": lambda row: row[1].severity,
        "where": lambda row: row[1].where,
        "finding": lambda row: row[1].what,
        "fix": lambda row: row[1].fix if row[0] != "gone" else "",
    }
    return Sheet(
        document={
            "before": check_document(before),
            "after": check_document(after),
            "mended": finding_documents(_gone(before, after)),
            "new": finding_documents(_gone(after, before)),
        },
        tables=(table("What the change does", _compared(before, after), columns),),
        head=f"{after.name}: {states}; {shares}",
    )


def _utilization(checked: SystemCheck) -> float:
    return min((work.busy_frac for work in checked.works), default=1.0)


def _gone(first: SystemCheck, second: SystemCheck) -> list[Finding]:
    """Findings of the first that the second has not, by rule and place."""
    known = {(f.rule, f.where, f.what) for f in second.findings}
    return [f for f in gravest_first(first.findings) if (f.rule, f.where, f.what) not in known]


def _compared(before: SystemCheck, after: SystemCheck) -> Iterator[tuple[str, Finding]]:
    new = _gone(after, before)
    yield from (("gone", found) for found in _gone(before, after))
    yield from (("new", found) for found in new)
    yield from (("stays", found) for found in gravest_first(after.findings) if found not in new)


def _body(checked: SystemCheck) -> Document:
    around = checked.around
    return {
        "name": checked.name,
        "ok": checked.is_ok,
        "bottlenecks": [_bottleneck(b, work) for work in checked.works for b in work.bottlenecks],
        "findings": finding_documents(gravest_first(checked.findings)),
        "workloads": [_work(work) for work in checked.works],
        "balanced": [_balanced(one, checked.budget_usd) for one in checked.balanced],
        "budget_usd": checked.budget_usd,
        "fabrics": [fabric_document(plan) for plan in around.fabrics],
        "hosts": [
            {"machine": name, "parts": host_documents(lines)} for name, lines in around.hosts
        ],
        "spares": [spare_document(need) for need in around.spares],
        "facilities": [facility_document(plan) for plan in around.facilities],
        "energy": _energy(checked),
        "needs": [_need(one) for one in checked.needs],
        "balance": _balance_score(checked.needs),
    }


def _need(need: Need) -> Document:
    names = {"need": "name", "demand": "n_demand", "supply": "n_supply"}
    return pick(need, "what", "unit", "headroom_frac", **names)


def _balance_score(needs: tuple[Need, ...]) -> Document:
    """The smallest headroom, and whose it is."""
    tightest = next_bottleneck(needs)
    return {
        "score": tightest and tightest.headroom_frac,
        "next_bottleneck": tightest and tightest.name,
    }


def _energy(checked: SystemCheck) -> Document | None:
    """Of a year at the typical draw, cooling and losses included; the highest is for breakers."""
    around = checked.around
    if not around.facilities:
        return None
    used_j = sum(plan.level("facility").typical_w for plan in around.facilities) * YEAR
    price = around.electricity_usd_per_j
    usd = None if price is None else plain(price.times(used_j))
    return {"kwh_per_year": used_j / KWH, "usd_per_year": usd}


def _bottleneck(found: Bottleneck, work: WorkCheck) -> Document:
    stage = found.stage
    return {
        "workload": work.name,
        **pick(found, gpu_busy_frac="busy_frac", gpu_busy_after_frac="busy_after_frac"),
        **pick(found, gpu_idle_frac="idle_frac", gain="gain_ratio"),
        **pick(stage, "unit", "fix", stage="name", demand="n_wanted", supply="n_given"),
        "options": pick_each(stage.options, "what", gpu_busy_frac="busy_frac"),
    }


def _work(work: WorkCheck) -> Document:
    rates = {"reads_per_s": "operations_per_s", "opens_per_s": "open_operations_per_s"}
    written = ("write_bytes_per_s", "write_s", "interval_s", "lost_frac")
    return {
        **pick(work, "name", "accelerator", "n_accelerators", gpu_busy_frac="busy_frac"),
        "demand": work.demand and pick(work.demand, "samples_per_s", "bytes_per_s", **rates),
        "staging": work.moved and moved_document(work.moved),
        "storage": [tier_document(choice) for choice in work.storage],
        "checkpoints": pick_each(work.checkpoints, *written),
        "loader": work.loader and _loader(work.loader),
        "growth": [
            {"months": point.after_s / MONTH, "bytes": point.held_bytes, "parts": dict(point.parts)}
            for point in work.capacity
        ],
    }


def _loader(advice: LoaderAdvice) -> Document:
    names = {
        "workers_per_accelerator": "n_workers_per_accelerator",
        "prefetch_batches": "n_prefetch_batches",
    }
    return pick(advice, "pinned_bytes", **names)


def _loaders(works: Sequence[WorkCheck]) -> Table:
    columns = {
        "workload": lambda w: w.name,
        ">workers per GPU": lambda w: str(w.loader.n_workers_per_accelerator),
        ">batches to prefetch": lambda w: str(w.loader.n_prefetch_batches),
        ">pinned memory (GB)": lambda w: (
            "" if w.loader.pinned_bytes is None else f"{w.loader.pinned_bytes / GB:.1f}"
        ),
    }
    return table("Data loader", [w for w in works if w.loader is not None], columns)


def _capacity(work: WorkCheck) -> Table:
    """What storage holds over the horizon."""
    names = [name for name, _ in work.capacity[0].parts] if work.capacity else []

    def part(name: str) -> Callable[[CapacityPoint], str]:
        return lambda point: f"{dict(point.parts)[name] / TB:,.2f}"

    columns = {
        ">after (months)": lambda point: f"{point.after_s / MONTH:.0f}",
        **{f">{name} (TB)": part(name) for name in names},
        ">total (TB)": lambda point: f"{point.held_bytes / TB:,.1f}",
    }
    return table(f"Capacity that {work.name} needs over the horizon", work.capacity, columns)


def _balanced(one: BalancedSystem, budget_usd: float | None) -> Document:
    within = None if one.usd is None or budget_usd is None else one.usd.mid <= budget_usd
    return {
        **pick(one, "what", "n_accelerators", "usd", gpu_busy_frac="busy_frac"),
        **pick(one, speed_beside_described="speed_ratio", accelerators_at_work="n_at_work"),
        "within_budget": within,
        "parts": [{"part": name, "usd": plain(usd)} for name, usd in one.parts],
    }


# --- tables -------------------------------------------------------------------------------------


def _tables(checked: SystemCheck) -> Iterator[Table]:
    around = checked.around
    yield from (_chain(work) for work in checked.works)
    yield needs_table(checked.needs)
    yield findings_table(checked.findings)
    yield _balance(checked)
    yield _loaders(checked.works)
    yield moves_table(work.moved for work in checked.works if work.moved is not None)
    for work in checked.works:
        yield _storage(work)
        yield _capacity(work)
        yield _checkpoints(work)
    yield from (hosts_table(name, lines) for name, lines in around.hosts)
    yield networks_table(around.fabrics)
    yield spares_table(around.spares)
    yield _sites(checked)
    for plan in around.facilities:
        yield from facility_tables(plan)


def _chain(work: WorkCheck) -> Table:
    title = f"Bottlenecks of {work.name}, in the order in which they bind"
    if work.demand is not None:
        reads = amount(work.demand.operations_per_s, "reads/s")
        title += f"; it reads {amount(work.demand.bytes_per_s, 'bytes/s')}, {reads}"
    columns = {
        "": lambda row: str(row[0]),
        "stage": lambda row: row[1].stage.name,
        ">demand": lambda row: amount(row[1].stage.n_wanted, row[1].stage.unit),
        ">supply": lambda row: amount(row[1].stage.n_given, row[1].stage.unit),
        ">utilization": lambda row: f"{row[1].busy_frac:.0%}",
        ">then": lambda row: f"{row[1].busy_after_frac:.0%}",
        "fix": lambda row: row[1].stage.fix,
    }
    return table(title, enumerate(work.bottlenecks, 1), columns)


def _balance(checked: SystemCheck) -> Table:
    budget = checked.budget_usd
    money = "no price is known" if budget is None else f"at ${budget:,.0f}"
    columns = {
        "system": lambda one: one.what,
        ">busy accelerators": lambda one: f"{one.n_at_work:.1f}",
        ">$": lambda one: usd_text(one.usd),
        "parts ($)": lambda one: "; ".join(f"{name} {usd_text(usd)}" for name, usd in one.parts),
    }
    return table(f"Balanced alternatives, {money}", checked.balanced, columns)


def _storage(work: WorkCheck) -> Table:
    columns = {
        "storage": lambda c: c.tier.name,
        ">units": lambda c: str(c.n_units),
        "decided by": lambda c: c.reason,
        ">$": lambda c: usd_text(c.usd),
    }
    return table(f"Storage that would feed {work.name}", work.storage, columns)


def _checkpoints(work: WorkCheck) -> Table:
    columns = {
        ">write (GB/s)": lambda r: f"{r.write_bytes_per_s / GB:g}",
        ">write (s)": lambda r: f"{r.write_s:.0f}",
        ">interval (min)": lambda r: f"{r.interval_s / 60:.0f}",
        ">time lost": lambda r: f"{r.lost_frac:.1%}",
    }
    return table(f"Checkpoints of {work.name}", work.checkpoints, columns)


def _sites(checked: SystemCheck) -> Table:
    columns = {
        "node": lambda p: p.node.name,
        ">nodes": lambda p: str(p.n_nodes),
        ">racks": lambda p: str(p.n_racks),
        ">IT (kW)": lambda p: f"{p.level('machines').max_w / KW:.1f}",
        ">with cooling (kW)": lambda p: f"{p.level('facility').max_w / KW:.1f}",
        ">kBTU/h": lambda p: f"{p.cooling.btu_per_h / 1e3:,.0f}",
        ">cooling tons": lambda p: f"{p.cooling.tons:.1f}",
        ">MWh/year": lambda p: f"{p.level('facility').typical_w * YEAR / KWH / 1e3:,.0f}",
    }
    return table("Site", checked.around.facilities, columns)
