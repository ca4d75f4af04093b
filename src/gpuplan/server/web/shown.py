"""A plan's document made ready for a template: cells with the value to sort by, limits, reasons."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpuplan.report.formats import accelerator_name, chance, percent, span, usd
from gpuplan.units import DAY, KW, MINUTE, MS

Document = Mapping[str, Any]
PURCHASES = {
    "on_demand": "on demand",
    "reserved": "reserved",
    "spot": "spot",
    "capacity_block": "capacity block",
    "owned": "owned",
    "existing": "existing",
    "indicative price": "indicative",
}
FLEET = ("workload", "accelerator", "precision")  # what names a row
LAST = 1e300  # where there is no number, a row sorts last


class Cell(NamedTuple):
    """What a cell shows, and the number that it sorts by; None: by its text."""

    text: str
    sort: float | None = None


class Row(NamedTuple):
    """One accelerator, precision and purchase option."""

    workload: str
    status: str  # chosen, possible, not asked for, not in the plan (a price), rejected
    accelerator: str
    precision: str
    purchase: str
    where: str
    layout: str
    cells: tuple[Cell, ...]
    why: str  # notes, or why not and what would help
    over: tuple[str, ...]  # limits that it exceeds
    pin: str
    usd: float | None
    kw: float | None


class Limits(NamedTuple):
    """What the user set on the page; None: no limit."""

    usd_per_month: float | None
    power_kw: float | None


class Comparison(NamedTuple):
    """The table."""

    columns: tuple[str, ...]
    rows: list[Row]
    is_mixed: bool  # rows of several workloads


def comparison(
    document: Document, limits: Limits, purchases: Sequence[Document] = ()
) -> Comparison:
    """Every accelerator, precision and purchase option, the plan first."""
    rows = list(document.get("comparison") or ())
    is_run = bool(rows) and all(row.get("run") or not row.get("layout") for row in rows)
    names = [] if is_run else list(dict.fromkeys(name for row in rows for name in row["latency"]))
    first = ("GPUs", "days", "$ total", "MFU") if is_run else ("GPUs", "$/month", "$/M tokens")
    odds = "P(success)" if is_run else "P(SLO)"
    columns = (*first, *(_title(name) for name in names), odds, "kW")
    shown = [_row(row, names, limits, is_run=is_run) for row in rows]
    fleets = {tuple(row[key] for key in FLEET): row for row in rows if row.get("layout")}
    for other in purchases:
        row = fleets[tuple(other[key] for key in FLEET)]
        shown.append(_bought_otherwise(row, other, names, limits))
    mixed = len({row.workload for row in shown}) > 1
    return Comparison(columns, shown, mixed)


def _row(row: Document, names: Sequence[str], limits: Limits, *, is_run: bool) -> Row:
    source = (row.get("price_source") or "").split(" ", 1)
    usd_value, kw = row.get("usd_per_month"), _kw(row.get("power_w"))
    figures = _run_cells(row) if is_run else _service_cells(row, names)
    odds, n = row.get("probability_frac"), row.get("n_accelerators") or 0
    cells = (
        Cell(f"{n:,}" if n else "–", float(n) if n else LAST),
        *figures,
        Cell("–" if odds is None else chance(odds), -1.0 if odds is None else odds),
        Cell("–" if kw is None else f"{kw:,.1f}", LAST if kw is None else kw),
    )
    why = (row.get("note"), row.get("reason"), row.get("relaxation"))
    return Row(
        workload=row["workload"],
        status=_status(row),
        accelerator=accelerator_name(row["accelerator"]),
        precision=row["precision"].upper(),
        purchase=PURCHASES.get(source[0], source[0]),
        where=source[1] if len(source) > 1 else "",
        layout=_layout(row),
        cells=cells,
        why="; ".join(filter(None, why)),
        over=_over(usd_value, kw, limits),
        pin=f"{row['accelerator']},{row['precision']}",
        usd=usd_value,
        kw=kw,
    )


def _status(row: Document) -> str:
    if row["is_chosen"]:
        return "chosen"
    if not row.get("layout"):
        return "rejected"
    return "possible" if row.get("is_eligible") else "not asked for"


def _layout(row: Document) -> str:
    layout = row.get("layout")
    if not layout:
        return ""
    sizes = [f"{key.upper()}{layout[key]}" for key in ("tp", "pp", "dp", "ep", "cp")]
    spread = " ".join(name for name in sizes if not name.endswith("P1")) or "TP1"
    if layout.get("n_prefill"):
        spread = f"{layout['n_prefill']}P{layout['n_decode']}D {spread}"
    share = f" on {layout['share']}" if layout.get("share") else ""
    return f"{row['n_replicas']} × {spread}{share}"


def _service_cells(row: Document, names: Sequence[str]) -> list[Cell]:
    cost, tokens = row.get("usd_per_month"), row.get("usd_per_million_tokens")
    found = [
        Cell("–" if cost is None else usd(cost), LAST if cost is None else cost),
        Cell("–" if tokens is None else f"{tokens:,.2f}", LAST if tokens is None else tokens),
    ]
    for name in names:
        seconds = row["latency"].get(name)
        text = "–" if seconds is None else f"{seconds / MS:,.0f}"
        found.append(Cell(text, LAST if seconds is None else seconds))
    return found


def _run_cells(row: Document) -> list[Cell]:
    run = row.get("run")
    if not run:
        return [Cell("–", LAST)] * 3
    mfu = run.get("mfu_frac")
    days, total = run["wall_s"] / DAY, run["total_usd"]
    return [
        Cell(f"{days:,.3g}", days),
        Cell(usd(total), total),
        Cell("–" if mfu is None else percent(mfu), LAST if mfu is None else mfu),
    ]


def _bought_otherwise(row: Document, other: Document, names: Sequence[str], limits: Limits) -> Row:
    """The same fleet at another price: its speed and its draw stay."""
    share = other["usd_per_month"] / (row["usd_per_month"] or 1.0)
    tokens = row.get("usd_per_million_tokens")
    priced = {
        "usd_per_month": other["usd_per_month"],
        "usd_per_million_tokens": None if tokens is None else tokens * share,
        "is_chosen": False,
        "is_eligible": False,
        "note": other["note"],
    }
    found = _row({**row, **priced}, names, limits, is_run=False)
    purchase = PURCHASES.get(str(other["purchase"]), str(other["purchase"]))
    return found._replace(status="not in the plan", purchase=purchase, where=other["source"])


def _kw(power_w: float | None) -> float | None:
    return power_w / KW if power_w else None


def _over(cost: float | None, kw: float | None, limits: Limits) -> tuple[str, ...]:
    found = []
    if cost is not None and limits.usd_per_month is not None and cost > limits.usd_per_month:
        found.append(f"{usd(cost - limits.usd_per_month)}/month over budget")
    if kw is not None and limits.power_kw is not None and kw > limits.power_kw:
        found.append(f"{kw - limits.power_kw:,.1f} kW over the power limit")
    return tuple(found)


def _title(name: str) -> str:
    """ttft_p95_s as TTFT p95 (ms)."""
    first, *rest = name.removesuffix("_s").split("_")
    return f"{' '.join((first.upper(), *rest))} (ms)"


class Target(NamedTuple):
    """One SLO: what is predicted, and how much of its limit that uses."""

    name: str
    text: str
    used_frac: float
    is_met: bool


def targets(document: Document) -> list[Target]:
    """SLOs of the plan."""
    plan = document.get("plan") or {}
    found = []
    for slo in (plan.get("slo") or {}).get("promises", ()):
        reached = slo.get("reached_s")
        if reached is None:
            continue
        first, *rest = slo["what"].split(" ")
        name = " ".join((first.upper(), *rest)) if rest else first.capitalize()
        text = f"{_ms(reached['value'])} of {_ms(slo['limit_s'])}"
        used = reached["value"] / slo["limit_s"]
        found.append(Target(name, text, used, bool(slo["is_kept"])))
    return found


def _ms(seconds: float) -> str:
    if seconds >= 5 * MINUTE:
        return span(seconds)
    return f"{seconds / MS:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"


def figures(document: Document) -> list[tuple[str, str, str]]:
    """The plan in a few figures: name, figure, what stands beside it."""
    plan = document.get("plan")
    if not plan:
        return []
    cost, power = plan["cost_usd_per_month"], plan.get("power_w")
    pools = plan["pools"]
    n = sum(pool["n_accelerators"] for pool in pools)
    beside = "" if cost["low"] == cost["high"] else f"{usd(cost['low'])} … {usd(cost['high'])}"
    fleets = [_fleet(pool, len(pools)) for pool in pools]
    counts = [period["n_accelerators"] for period in plan.get("by_period") or ()]
    is_growing = bool(counts) and counts[0] != counts[-1]
    later = [f"{counts[-1]:,} at the end"] if is_growing else []
    found = [("Cost per month" + ", on average" * is_growing, usd(cost["value"]), beside)]
    found.append(("GPUs" + " now" * is_growing, f"{n:,}", ", ".join([*fleets, *later])))
    risk = document.get("risk")
    if risk:
        odds = risk["probability_frac"]
        found.append(("Probability of meeting all SLOs", chance(odds), ""))
    row = next((row for row in document.get("comparison") or () if row["is_chosen"]), None)
    tokens = row and row.get("usd_per_million_tokens")
    if tokens:
        found.append(("Per million output tokens", f"${tokens:,.2f}", "idle hours included"))
    if power:
        found.append(("Power at the peak", f"{power['value'] / KW:,.1f} kW", ""))
    return found


def _fleet(pool: Document, n_pools: int) -> str:
    """The accelerator of a pool, and how many where there are several pools."""
    name = accelerator_name(pool["accelerator"])
    return name if n_pools == 1 else f"{pool['n_accelerators']:,} × {name}"


def rejections(document: Document, n_most: int = 200) -> list[Document]:
    """Candidates that cannot run, those with a remedy first."""
    found = [row for row in document.get("rejected") or () if row["constraint"] != "policy"]
    return sorted(found, key=lambda row: not row.get("relaxation"))[:n_most]
