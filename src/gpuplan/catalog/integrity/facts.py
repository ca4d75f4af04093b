"""Rules that every fact obeys: known quantity and unit, an existing source, a possible value."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date

from gpuplan.catalog.build import missing
from gpuplan.catalog.load import tables_of
from gpuplan.catalog.schema import QUANTITIES, UNITS, Kind, Quantity
from gpuplan.domain.hardware.catalog import Catalog, Fact
from gpuplan.domain.hardware.devices import ANNOUNCED, SALE_STATUSES
from gpuplan.domain.system.findings import Finding, error, warning

OLD_DAYS = 3 * 365
SOLD_YEARS = 4  # after so many since its launch, that a board is on sale is stated
SAME = 0.01  # below this two sources agree
_MONTH = re.compile(r"^\d{4}-(0[1-9]|1[0-2])$")


def unknown_quantity(catalog: Catalog) -> Iterator[Finding]:
    """A quantity that the item's kind does not have."""
    for fact, known in _facts_with_quantity(catalog):
        if known is None and fact.quantity != "kind":
            yield _error("unknown-quantity", fact, "no such quantity", "see schema.QUANTITIES")


def unknown_unit(catalog: Catalog) -> Iterator[Finding]:
    """A unit that cannot be converted, or of another dimension than the quantity."""
    for fact, known in _facts_with_quantity(catalog):
        if fact.unit not in UNITS:
            yield _error("unknown-unit", fact, f"unit {fact.unit!r}", "use a unit of the schema")
        elif known is not None and fact.unit != known.unit:
            yield _error("unknown-unit", fact, f"unit {fact.unit!r}", f"give it in {known.unit}")


def unknown_source(catalog: Catalog) -> Iterator[Finding]:
    """A fact whose source is not described."""
    for fact in _facts(catalog):
        if fact.source not in catalog.sources:
            yield _error("unknown-source", fact, f"source {fact.source!r}", "describe the source")


def impossible_value(catalog: Catalog) -> Iterator[Finding]:
    """A number that is no number, not positive, or outside what physics and markets allow."""
    for fact, known in _facts_with_quantity(catalog):
        if known is None or fact.unit not in UNITS:
            continue
        if known.is_text:
            if not fact.value.strip():
                yield _error("impossible-value", fact, "empty", "write the word")
        elif (value := _number(fact.value)) is None or not known.low <= value <= known.high:
            yield _error(
                "impossible-value",
                fact,
                f"{fact.value} {fact.unit}",
                f"a number from {known.low:g} to {known.high:g} {known.unit}",
            )


def impossible_month(catalog: Catalog, today: date) -> Iterator[Finding]:
    """A launch that is no month, or has not happened and is not called announced."""
    for accelerator in catalog.accelerators.values():
        month = accelerator.lifecycle.launched
        if accelerator.is_announced:
            continue
        if not _MONTH.match(month) or month > f"{today:%Y-%m}":
            yield error(
                "impossible-month",
                f"{accelerator.id}.launched",
                month,
                f"write YYYY-MM, not after today, or {ANNOUNCED}",
            )


def status_stated(catalog: Catalog, today: date) -> Iterator[Finding]:
    """A status that is no known one, or a board of years ago without any."""
    oldest = f"{today.year - SOLD_YEARS}-{today.month:02}"
    for accelerator in catalog.accelerators.values():
        stated, life = catalog.fact(accelerator.id, "status"), accelerator.lifecycle
        if life.status not in SALE_STATUSES:
            what, fix = life.status, f"one of {', '.join(SALE_STATUSES)}"
        elif stated is None and life.launched < oldest:
            what, fix = f"launched {life.launched}, no status", "say whether it is sold still"
        else:
            continue
        yield error("status-stated", f"{accelerator.id}.status", what, fix)


