"""Sums of a plan, in: its document; out: checks that every part adds up to what is printed.

Sums and their dates, in: a plan's document; out: checks that they make the totals and months.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.domain.plan.certificate import Check
from gpuplan.units import HOURS_PER_MONTH, MONTH
from gpuplan.verification.claims import (
    CENT,
    ROUNDING,
    Document,
    at_least,
    at_most,
    equal,
    purchases_of,
    same_money,
)

SAME_S = 1.0  # dates that differ by less are one


ONCE = ("porting, once", "porting", "once", "staff")  # lines that no purchase stands behind


def money_checks(document: Document) -> Iterator[Check]:
    """Purchases, cost lines, totals, proof and every other price of the document."""
    plan = document["plan"]
    yield from _purchase_checks(document)
    cost = plan["cost_usd_per_month"]["value"]
    lines = sum(line["usd_per_month"] for line in plan["cost_lines"])
    yield same_money("bill: cost lines add up to the monthly cost", cost, lines)
    yield from _paid_checks(document)
    yield _total_check(document)
    yield from cash_checks(document)
    if not plan.get("cash_flow"):  # else what is got back is known, and outlays are judged by it
        yield at_least("bill: paid once", plan["total_usd"], plan["once_usd"], "USD")
    yield from _proof_checks(document)
    yield from _range_checks(document)
    yield from _other_prices(document)


def _total_check(document: Document) -> Check:
    """Months of the span make the total; a run of days is billed in its one month.

    Runs beside services end before them, so that their months make no more than the total.
    """
    plan, name = document["plan"], "bill: months of the span make the total"
    found = plan["cost_usd_per_month"]["value"] * max(1.0, plan["span_s"] / MONTH)
    works = document["provenance"]["scenario"].get("workloads") or ()
    ending = [work for work in works if _has_end(work)]
    if ending and len(ending) < len(works):
        return at_most(name, plan["total_usd"], found, "USD", tolerance=ROUNDING)
    return equal(name, plan["total_usd"], found, "USD")


def _has_end(work: Document) -> bool:
    """Whether it is a training run or job that is made once, by the scenario's own keys."""
    if work.get("schedule"):
        return False  # it starts again until the horizon ends
    heap = work.get("work") or {}
    is_batch = "docs" in (work.get("batch") or {})
    return "training" in work or is_batch or ("samples" in heap and "deadline_h" in heap)


def _purchase_checks(document: Document) -> Iterator[Check]:
    """Nodes times price times hours, of every purchase."""
    for place, line in enumerate(purchases_of(document)):
        name = f"purchase {place + 1}: nodes x price x hours ({line['offer']})"
        hours = line["n_nodes"] * line["paid_frac"] * HOURS_PER_MONTH
        found = hours * line["price_usd_per_node_h"]["value"]
        yield same_money(name, line["usd_per_month"], found)


def _paid_checks(document: Document) -> Iterator[Check]:
    """What the purchases cost is what the bill says, without what is paid for no node."""
    lines = document["plan"]["cost_lines"]
    bill = sum(line["usd_per_month"] for line in lines if line["what"] not in ONCE)
    paid = sum(line["usd_per_month"] for line in purchases_of(document))
    yield same_money("bill: purchases add up to the bill", bill, paid)


def _proof_checks(document: Document) -> Iterator[Check]:
    proof = document.get("proof")
    if proof is None:
        return
    yield at_most("proof: the bound is no dearer", proof["bound_usd"], proof["bill_usd"], "USD")
    if proof["objective"] == "cost" and proof["bill_usd"] > 0:
        # The bill is in whole cents, the bound is not.
        gap = 1.0 - (proof["bound_usd"] + CENT) / proof["bill_usd"] - ROUNDING
        yield at_least("proof: gap", proof["gap_frac"], max(0.0, gap), "")
    if "gap" in document:
        yield equal("proof: gap as printed", document["gap"], proof["gap_frac"], "")


def _range_checks(document: Document) -> Iterator[Check]:
    """Every range holds its own value."""
    for path, found in _estimates(document):
        yield at_most(f"range of {path}: low", found["low"], found["value"], "", tolerance=1e-9)
        yield at_most(f"range of {path}: high", found["value"], found["high"], "", tolerance=1e-9)


