"""The catalog as lists and as single items with the source of every number."""

from collections.abc import Sequence

from gpuplan.domain.hardware.catalog import Catalog, Fact
from gpuplan.domain.model.network import Model
from gpuplan.domain.money.market import Offer, Region
from gpuplan.domain.provenance import Assumption, Override
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.findings import Finding
from gpuplan.report.catalog.rows import Row, mig_rows, model_rows, offer_rows, region_rows
from gpuplan.report.formats import count, params
from gpuplan.report.provenance import (
    SCHEMA_VERSION,
    assumption_lines,
    assumptions_document,
    override_lines,
    overrides_document,
)
from gpuplan.units import KWH

UNKNOWN = "–"
MOST_ROWS = 60
# Keys stay whole in files; a terminal has a hundred columns.
HEADINGS = {
    "visible_gib": "GiB visible",
    "tb_per_s": "TB/s",
    "bf16_tflop_per_s": "16-bit TF",
    "fp8_tflop_per_s": "fp8 TF",
    "link_gb_per_s": "link GB/s",
    "limit_w": "W",
    "accelerator": "device",
    "usd_per_h": "$/h",
    "usd_per_accel_h": "$/device-h",
    "spot_usd_per_h": "spot $/h",
    "price_date": "price of",
    "rack_units": "U",
    "limit_kw": "kW",
    "ram_gb": "RAM GB",
    "params_b": "params B",
    "active_b": "active B",
    "kv_bytes_per_token": "KV B",
    "context_tokens": "context",
    "usd_per_kwh": "$/kWh",
    "gco2_per_kwh": "gCO2/kWh",
    "carbon_is": "carbon is",
    "gbit_per_s": "Gbit/s",
    "read_gb_per_s": "read GB/s",
    "write_gb_per_s": "write GB/s",
    "usd_per_gb_month": "$/GB-month",
    "memory_gb": "GB",
    "compute_frac": "of compute",
}


# Columns that a terminal does without: the id says as much.
HIDDEN = {"accelerators": ("name",), "sources": ("publisher", "licence"), "models": ("kind",)}


def list_sheet(kind: str, rows: Sequence[Row], overrides: Sequence[Override] = ()) -> Sheet:
    """Rows of one kind; a long list is cut on a terminal, and says so."""
    columns = tuple(rows[0]) if rows else ()
    numbers = tuple(c for c in columns if rows and _is_number_column(c, rows))
    seen = tuple(column for column in columns if column not in HIDDEN.get(kind, ()))
    heads = tuple(HEADINGS.get(column, column) for column in seen)
    right = tuple(HEADINGS.get(column, column) for column in numbers)
    shown = [tuple(_cell(row[column]) for column in seen) for row in rows[:MOST_ROWS]]
    n_left = len(rows) - len(shown)
    more = (f"{n_left} more; narrow it down, or take all with -o csv",) if n_left else ()
    whole = [tuple(_cell(row[column]) for column in columns) for row in rows]
    return Sheet(
        document={
            "schema_version": SCHEMA_VERSION,
            "kind": kind,
            "rows": list(rows),
            "overrides": overrides_document(overrides),
        },
        tables=(Table(title="", columns=heads, rows=tuple(shown), right=right),),
        whole_tables=(Table(title="", columns=columns, rows=tuple(whole), right=numbers),),
        remarks=(("Not shown:", more), ("Overlay:", override_lines(overrides))),
    )


