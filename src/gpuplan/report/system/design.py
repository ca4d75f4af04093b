"""A plan with everything around it as a sheet: machines, money, energy, objections."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.money.carbon import CarbonAccount, ShiftPlan
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.designed import DesignedPlan, GroupDesign, OwnInstead, PoolCost
from gpuplan.errors import InputError, one
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.report.system.fabric_svg import fabric_svg
from gpuplan.report.system.facility import (
    checklist_markdown,
    facility_document,
    facility_sheet,
    finding_document,
)
from gpuplan.report.system.ownership import ways_document, ways_tables
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
from gpuplan.report.system.rack_svg import rack_svg
from gpuplan.report.system.statement import statement_document, statement_sheet
from gpuplan.units import GB, KWH

MILLION = 1e6


def design_sheet(designed: DesignedPlan) -> Sheet:
    """The designed plan, ready to show."""
    money = designed.money
    bill = statement_sheet(money.statement, npv_usd=money.npv_usd)
    n = sum(finding.severity == "error" for finding in designed.findings)
    state = f"; {n} of its surroundings cannot be" if n else ""
    return Sheet(
        document=design_document(designed),
        tables=(*_tables(designed), *bill.tables, *_money_tables(designed)),
        head=f"{bill.head}{state}",
        remarks=(("Assumed:", assumption_lines(designed.assumptions)),),
    )


def design_document(designed: DesignedPlan) -> dict[str, Any]:
    """The designed plan for machines."""
    money = designed.money
    return {
        "schema_version": SCHEMA_VERSION,
        "name": designed.name,
        "ok": designed.is_ok,
        "groups": [_group(made) for made in designed.groups],
        "findings": [finding_document(f) for f in gravest_first(designed.findings)],
        "statement": statement_document(money.statement, npv_usd=money.npv_usd),
        "plan_total_cents": money.plan_total_cents,
        "difference_cents": money.difference_cents,
        "pools": [_pool(cost) for cost in money.pools],
        "own_instead": [_instead(found) for found in money.own_instead],
        "ways": [ways_document(found) for found in money.ways],
        "beside_the_bill": [
            {"what": what, "usd": range_document(usd)} for what, usd in money.beside
        ],
        "assumptions": assumptions_document(designed.assumptions),
    }


def _group(made: GroupDesign) -> dict[str, Any]:
    group = made.group
    return {
        "workload": group.workload,
        "machine": group.machine,
        "accelerator": group.accelerator,
        "purchase": group.purchase,
        "n_machines": group.n_nodes,
        "accelerators_per_machine": group.n_accelerators_per_node,
        "paid_frac": group.paid_frac,
        "own": group.is_own,
        "host": [host_document(line) for line in made.hosts],
        "storage": [tier_document(choice) for choice in made.storage],
        "checkpoints": [
            {"write_bytes_per_s": rate.write_bytes_per_s, "lost_frac": rate.lost_frac}
            for rate in made.checkpoints
        ],
        "networks": [fabric_document(plan) for plan in made.networks],
        "facility": None if made.facility is None else facility_document(made.facility),
        "spares": None if made.spares is None else spare_document(made.spares),
        "staging": None if made.moved is None else moved_document(made.moved),
        "energy": None if made.carbon is None else _energy(made.carbon),
        "shift": None if made.shift is None else _shift(made.shift),
    }


def _energy(account: CarbonAccount) -> dict[str, Any]:
    return {
        "machines_kwh": account.energy.machines_j / KWH,
        "facility_kwh": account.energy.facility_j / KWH,
        "operational": [
            {"boundary": found.boundary, "method": found.method, "kg": found.emitted_kg}
            for found in account.operational
        ],
        "embodied_kg": range_document(account.embodied_kg),
        "water_kg": range_document(account.water_kg),
    }


def _shift(plan: ShiftPlan) -> dict[str, Any]:
    return {
        "kg_per_day_at_once": plan.at_once_kg,
        "kg_per_day_shifted": plan.shifted_kg,
        "saved_frac": plan.saved_frac,
        "w_by_hour": [float(power) for power in plan.power_w[0]],
        "meaning": plan.meaning,
    }


def _pool(cost: PoolCost) -> dict[str, Any]:
    tokens = cost.tokens
    return {
        "workload": cost.workload,
        "total_cents": cost.total_cents,
        "paid_accelerator_hours": cost.n_paid_accelerator_hours,
        "usd_per_paid_accelerator_h": cost.usd_per_paid_h,
        "usd_per_used_accelerator_h": cost.usd_per_used_h,
        "usd_per_m_tokens": None
        if tokens is None
        else {
            part.kind: None if part.usd_per_token is None else part.usd_per_token * MILLION
            for part in tokens.parts
        },
        "tokens_shared_out": None if tokens is None else tokens.rule_text,
        "bought_as_tokens": [{"from": name, "cents": total} for name, total in cost.services],
        "run_usd": cost.run_usd,
        "j_per_token": cost.energy_j_per_token,
    }


def _instead(found: OwnInstead) -> dict[str, Any]:
    return {
        "group": found.group.name,
        "own_usd_per_accelerator_h": range_document(found.own_usd_per_accelerator_h),
        "rent_usd_per_accelerator_h": found.rent_usd_per_accelerator_h,
        "break_even_frac": found.best.break_even_frac,
        "paid_frac": found.group.paid_frac,
        "n_best_owned": found.best.n_owned,
        "usd_per_month_by_owned": list(found.best.usd_by_owned),
    }


# --- tables -------------------------------------------------------------------------------------


def _tables(designed: DesignedPlan) -> Iterator[Table]:
    if designed.findings:
        yield objections_table(designed.findings)
    for made in designed.groups:
        if made.hosts:
            yield hosts_table(made.group.name, made.hosts)
    if any(made.storage for made in designed.groups):
        yield _storage(designed)
    moves = [made.moved for made in designed.groups if made.moved is not None]
    if moves:
        yield moves_table(moves)
    if any(made.checkpoints for made in designed.groups):
        yield _checkpoints(designed)
    yield from _joined_and_placed(designed)


def _joined_and_placed(designed: DesignedPlan) -> Iterator[Table]:
    networks = [plan for made in designed.groups for plan in made.networks]
    if networks:
        yield networks_table(networks)
    spares = [made.spares for made in designed.groups if made.spares is not None]
    if spares:
        yield spares_table(spares)
    for made in designed.groups:
        if made.facility is not None:
            yield from (t for t in facility_sheet(made.facility).tables if t.title != "Objections")
    if any(made.carbon for made in designed.groups):
        yield _carbon(designed)
    if any(made.shift for made in designed.groups):
        yield _shifts(designed)


def _shifts(designed: DesignedPlan) -> Table:
    rows = tuple(
        (
            made.group.name,
            f"{made.shift.at_once_kg:,.1f}",
            f"{made.shift.shifted_kg:,.1f}",
            f"{made.shift.saved_frac:.0%}",
            " ".join(str(hour) for hour, power in enumerate(made.shift.power_w[0]) if power > 0),
        )
        for made in designed.groups
        if made.shift is not None
    )
    columns = ("work that may wait", "kg a day at once", "moved", "saved", "hours")
    title = "Carbon by hour: when to run what may wait"
    return Table(title=title, columns=columns, rows=rows, right=columns[1:4])


def _checkpoints(designed: DesignedPlan) -> Table:
    rows = tuple(
        (made.group.name, f"{rate.write_bytes_per_s / GB:g}", f"{rate.lost_frac:.1%}")
        for made in designed.groups
        for rate in made.checkpoints
    )
    columns = ("for", "write GB/s", "lost")
    return Table(title="Checkpoints", columns=columns, rows=rows, right=columns[1:])


def _storage(designed: DesignedPlan) -> Table:
    rows = tuple(
        (made.group.name, c.tier.name, str(c.n_units), c.reason, usd_text(c.usd))
        for made in designed.groups
        for c in made.storage
    )
    columns = ("for", "storage", "units", "decided by", "USD")
    return Table(title="Storage that would do", columns=columns, rows=rows, right=("units", "USD"))


def _carbon(designed: DesignedPlan) -> Table:
    rows = []
    for made in designed.groups:
        account = made.carbon
        if account is None:
            continue
        kg = "; ".join(
            f"{f.emitted_kg:,.0f} ({f.boundary}, {f.method})" for f in account.operational
        )
        part = account.embodied_kg
        rows.append(
            (
                made.group.name,
                f"{account.energy.machines_j / KWH:,.0f}",
                f"{account.energy.facility_j / KWH:,.0f}",
                kg or "its grid is not known",
                f"{part.low:,.0f}–{part.high:,.0f}",
                f"{account.water_kg.low / 1e3:,.1f}–{account.water_kg.high / 1e3:,.1f}",
            )
        )
    columns = ("of", "kWh", "kWh with cooling", "kg CO2e of power", "kg CO2e of making", "m³ water")
    return Table(
        title="Energy and carbon over the span",
        columns=columns,
        rows=tuple(rows),
        right=columns[1:3],
    )


def _money_tables(designed: DesignedPlan) -> Iterator[Table]:
    money = designed.money
    columns = (
        "pool",
        "USD",
        "per paid GPU-h",
        "per used GPU-h",
        "per run",
        "per 1M tokens",
        "J/token",
    )
    yield Table(
        title="What a unit costs",
        columns=columns,
        right=columns[1:5],
        rows=tuple(_unit_row(cost) for cost in money.pools),
    )
    if any(cost.services for cost in money.pools):
        yield _services(money.pools)
    if money.own_instead:
        yield _own_table(money.own_instead)
    yield from ways_tables(money.ways)
    if money.beside:
        rows = tuple((what, usd_text(usd)) for what, usd in money.beside)
        title = "Beside the bill: not in it, or only as a share of the hardware"
        yield Table(title=title, columns=("what", "USD"), rows=rows, right=("USD",))


def _services(pools: tuple[PoolCost, ...]) -> Table:
    rows = tuple(
        (cost.workload, name, f"{total / 100:,.2f}", f"{cost.total_cents / 100:,.2f}")
        for cost in pools
        for name, total in cost.services
    )
    columns = ("pool", "from", "USD", "this plan USD")
    return Table(title="The same tokens bought", columns=columns, rows=rows, right=columns[2:])


def _unit_row(cost: PoolCost) -> tuple[str, ...]:
    tokens = (
        "none"
        if cost.tokens is None
        else "; ".join(
            f"{part.kind} {part.usd_per_token * MILLION:,.3f}"
            for part in cost.tokens.parts
            if part.usd_per_token is not None
        )
    )
    return (
        cost.workload,
        f"{cost.total_cents / 100:,.2f}",
        _figure(cost.usd_per_paid_h),
        _figure(cost.usd_per_used_h),
        "none" if cost.run_usd is None else f"{cost.run_usd:,.0f}",
        tokens,
        _figure(cost.energy_j_per_token),
    )


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.2f}"


def _own_table(found: tuple[OwnInstead, ...]) -> Table:
    rows = tuple(
        (
            f.group.name,
            f"{f.rent_usd_per_accelerator_h:,.2f}",
            f"{f.own_usd_per_accelerator_h.low:,.2f}–{f.own_usd_per_accelerator_h.high:,.2f}",
            f"{f.best.break_even_frac:.0%}",
            f"{f.group.paid_frac:.0%}",
            f"own {f.best.n_owned} of {f.group.n_nodes}",
        )
        for f in found
    )
    columns = ("rented", "rent per GPU-h", "own per GPU-h", "own from", "paid", "cheapest")
    return Table(
        title="Buying what is rented; owned machines pay from this share of hours on",
        columns=columns,
        rows=rows,
        right=columns[1:5],
    )


# --- files --------------------------------------------------------------------------------------


def statement_csv(designed: DesignedPlan) -> str:
    """Every line of the bill, a column for each month, in dollars; month 0 is today."""
    statement = designed.money.statement
    months = range(statement.n_months + 1)
    rows = [["cause", "for", "price from", *(f"month {m}" for m in months), "all"]]
    rows += [
        [line.category, line.name, line.source, *_dollars(line.cents), *_dollars([sum(line.cents)])]
        for line in statement.lines
    ]
    sums = statement.cents_by_month
    rows.append(["all", "", "", *_dollars(sums), *_dollars([sum(sums)])])
    return "\n".join(",".join(_cell(cell) for cell in row) for row in rows) + "\n"


def _dollars(values: tuple[int, ...] | list[int]) -> list[str]:
    return [f"{cents / 100:.2f}" for cents in values]


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def design_fabric_svg(designed: DesignedPlan) -> str:
    """The compute network, else the first one that was designed."""
    plans = [plan for made in designed.groups for plan in made.networks]
    if not plans:
        what, fix = "no network was designed", "only machines of your own are joined by you"
        raise one(InputError, designed.name, "fabric", what, fix)
    return fabric_svg(next((p for p in plans if p.purpose.startswith("compute")), plans[0]))


def design_rack_svg(designed: DesignedPlan) -> str:
    """The racks of the first group that stands on the user's ground."""
    plans = [made.facility for made in designed.groups if made.facility is not None]
    known = [plan for plan in plans if plan.slots]
    if not known:
        fix = "describe site.rack, and machines that the catalog knows"
        raise one(InputError, designed.name, "racks", "no racks were designed", fix)
    return rack_svg(known[0])


def design_checklist(designed: DesignedPlan) -> str:
    """Boxes to tick before machines arrive."""
    if not designed.checklist:
        fix = "describe site.rack or site.power_kw"
        raise one(InputError, designed.name, "checklist", "no place was designed", fix)
    return checklist_markdown(designed.checklist, title=f"Before installation: {designed.name}")
