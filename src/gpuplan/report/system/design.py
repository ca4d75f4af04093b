"""A plan with everything around it as a sheet: nodes, money, energy, findings."""

from collections.abc import Iterator

from gpuplan.domain.money.carbon import CarbonAccount, ShiftPlan
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.designed import DesignedPlan, GroupDesign, OwnInstead, PoolCost
from gpuplan.report.document import Document, pick, pick_each, plain, result_sheet
from gpuplan.report.formats import plural
from gpuplan.report.system.facility import facility_document, facility_tables
from gpuplan.report.system.ownership import (
    ownership_document,
    ownership_tables,
    statement_document,
    statement_head,
    statement_tables,
)
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
from gpuplan.units import GB, KWH

MILLION = 1e6
TEAM_CENTS = ("used_cents", "idle_cents", "shared_cents", "total_cents")


def design_sheet(designed: DesignedPlan) -> Sheet:
    """The designed plan, ready to show."""
    money = designed.money
    n = sum(finding.severity == "error" for finding in designed.findings)
    head = statement_head(money.statement, npv_usd=money.npv_usd)
    head += f"; {plural(n, 'error')} in its surroundings" if n else ""
    tables = [*_tables(designed), *statement_tables(money.statement), *_money_tables(designed)]
    return result_sheet(_body(designed), tables, head=head, assumptions=designed.assumptions)


def _body(designed: DesignedPlan) -> Document:
    money = designed.money
    return {
        "name": designed.name,
        "ok": designed.is_ok,
        "groups": [_group(made) for made in designed.groups],
        "findings": finding_documents(gravest_first(designed.findings)),
        "statement": statement_document(money.statement, npv_usd=money.npv_usd),
        **pick(money, "plan_total_cents", "difference_cents"),
        "pools": [_pool(cost) for cost in money.pools],
        "teams": pick_each(money.teams, "team", *TEAM_CENTS),
        "own_instead": [_instead(found) for found in money.own_instead],
        "ways": [ownership_document(found) for found in money.rent_or_own],
        "bom": pick_each(
            designed.materials, "part", "name", "workload", "supply", "usd", n="n_units"
        ),
        "software": [
            {"workload": workload, **pick(one, "layer", "name", "version", "why")}
            for workload, stack in designed.software
            for one in stack
        ],
        "beside_the_bill": [{"what": what, "usd": plain(usd)} for what, usd in money.beside],
    }


def _group(made: GroupDesign) -> Document:
    return {
        **pick(made.group, "workload", "accelerator", "purchase", "paid_frac"),
        **pick(made.group, machine="server", n_machines="n_nodes", own="is_own"),
        **pick(made.group, "spot_usd_per_useful_node_h"),
        "accelerators_per_machine": made.group.n_accelerators_per_node,
        "host": host_documents(made.hosts),
        "storage": [tier_document(choice) for choice in made.storage],
        "checkpoints": pick_each(made.checkpoints, "write_bytes_per_s", "lost_frac"),
        "networks": [fabric_document(plan) for plan in made.networks],
        "facility": made.facility and facility_document(made.facility),
        "spares": made.spares and spare_document(made.spares),
        "staging": made.moved and moved_document(made.moved),
        "energy": made.carbon and _energy(made.carbon),
        "shift": made.shift and _shift(made.shift),
    }


def _energy(account: CarbonAccount) -> Document:
    return {
        "machines_kwh": account.energy.machines_j / KWH,
        "facility_kwh": account.energy.facility_j / KWH,
        "operational": pick_each(account.operational, "boundary", "method", kg="emitted_kg"),
        **pick(account, "embodied_kg", "water_kg"),
    }


def _shift(plan: ShiftPlan) -> Document:
    return {
        **pick(plan, "saved_frac", "meaning"),
        **pick(plan, kg_per_day_at_once="at_once_kg", kg_per_day_shifted="shifted_kg"),
        "w_by_hour": [float(power) for power in plan.power_w],
    }


