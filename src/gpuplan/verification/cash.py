"""Sums and their dates, in: a plan's document; out: checks that they make the totals and months."""

from collections.abc import Iterator

from gpuplan.domain.plan.certificate import Check
from gpuplan.units import MONTH
from gpuplan.verification.claims import CENT, ROUNDING, Document, at_least, at_most, equal

SAME_S = 1.0  # dates that differ by less are one


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
    ends = max(line["start_s"] + line["span_s"] for line in lines)
    yield at_most("cash flow: within the span", ends, plan["span_s"], "s", tolerance=ROUNDING)
    if plan.get("present_value_usd") and not _is_discounted(document):
        worth = plan["present_value_usd"]
        yield equal("cash flow: present value without a discount", worth, total, "USD")
    yield from _period_checks(plan)
    yield from _count_checks(plan)


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
    yield at_most("periods: accelerators held at most", most, sum(counts), "accelerators")
    is_alone = len(plan["by_period"]) > 0 and len(plan["pools"]) == 1
    least = max(counts, default=0) if is_alone else 0
    yield at_least("periods: accelerators held at least", most, least, "accelerators")