def _estimates(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        if {"value", "low", "high"} <= value.keys():
            yield path, value
        for key, item in value.items():
            if key != "scenario":
                yield from _estimates(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _estimates(item, f"{path}[{place}]")


def _other_prices(document: Document) -> Iterator[Check]:
    """Alternatives stand on the plan's own basis, to the cent."""
    cost = document["plan"]["cost_usd_per_month"]["value"]
    for place, row in enumerate(document.get("alternatives") or ()):
        named = f"alternative {place + 1} ({row['fleet']}): difference from the plan"
        yield same_money(named, row["extra_usd_per_month"], row["usd_per_month"] - cost)
    uncertain = document.get("uncertainty")
    if uncertain is not None:
        sampled = uncertain["cost_usd_per_month"]["value"]
        yield same_money("uncertainty: cost without changes", sampled, cost)


def cash_checks(document: Document) -> Iterator[Check]:
    """The cash flow makes the total, lies within the span, and makes the month of each period."""
    plan = document["plan"]
    lines, periods = plan.get("cash_flow") or (), plan.get("by_period") or ()
    if not lines or not periods:
        return  # a file of before sums had dates
    total = sum(line["usd"] for line in lines)
    yield equal("cash flow: sums make the total", plan["total_usd"], total, "USD")
    once = sum(line["usd"] for line in lines if not line["span_s"] and line["usd"] > 0)
    yield equal("cash flow: outlays are what is paid once", plan["once_usd"], once, "USD")
    yield from _order_checks(plan, once)
    ends = max(line["start_s"] + line["span_s"] for line in lines)
    yield at_most("cash flow: within the span", ends, plan["span_s"], "s", tolerance=ROUNDING)
    if plan.get("present_value_usd") and not _is_discounted(document):
        worth = plan["present_value_usd"]
        yield equal("cash flow: present value without a discount", worth, total, "USD")
    yield from _period_checks(plan)
    yield from _count_checks(plan)


def _order_checks(plan: Document, once: float) -> Iterator[Check]:
    """Orders are paid for in the cash flow, and are placed before they serve."""
    orders = plan.get("orders") or ()
    ported = sum(x["usd"] for x in plan["cash_flow"] if not x["span_s"] and x["what"] in ONCE)
    if orders:
        paid = sum(order["usd"] for order in orders)
        yield equal("orders: what is paid at once", paid, once - ported, "USD")
    for place, order in enumerate(orders):
        name = f"order {place + 1}: placed before it serves"
        yield at_most(name, order["order_s"], order["service_s"], "s")


def _is_discounted(document: Document) -> bool:
    budget = document["provenance"]["scenario"].get("budget") or {}
    return bool(budget.get("discount_rate_frac_per_year"))


def _period_checks(plan: Document) -> Iterator[Check]:
    """Running sums of a period, and its part of what is paid at once, by the month."""
    periods, works = plan["by_period"], _works(plan)
    lines = [line for line in plan["cash_flow"] if line["workload"] in works]
    months = sum(period["span_s"] for period in periods) / MONTH
    once = sum(line["usd"] for line in lines if not line["span_s"])
    for place, period in enumerate(periods):
        mine = [line for line in lines if line["span_s"] and _falls_in(line, period)]
        paid = sum(line["usd"] for line in mine) / max(1.0 / len(periods), period["span_s"] / MONTH)
        found = paid + once / max(1.0, months)
        slack = ROUNDING + CENT / abs(found) if found else 0.0
        name = f"period {place + 1}: its sums make its month"
        claimed = period["usd_per_month"]
        yield equal(name, claimed, found, "USD/month", tolerance=slack)


def _works(plan: Document) -> set[str]:
    """Workloads that the periods are of: those that are paid to their end, runs beside apart."""
    end = max(period["start_s"] + period["span_s"] for period in plan["by_period"])
    lines = [line for line in plan["cash_flow"] if line["span_s"]]
    last = {line["workload"] for line in lines if _same(line["start_s"] + line["span_s"], end)}
    return last or {line["workload"] for line in lines}


def _falls_in(line: Document, period: Document) -> bool:
    return all(_same(line[key], period[key]) for key in ("start_s", "span_s"))


def _same(first: float, second: float) -> bool:
    return abs(first - second) <= SAME_S + ROUNDING * abs(second)


def _count_checks(plan: Document) -> Iterator[Check]:
    """The largest period holds what is bought: no more than all, no less than any one purchase."""
    counts = [
        line["n_nodes"] * line["n_accelerators_per_node"]
        for pool in plan["pools"]
        if not str(pool["accelerator"]).startswith("cpu")
        for line in pool["purchases"]
    ]
    most = max(period["n_accelerators"] for period in plan["by_period"])
    yield at_most("periods: accelerators provisioned at most", most, sum(counts), "accelerators")
    is_alone = len(plan["by_period"]) > 0 and len(plan["pools"]) == 1
    least = max(counts, default=0) if is_alone else 0
    yield at_least("periods: accelerators provisioned at least", most, least, "accelerators")