def _pool(cost: PoolCost) -> Document:
    tokens = cost.tokens
    per_token = {part.kind: part.usd_per_token for part in tokens.parts} if tokens else None
    return {
        **pick(cost, "workload", "total_cents", "run_usd", j_per_token="energy_j_per_token"),
        "paid_accelerator_hours": cost.n_paid_accelerator_hours,
        "usd_per_paid_accelerator_h": cost.usd_per_paid_h,
        "usd_per_used_accelerator_h": cost.usd_per_used_h,
        "usd_per_m_tokens": per_token
        and {kind: None if usd is None else usd * MILLION for kind, usd in per_token.items()},
        "tokens_shared_out": tokens and tokens.rule_text,
        "bought_as_tokens": [{"from": name, "cents": total} for name, total in cost.services],
    }


def _instead(found: OwnInstead) -> Document:
    return {
        **pick(found, "own_usd_per_accelerator_h", "rent_usd_per_accelerator_h"),
        **pick(found, group="group.name", paid_frac="group.paid_frac"),
        **pick(found.best, "break_even_frac", n_best_owned="n_owned"),
        "usd_per_month_by_owned": list(found.best.usd_by_owned),
    }


# --- tables -------------------------------------------------------------------------------------


def _tables(designed: DesignedPlan) -> Iterator[Table]:
    groups = designed.groups
    yield findings_table(designed.findings)
    yield _materials(designed)
    yield _software(designed)
    yield from (hosts_table(made.group.name, made.hosts) for made in groups)
    yield _storage(designed)
    yield moves_table(made.moved for made in groups if made.moved is not None)
    yield _checkpoints(designed)
    yield networks_table(plan for made in groups for plan in made.networks)
    yield spares_table(made.spares for made in groups if made.spares is not None)
    for made in groups:
        if made.facility is not None:
            yield from facility_tables(made.facility)
    yield _carbon(designed)
    yield _shifts(designed)


def _materials(designed: DesignedPlan) -> Table:
    columns = {
        "part": lambda line: line.part,
        "name": lambda line: line.name,
        ">count": lambda line: f"{line.n_units:,}",
        "for": lambda line: line.workload,
        "supply": lambda line: line.supply,
        ">$ once": lambda line: "" if line.usd is None else usd_text(line.usd),
    }
    return table("Bill of materials", designed.materials, columns)


def _software(designed: DesignedPlan) -> Table:
    columns = {
        "for": lambda row: row[0],
        "layer": lambda row: row[1].layer,
        "name": lambda row: row[1].name,
        "version": lambda row: row[1].version,
        "why": lambda row: row[1].why,
    }
    rows = [(workload, one) for workload, stack in designed.software for one in stack]
    return table("Software", rows, columns)


def _shifts(designed: DesignedPlan) -> Table:
    found = [(made.group.name, made.shift) for made in designed.groups if made.shift is not None]
    columns = {
        "deferrable work": lambda row: row[0],
        ">kg CO2e/day at once": lambda row: f"{row[1].at_once_kg:,.1f}",
        ">shifted": lambda row: f"{row[1].shifted_kg:,.1f}",
        ">saved": lambda row: f"{row[1].saved_frac:.0%}",
        "hours": lambda row: _hours(row[1]),
    }
    return table("Carbon by hour: when to run deferrable work", found, columns)


def _hours(plan: ShiftPlan) -> str:
    return " ".join(str(hour) for hour, power in enumerate(plan.power_w) if power > 0)


def _checkpoints(designed: DesignedPlan) -> Table:
    found = [(made.group.name, rate) for made in designed.groups for rate in made.checkpoints]
    columns = {
        "for": lambda row: row[0],
        ">write (GB/s)": lambda row: f"{row[1].write_bytes_per_s / GB:g}",
        ">time lost": lambda row: f"{row[1].lost_frac:.1%}",
    }
    return table("Checkpoints", found, columns)


def _storage(designed: DesignedPlan) -> Table:
    found = [(made.group.name, choice) for made in designed.groups for choice in made.storage]
    columns = {
        "for": lambda row: row[0],
        "storage": lambda row: row[1].tier.name,
        ">units": lambda row: str(row[1].n_units),
        "decided by": lambda row: row[1].reason,
        ">$": lambda row: usd_text(row[1].usd),
    }
    return table("Storage that is fast enough", found, columns)