def doubled_fact(catalog: Catalog) -> Iterator[Finding]:
    """The same value from the same source twice."""
    observed = Counter((f.item, f.quantity, f.value, f.source, f.note) for f in _facts(catalog))
    for (item, quantity, value, source, _), n in observed.items():
        if n > 1:
            yield error(
                "doubled-fact",
                f"{item}.{quantity}",
                f"{value} from {source} stands {n} times",
                "keep one line",
            )


def not_one_preferred(catalog: Catalog) -> Iterator[Finding]:
    """A quantity with no preferred line, or with several."""
    preferred = Counter((f.item, f.quantity) for f in _facts(catalog) if f.preferred)
    for item, quantity in dict.fromkeys((f.item, f.quantity) for f in _facts(catalog)):
        if preferred[item, quantity] != 1:
            yield error(
                "not-one-preferred",
                f"{item}.{quantity}",
                f"{preferred[item, quantity]} preferred lines",
                "prefer exactly one",
            )


def reason_missing(catalog: Catalog) -> Iterator[Finding]:
    """A line that disagrees with the preferred one and does not say why it lost."""
    for fact in _facts(catalog):
        best = catalog.fact(fact.item, fact.quantity)
        if fact.preferred or fact.note or best is None:
            continue
        value, other = _number(fact.value), _number(best.value)
        if value is None or other is None or abs(value - other) > SAME * abs(other):
            yield _error("reason-missing", fact, "no note", "say why it is not preferred")


def incomplete_item(catalog: Catalog) -> Iterator[Finding]:
    """An item that lacks what planning needs."""
    kinds = tables_of(catalog).kinds
    for item, facts in catalog.facts.items():
        if item not in kinds:
            yield error("incomplete-item", item, "of no kind", "add a fact `kind`")
            continue
        for problem in missing(item, facts, kind=kinds[item]):
            yield error("incomplete-item", problem.where, problem.what, problem.fix)


def unsound_source(catalog: Catalog, today: date) -> Iterator[Finding]:
    """A source without title or with a date that cannot be; old ones need a look."""
    for source in catalog.sources.values():
        if source.kind == "user":
            continue
        where = f"sources.{source.key}"
        try:
            age_days = (today - date.fromisoformat(source.retrieved)).days
        except ValueError:
            age_days = -1
        if not source.title or age_days < 0:
            yield error(
                "unsound-source",
                where,
                f"title {source.title!r}, retrieved {source.retrieved!r}",
                "give a title and a past ISO date",
            )
        elif age_days > OLD_DAYS:
            yield warning(
                "unsound-source", where, f"retrieved {age_days} days ago", "look it up again"
            )


def _facts(catalog: Catalog) -> Iterator[Fact]:
    for facts in catalog.facts.values():
        yield from facts


def _facts_with_quantity(catalog: Catalog) -> Iterator[tuple[Fact, Quantity | None]]:
    kinds = tables_of(catalog).kinds
    for item, facts in catalog.facts.items():
        kind: Kind | None = kinds.get(item)
        for fact in facts:
            yield fact, QUANTITIES[kind].get(fact.quantity) if kind else None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def _error(rule: str, fact: Fact, what: str, fix: str) -> Finding:
    return error(rule, f"{fact.item}.{fact.quantity}", what, fix)


def price_order(catalog: Catalog) -> Iterator[Finding]:
    """Of what is sold, the lowest price is not above the highest, and both are given.

    Between the two lies a factor of three at most; more is two boards, or two decades.
    """
    for item in (*catalog.accelerators, *catalog.servers):
        low, high = catalog.fact(item, "price_low"), catalog.fact(item, "price_high")
        if (low is None) != (high is None):
            what = "one end of its price is given, not the other"
            yield error("price-order", str(item), what, "give both")
        elif low and high and not 0 <= float(high.value) - float(low.value) <= 2 * float(low.value):
            what = f"sold from {low.value} to {high.value} USD"
            yield error("price-order", str(item), what, "name the board, or prefer one")
