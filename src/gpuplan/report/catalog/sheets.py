"""The catalog as lists and as single items with the source of every number."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.hardware.catalog import Catalog, Fact
from gpuplan.domain.model.network import Model
from gpuplan.domain.money.market import Offer, Region, UpdateReport
from gpuplan.domain.provenance import Assumption, Override
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.findings import Finding
from gpuplan.report.catalog.rows import (
    Row,
    fabric_words,
    mig_rows,
    model_rows,
    offer_rows,
    region_rows,
)
from gpuplan.report.document import pick, pick_each, result_sheet
from gpuplan.report.formats import count, params
from gpuplan.report.system.parts import ORDER, finding_documents
from gpuplan.report.table import table
from gpuplan.units import GFLOP, KWH

UNKNOWN = "–"
MOST_ROWS, MOST_MOVES = 60, 12
MOVED = ("cloud", "instance", "region", "old_usd_per_h", "new_usd_per_h")
# Keys stay whole in files; a terminal has a hundred columns.
HEADINGS = {
    row["column"]: row["heading"]
    for row in packaged_rows("gpuplan.report.catalog", "data/headings.csv")
}


# Columns that a terminal does without: the id says as much.
HIDDEN = {
    "accelerators": ("name", "status"),
    "sources": ("publisher", "licence"),
    "models": ("kind",),
}


def list_sheet(kind: str, rows: Sequence[Row], overrides: Sequence[Override] = ()) -> Sheet:
    """Rows of one kind; a long list is cut on a terminal, and says so."""
    columns = tuple(rows[0]) if rows else ()
    numbers = tuple(c for c in columns if rows and _is_number_column(c, rows))
    shown_columns = tuple(column for column in columns if column not in HIDDEN.get(kind, ()))
    shown = {_headed(c, numbers): _reader(c) for c in shown_columns}
    whole = {f">{c}" if c in numbers else c: _reader(c) for c in columns}
    n_left = len(rows) - MOST_ROWS
    more = (f"{n_left} more; narrow it down, or take all with -o csv",) if n_left > 0 else ()
    sheet = result_sheet(
        {"kind": kind, "rows": list(rows)},
        [table("", rows[:MOST_ROWS], shown)],
        remarks=[("Not shown:", more), ("Announced, in plans only by name:", _announced(rows))],
        overrides=overrides,
    )
    return replace(sheet, whole_tables=(table("", rows, whole),))


def _announced(rows: Sequence[Row]) -> tuple[str, ...]:
    """Items that nobody is known to sell yet."""
    found = [str(row["id"]) for row in rows if row.get("status") == "announced"]
    return (", ".join(found),) if found else ()


def _headed(column: str, numbers: Sequence[str]) -> str:
    return (">" if column in numbers else "") + HEADINGS.get(column, column)


def _reader(column: str) -> Callable[[Row], str]:
    return lambda row: _cell(row[column])


def _is_number_column(column: str, rows: Sequence[Row]) -> bool:
    return all(isinstance(row[column], int | float | None) for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def facts_sheet(item: str, catalog: Catalog, offers: Sequence[Offer]) -> Sheet:
    """One item: every fact with its source, superseded ones too, and where it is rented."""
    facts = catalog.facts_of(item)
    columns = {
        "quantity": lambda f: f.quantity,
        ">value": lambda f: f.value,
        "unit": lambda f: f.unit,
        "source": lambda f: f.source,
    }
    others = {**columns, "why not": lambda f: f.note}
    body = {
        "item": item,
        "facts": [_fact_document(fact, catalog) for fact in facts],
        "mig_profiles": [row for row in mig_rows(catalog) if row["accelerator"] == item],
        "offers": offer_rows(offers),
    }
    tables = [
        table(item, [fact for fact in facts if fact.preferred], columns),
        table("Other sources say", [fact for fact in facts if not fact.preferred], others),
        _offers_table(_cheapest(offers)),
    ]
    return result_sheet(body, tables, overrides=catalog.overrides)


def _fact_document(fact: Fact, catalog: Catalog) -> Row:
    source = catalog.sources.get(fact.source)
    return {
        **pick(fact, "quantity", "value", "unit", "preferred", "note", "source"),
        "source_title": source.title if source else "",
        "source_url": source.url if source else "",
        "source_kind": source.kind if source else "",
        "retrieved": source.retrieved if source else "",
    }


def _cheapest(offers: Sequence[Offer]) -> list[Offer]:
    """The cheapest whole-node offer of each cloud."""
    best: dict[str, Offer] = {}
    for offer in offers:
        known = best.get(offer.cloud)
        if known is None or _price(offer) < _price(known):
            best[offer.cloud] = offer
    return sorted(best.values(), key=_price)


def _price(offer: Offer) -> float:
    return offer.usd_per_accelerator_h or offer.usd_per_h


def _offers_table(offers: Sequence[Offer]) -> Table:
    columns = {
        "cloud": lambda o: o.cloud,
        "instance": lambda o: o.instance,
        "region": lambda o: o.region or UNKNOWN,
        ">on-demand": lambda o: f"{_price(o):,.2f}",
        ">spot": lambda o: (
            f"{o.spot_usd_per_h / o.n_accelerators:,.2f}" if o.spot_usd_per_h else UNKNOWN
        ),
        "fabric": fabric_words,
        "price as of": lambda o: o.price_date.isoformat(),
    }
    return table("Cheapest offer of each cloud, $/GPU-hour", offers, columns)


def region_sheet(region: Region, assumptions: Sequence[Assumption]) -> Sheet:
    """One region: what power costs and emits there, each figure with its meaning and source."""
    rows: list[tuple[str, str, str]] = []
    if region.pue_ratio is not None:
        rows.append(("PUE", f"{region.pue_ratio:.3f}", region.pue_source))
    if region.electricity:
        price = region.electricity
        rows.append((f"$/kWh, {price.basis}", f"{price.usd_per_j * KWH:.4f}", price.source))
    rows += [
        (f"gCO2/kWh, {c.boundary} {c.method} {c.year}", f"{c.kg_per_j * KWH * 1000:,.0f}", c.source)
        for c in region.carbon
    ]
    columns = ("quantity", "value", "source")
    title = f"{region.id}: {region.name}"
    figures = Table(title=title, columns=columns, rows=tuple(rows), right=("value",))
    return result_sheet(region_rows([region])[0], [figures], assumptions=assumptions)


def model_sheet(model: Model) -> Sheet:
    """One model: its figures and what its configuration left open."""
    context = count(model.max_context_tokens) if model.max_context_tokens else UNKNOWN
    forward = model.forward_flop_per_token(1024) / GFLOP
    training = model.training_flop_per_token(4096) / GFLOP
    rows = [
        ("kind", model.kind),
        ("architecture", model.architecture),
        ("parameters", params(model.n_params)),
        ("active parameters per token", params(model.n_active_params)),
        ("embedding tables", params(model.n_embedding_params)),
        ("layers", str(model.main.n_layers)),
        ("hidden size", str(model.main.hidden_size)),
        ("published precision", _published(model)),
        ("KV cache per token, 16-bit", f"{count(model.kv_bytes_per_token())} B"),
        ("state per sequence", f"{count(model.state_bytes_per_sequence())} B"),
        ("forward pass, 1k context", f"{forward:,.1f} GFLOP/token"),
        ("training, 4k sequence", f"{training:,.1f} GFLOP/token"),
        ("maximum context", context),
        ("source", model.source),
    ]
    body = {
        **model_rows([model])[0],
        "source": model.source,
        "assumptions": [f"{a.what}: {a.value}" for a in model.assumptions],
    }
    figures = Table(title=model.name, columns=("quantity", "value"), rows=tuple(rows))
    return result_sheet(
        body,
        [figures],
        remarks=[("Assumptions:", [f"{a.what}: {a.value} ({a.why})" for a in model.assumptions])],
    )


def _published(model: Model) -> str:
    stored = model.checkpoint
    if stored.quantized is None:
        return stored.base.name
    return f"{stored.quantized.name} ({', '.join(stored.parts)}), else {stored.base.name}"


def findings_sheet(
    findings: Sequence[Finding], checked: str, looked_at: Mapping[str, int] | None = None
) -> Sheet:
    """What the integrity rules object to, worst first, and how much each rule looked at.

    Notes are in the document only.
    """
    ranked = sorted(findings, key=lambda f: (ORDER[f.severity], f.rule, f.where))
    counts = {name: sum(f.severity == name for f in findings) for name in ORDER}
    columns = {
        "severity": lambda f: f.severity,
        "rule": lambda f: f.rule,
        "where": lambda f: f.where,
        "finding": lambda f: f.what,
        "fix": lambda f: f.fix,
    }
    body = {
        "ok": counts["error"] == 0,
        "counts": counts,
        "findings": finding_documents(ranked),
        "rules": [{"rule": name, "rows": n} for name, n in (looked_at or {}).items()],
    }
    summary = ", ".join(f"{n} {name}s" for name, n in counts.items())
    grave = [found for found in ranked if found.severity != "note"]
    tables = [table("", grave, columns)]
    if looked_at:
        tables.append(_rules_table(findings, looked_at))
    return result_sheet(body, tables, head=f"{checked}: {summary}")


def _rules_table(findings: Sequence[Finding], looked_at: Mapping[str, int]) -> Table:
    n_found = Counter(finding.rule for finding in findings)
    columns = {
        "rule": lambda rule: rule[0],
        ">rows looked at": lambda rule: f"{rule[1]:,}",
        ">findings": lambda rule: str(sum(n_found[name] for name in rule[0].split(", "))),
    }
    return table("Rules", list(looked_at.items()), columns)


def update_sheet(report: UpdateReport) -> Sheet:
    """What an update changed: one row for each cloud or model, and why it was left alone."""
    columns = {
        "what": lambda p: p.name,
        "state": lambda p: p.state,
        ">rows": lambda p: str(p.n_rows),
        ">dropped": lambda p: str(p.n_dropped),
        "detail": lambda p: p.detail,
    }
    body = {
        "fetched_on": report.fetched_on.isoformat(),
        "source": report.source,
        "parts": pick_each(report.parts, "name", "state", "n_rows", "n_dropped", "detail"),
        "moves": pick_each(report.moves, *MOVED, "change_frac"),
        "plans": pick_each(report.plans, "plan", "old_usd_per_month", "new_usd_per_month"),
    }
    n_good = sum(part.state in ("updated", "unchanged") for part in report.parts)
    head = f"{n_good} of {len(report.parts)} refreshed from {report.source}"
    tables = [table("", report.parts, columns), _moves_table(report), _plans_table(report)]
    return result_sheet(body, tables, head=head)


def _moves_table(report: UpdateReport) -> Table:
    moves = sorted(report.moves, key=lambda move: -abs(move.change_frac))
    left = f", {MOST_MOVES} of {len(moves)}" if len(moves) > MOST_MOVES else ""
    columns = {
        "cloud": lambda m: m.cloud,
        "instance": lambda m: m.instance,
        "region": lambda m: m.region,
        ">before $/h": lambda m: f"{m.old_usd_per_h:,.2f}",
        ">now $/h": lambda m: f"{m.new_usd_per_h:,.2f}",
        ">change": lambda m: f"{m.change_frac:+.0%}",
    }
    return table(f"Prices that moved{left}", moves[:MOST_MOVES], columns)


def _plans_table(report: UpdateReport) -> Table:
    columns = {
        "plan": lambda p: p.plan,
        ">as saved $/month": lambda p: f"{p.old_usd_per_month:,.0f}",
        ">at new prices $/month": lambda p: f"{p.new_usd_per_month:,.0f}",
        "": lambda p: "moves: plan again" if p.new_usd_per_month != p.old_usd_per_month else "",
    }
    return table("Saved plans", report.plans, columns)