def _carbon(designed: DesignedPlan) -> Table:
    found = [(made.group.name, made.carbon) for made in designed.groups if made.carbon is not None]
    columns = {
        "for": lambda row: row[0],
        ">IT (kWh)": lambda row: f"{row[1].energy.machines_j / KWH:,.0f}",
        ">with cooling (kWh)": lambda row: f"{row[1].energy.facility_j / KWH:,.0f}",
        "operational (kg CO2e)": lambda row: _operational(row[1]),
        "embodied (kg CO2e)": lambda row: (
            f"{row[1].embodied_kg.low:,.0f}–{row[1].embodied_kg.high:,.0f}"
        ),
        "water (m³)": lambda row: (
            f"{row[1].water_kg.low / 1e3:,.1f}–{row[1].water_kg.high / 1e3:,.1f}"
        ),
    }
    return table("Energy and carbon over the span", found, columns)


def _operational(account: CarbonAccount) -> str:
    kg = [f"{f.emitted_kg:,.0f} ({f.boundary}, {f.method})" for f in account.operational]
    return "; ".join(kg) or "grid not known"


def _money_tables(designed: DesignedPlan) -> Iterator[Table]:
    money = designed.money
    units = {
        "pool": lambda c: c.workload,
        ">$": lambda c: _dollars(c.total_cents),
        ">$/paid GPU-h": lambda c: _figure(c.usd_per_paid_h),
        ">$/used GPU-h": lambda c: _figure(c.usd_per_used_h),
        ">$/run": lambda c: "none" if c.run_usd is None else f"{c.run_usd:,.0f}",
        "$/1M tokens": _per_million,
        "J/token": lambda c: _figure(c.energy_j_per_token),
    }
    services = {
        "pool": lambda row: row[0].workload,
        "from": lambda row: row[1],
        ">$": lambda row: _dollars(row[2]),
        ">this plan ($)": lambda row: _dollars(row[0].total_cents),
    }
    teams = {
        "team": lambda t: t.team,
        ">used ($)": lambda t: _dollars(t.used_cents),
        ">idle ($)": lambda t: _dollars(t.idle_cents),
        ">share of unassigned ($)": lambda t: _dollars(t.shared_cents),
        ">total ($)": lambda t: _dollars(t.total_cents),
    }
    spot = {
        "servers": lambda group: group.name,
        ">spot ($/node-h)": lambda group: _figure(group.price_usd_per_node_h),
        ">with interruptions ($/useful node-h)": lambda group: _figure(
            group.spot_usd_per_useful_node_h.mid
        ),
    }
    yield table("Unit costs", money.pools, units)
    yield table("Cost by team", money.teams, teams)
    groups = [made.group for made in designed.groups]
    on_spot = [group for group in groups if group.spot_usd_per_useful_node_h]
    yield table("Spot price with interruptions", on_spot, spot)
    yield table(
        "The same tokens bought from an API",
        [(cost, name, total) for cost in money.pools for name, total in cost.services],
        services,
    )
    yield _own_table(money.own_instead)
    yield from ownership_tables(money.rent_or_own)
    beside = {"what": lambda row: row[0], ">$": lambda row: usd_text(row[1])}
    title = "Beside the bill: not in it, or only as a share of the hardware"
    yield table(title, money.beside, beside)


def _per_million(cost: PoolCost) -> str:
    if cost.tokens is None:
        return "none"
    priced = [(part.kind, part.usd_per_token) for part in cost.tokens.parts]
    return "; ".join(f"{kind} {usd * MILLION:,.3f}" for kind, usd in priced if usd is not None)


def _dollars(cents: float) -> str:
    return f"{cents / 100:,.2f}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.2f}"


def _own_table(found: tuple[OwnInstead, ...]) -> Table:
    columns = {
        "rented": lambda f: f.group.name,
        ">rent ($/GPU-h)": lambda f: f"{f.rent_usd_per_accelerator_h:,.2f}",
        ">own ($/GPU-h)": lambda f: (
            f"{f.own_usd_per_accelerator_h.low:,.2f}–{f.own_usd_per_accelerator_h.high:,.2f}"
        ),
        ">break-even utilization": lambda f: f"{f.best.break_even_frac:.0%}",
        ">hours paid": lambda f: f"{f.group.paid_frac:.0%}",
        "cheapest": lambda f: f"own {f.best.n_owned} of {f.group.n_nodes}",
    }
    return table("Owning what is rented", found, columns)