def _is_number_column(column: str, rows: Sequence[Row]) -> bool:
    return all(isinstance(row[column], int | float | None) for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def facts_sheet(item: str, catalog: Catalog, offers: Sequence[Offer]) -> Sheet:
    """One item: every fact with its source, the refused ones too, and where it is rented."""
    facts = catalog.facts_of(item)
    tables = [_facts_table(item, facts)]
    refused = [fact for fact in facts if not fact.preferred]
    if refused:
        tables.append(_refused_table(refused))
    cheapest = _cheapest(offers)
    if cheapest:
        tables.append(_offers_table(cheapest))
    document = {
        "schema_version": SCHEMA_VERSION,
        "item": item,
        "facts": [_fact_document(fact, catalog) for fact in facts],
        "mig_profiles": [row for row in mig_rows(catalog) if row["accelerator"] == item],
        "offers": offer_rows(offers),
        "overrides": overrides_document(catalog.overrides),
    }
    remarks = (("Overlay:", override_lines(catalog.overrides)),)
    return Sheet(document=document, tables=tuple(tables), remarks=remarks)


def _facts_table(item: str, facts: Sequence[Fact]) -> Table:
    rows = tuple(
        (fact.quantity, fact.value, fact.unit, fact.source) for fact in facts if fact.preferred
    )
    return Table(
        title=item, columns=("quantity", "value", "unit", "source"), rows=rows, right=("value",)
    )


def _refused_table(facts: Sequence[Fact]) -> Table:
    rows = tuple((f.quantity, f.value, f.unit, f.source, f.note) for f in facts)
    return Table(
        title="Other sources say, and why not",
        columns=("quantity", "value", "unit", "source", "why not"),
        rows=rows,
        right=("value",),
    )


def _fact_document(fact: Fact, catalog: Catalog) -> Row:
    source = catalog.sources.get(fact.source)
    return {
        "quantity": fact.quantity,
        "value": fact.value,
        "unit": fact.unit,
        "preferred": fact.preferred,
        "note": fact.note,
        "source": fact.source,
        "source_title": source.title if source else "",
        "source_url": source.url if source else "",
        "source_kind": source.kind if source else "",
        "retrieved": source.retrieved if source else "",
    }


def _cheapest(offers: Sequence[Offer]) -> list[Offer]:
    """The cheapest whole-machine offer of each cloud."""
    best: dict[str, Offer] = {}
    for offer in offers:
        known = best.get(offer.cloud)
        if known is None or _price(offer) < _price(known):
            best[offer.cloud] = offer
    return sorted(best.values(), key=_price)


def _price(offer: Offer) -> float:
    return offer.usd_per_accelerator_h or offer.usd_per_h


def _offers_table(offers: Sequence[Offer]) -> Table:
    rows = tuple(
        (
            o.cloud,
            o.instance,
            o.region or UNKNOWN,
            f"{_price(o):,.2f}",
            f"{o.spot_usd_per_h / o.n_accelerators:,.2f}" if o.spot_usd_per_h else UNKNOWN,
            o.price_date.isoformat(),
        )
        for o in offers
    )
    return Table(
        title="Cheapest of each cloud, USD per device and hour",
        columns=("cloud", "instance", "region", "on demand", "spot", "price of"),
        rows=rows,
        right=("on demand", "spot"),
    )


def region_sheet(region: Region, assumptions: Sequence[Assumption]) -> Sheet:
    """One place: what power costs and emits there, each figure with its meaning and source."""
    rows: list[tuple[str, str, str]] = []
    if region.pue_ratio is not None:
        rows.append(("PUE", f"{region.pue_ratio:.3f}", region.pue_source))
    if region.electricity:
        price = region.electricity
        rows.append((f"USD/kWh, {price.basis}", f"{price.usd_per_j * KWH:.4f}", price.source))
    rows += [
        (f"gCO2/kWh, {c.boundary} {c.method} {c.year}", f"{c.kg_per_j * KWH * 1000:,.0f}", c.source)
        for c in region.carbon
    ]
    document = {"schema_version": SCHEMA_VERSION, **region_rows([region])[0]}
    document["assumptions"] = assumptions_document(assumptions)
    title = f"{region.id}: {region.name}"
    table = Table(title=title, columns=("figure", "value", "source"), rows=tuple(rows))
    return Sheet(
        document=document, tables=(table,), remarks=(("Assumed:", assumption_lines(assumptions)),)
    )


def model_sheet(model: Model) -> Sheet:
    """One model: its figures and what its configuration left open."""
    rows: list[tuple[str, str]] = [
        ("kind", model.kind),
        ("architecture", model.architecture),
        ("parameters", params(model.n_params)),
        ("active for a token", params(model.n_active_params)),
        ("embedding tables", params(model.n_embedding_params)),
        ("layers", str(model.main.n_layers)),
        ("hidden size", str(model.main.hidden_size)),
        ("published in", _published(model)),
        ("cache per token, 16-bit", f"{count(model.kv_bytes_per_token())} B"),
        ("state per sequence", f"{count(model.state_bytes_per_sequence())} B"),
        (
            "forward arithmetic, 1k context",
            f"{model.forward_flop_per_token(1024) / 1e9:,.1f} GFLOP",
        ),
        (
            "training arithmetic, 4k",
            f"{model.training_flop_per_token(4096) / 1e9:,.1f} GFLOP a token",
        ),
        (
            "longest context",
            count(model.max_context_tokens) if model.max_context_tokens else UNKNOWN,
        ),
        ("source", model.source),
    ]
    document = {"schema_version": SCHEMA_VERSION, **model_rows([model])[0], "source": model.source}
    document["assumptions"] = [a.what + ": " + a.value for a in model.assumptions]
    table = Table(title=model.name, columns=("figure", "value"), rows=tuple(rows))
    remarks = (("Assumed:", tuple(f"{a.what}: {a.value} ({a.why})" for a in model.assumptions)),)
    return Sheet(document=document, tables=(table,), remarks=remarks)


def _published(model: Model) -> str:
    stored = model.checkpoint
    if stored.quantized is None:
        return stored.base.name
    return f"{stored.quantized.name} ({', '.join(stored.parts)}), else {stored.base.name}"


def findings_sheet(findings: Sequence[Finding], checked: str) -> Sheet:
    """What the integrity rules object to, worst first; a rule that repeats is counted."""
    order = {"error": 0, "warning": 1, "note": 2}
    ranked = sorted(findings, key=lambda f: (order[f.severity], f.rule, f.where))
    counts = {name: sum(f.severity == name for f in findings) for name in order}
    head = (
        f"{checked}: {counts['error']} errors, {counts['warning']} warnings, {counts['note']} notes"
    )
    rows = tuple(
        (f.severity, f.rule, f.where, f.what, f.fix) for f in ranked if f.severity != "note"
    )
    columns = ("severity", "rule", "where", "what", "fix")
    document = {
        "schema_version": SCHEMA_VERSION,
        "ok": counts["error"] == 0,
        "counts": counts,
        "findings": [
            {"severity": f.severity, "rule": f.rule, "where": f.where, "what": f.what, "fix": f.fix}
            for f in ranked
        ],
    }
    tables = (Table(title="", columns=columns, rows=rows),) if rows else ()
    return Sheet(document=document, tables=tables, head=head)
