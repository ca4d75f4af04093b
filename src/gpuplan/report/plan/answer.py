"""A plan on one screen: the answer in a sentence, what it was compared with, SLOs, cost, why."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpuplan.domain.plan.answer import (
    Alternative,
    Answer,
    ChosenPlan,
    LimitUse,
    PlannedLoad,
    PurchaseLine,
    SloResult,
)
from gpuplan.domain.plan.bill import PlanCostLine
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import assumption_lines
from gpuplan.report.formats import percent, signed_usd, span, usd, usd_range
from gpuplan.report.needs import POWER
from gpuplan.report.plan.certificate import certificate_line
from gpuplan.report.plan.comparison import risk_basis, risk_lines, rows_tables
from gpuplan.report.plan.details import detail_tables
from gpuplan.report.plan.document import plan_document
from gpuplan.report.plan.headline import (
    PURCHASES,
    fleet_of,
    goals_of,
    headline,
    is_short,
    money_unit,
    purchase_option,
    slo_name,
    with_names,
)
from gpuplan.report.table import table
from gpuplan.units import HOURS_PER_MONTH, MS

N_REJECTED = 8  # rows where everything is asked for on a terminal
N_ALTERNATIVES, N_SLOS, N_PURCHASES = 3, 4, 3
N_LINES = 3  # of reasons and of assumptions
RUNNERS_UP = ("next cheapest", "another accelerator", "mixed fleet")
NAMES = {"commit": "committed-use discount"}
LATENCIES = ("ttft p95", "tpot p95")
# What moves the size of a fleet most, where no sensitivity says so: keys of the scenario in order.
ASKING = ("active_frac", "requests_per_user_per_h", "--active", "--requests-per-hour")
WEIGHTY = (
    "hourly_profile",
    "prefix_hit_frac",
    "distribution",
    "mfu_frac",
    "burstiness_cv",
    "peak_to_mean",
    "catalog update",
    "accelerator_mtbf_h",
    "survive",
)
NEXT = (
    "--verbose prints all; --out plan.yaml keeps it, "
    "then gpuplan explain or gpuplan report plan.yaml"
)


def plan_sheet(answer: Answer) -> Sheet:
    """One plan, ready to show: a screen of it, and everything else as details."""
    first = _rows_only(_first_tables(answer, is_short=True))
    everything = (*_first_tables(answer, is_short=False), *detail_tables(answer, n_most=None))
    return Sheet(
        document=plan_document(answer),
        head=headline(answer),
        tables=first,
        whole_tables=_rows_only(everything),
        remarks=(
            ("Why:", why_lines(answer)[:N_LINES]),
            ("Rent or buy:", tuple(_rent_or_buy(answer))),
            ("Odds:", tuple(risk_lines(answer))[:N_LINES]),
            ("Assumptions that matter most:", tuple(weightiest(answer))[:N_LINES]),
            ("More:", (NEXT,)),
        ),
        detail_tables=_rows_only(_details(answer)),
        detail_remarks=(
            ("Why, continued:", why_lines(answer)[N_LINES:]),
            ("What the odds rest on:", risk_basis(answer)),
            ("Safe utilization:", utilization_lines(answer)),
            ("Verified:", tuple(certificate_lines(answer))),
            ("Load:", tuple(f"{load.workload}: {x}" for load in answer.load for x in load.lines)),
            ("All assumptions:", assumption_lines(answer.assumptions)),
        ),
    )


def certificate_lines(answer: Answer) -> Iterator[str]:
    """What the proof certifies; nothing where nothing was proved."""
    if answer.proof is not None and answer.proof.certificate:
        yield certificate_line(answer.proof.certificate)


def _details(answer: Answer) -> Iterator[Table]:
    for each in rows_tables(answer, is_short=False):
        yield replace(each, title="Comparison in full")
    if answer.alternatives and answer.plan is not None:
        yield replace(_comparison_table(answer, answer.plan, None), title="Alternatives in full")
    yield from detail_tables(answer, n_most=N_REJECTED)


def _rows_only(tables: Iterable[Table]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def why_lines(answer: Answer) -> tuple[str, ...]:
    """What is owned and idle, what binds, then how the size and the choice came about."""
    why = answer.explanation.why
    idle = tuple(line for line in why if line.startswith("your ") and " stay idle" in line)
    lines = (*idle, *answer.explanation.binding, *(line for line in why if line not in idle))
    return tuple(map(with_names, lines))


def utilization_lines(answer: Answer) -> tuple[str, ...]:
    """How high utilization may be while SLOs hold, by pool."""
    pools = answer.plan.pools if answer.plan else ()
    return tuple(f"{pool.workload}: {pool.use.remark}" for pool in pools if pool.use.remark)


def weightiest(answer: Answer) -> Iterator[str]:
    """Assumptions by how far they move the cost, then by how far they usually move the size.

    How often users ask comes first where it is assumed: demand is proportional to it.
    """
    asking = [a for a in answer.assumptions if a.change.endswith(ASKING)]
    if asking:
        figures = "; ".join(f"{a.what[0].lower()}{a.what[1:]}: {a.value}" for a in asking)
        yield f"{figures} (change with {', '.join(a.change for a in asking)})"
    bars = answer.uncertainty.tornado if answer.uncertainty else ()
    for bar in sorted(bars, key=lambda b: -abs(b.high_usd_per_month - b.low_usd_per_month)):
        low, high = sorted((bar.low_usd_per_month, bar.high_usd_per_month))
        per = "" if is_short(answer.plan) else "/month"
        yield f"{bar.what} ({bar.span}): {usd(low)} … {usd(high)}{per}"
    ranked = [
        (rank, a) for rank, key in enumerate(WEIGHTY) for a in answer.assumptions if key in a.change
    ]
    for what in dict.fromkeys(a.what for _, a in ranked):
        found = next(a for _, a in ranked if a.what == what)
        yield f"{found.what}: {found.value} (change with {found.change})"


def _first_tables(answer: Answer, *, is_short: bool) -> Iterator[Table]:
    if answer.plan is None:
        yield _change_table(answer)
        yield _nearest_table(answer)
        return
    yield from rows_tables(answer, is_short=is_short)
    if not is_short or not answer.decision.comparison:
        yield _comparison_table(answer, answer.plan, N_ALTERNATIVES if is_short else None)
    yield _slo_table(answer.plan, N_SLOS if is_short else None)
    yield _cost_table(answer.plan, N_PURCHASES if is_short else None)


def _rent_or_buy(answer: Answer) -> Iterator[str]:
    """What the other way to pay would cost, where both are allowed."""
    for each in answer.alternatives:
        if each.kind in ("rented instead", "bought instead"):
            extra = signed_usd(each.extra_usd_per_month)
            price = f"at most {usd(each.usd_per_month)}/month ({extra})"
            yield f"{each.kind}: {price}, {with_names(each.fleet)}; policy.purchases plans it alone"


def _change_table(answer: Answer) -> Table:
    """Changes that help beyond the smallest, which the headline names."""
    others = answer.explanation.conflicts[2:]
    return table("Other changes that help", others, {"change": with_names})


def _nearest_table(answer: Answer) -> Table:
    columns = {
        "candidate": lambda r: with_names(r.candidate),
        "why not": lambda r: with_names(r.reason),
        "what would help": lambda r: with_names(r.relaxation),
    }
    return table(
        "Nearest candidates", [r for r in answer.rejected if r.relaxation][:N_LINES], columns
    )


def _comparison_table(answer: Answer, plan: ChosenPlan, n_most: int | None) -> Table:
    """The plan beside its alternatives, as the planner ranks them."""
    cost = usd(plan.cost_usd_per_month.value)
    rows = [("this plan", fleet_of(plan, answer.load), cost, "", _own_verdict(plan))]
    rows += [
        (
            NAMES.get(other.kind, other.kind),
            with_names(other.fleet),
            usd(other.usd_per_month),
            signed_usd(other.extra_usd_per_month),
            _remark(other, answer.load, is_short=n_most is not None),
        )
        for other in sorted(answer.alternatives, key=_rank)[:n_most]
    ]
    n_others = len(answer.alternatives)
    title = "Plan and alternatives"
    title += f"; {n_most} of {n_others}" if n_most and n_others > n_most else ""
    columns = ("option", "fleet", money_unit(plan), "difference", "verdict")
    return Table(title=title, columns=columns, rows=tuple(rows), right=columns[2:4])


def _rank(other: Alternative) -> int:
    """Other accelerators come before more replicas and other terms of the same ones."""
    return RUNNERS_UP.index(other.kind) if other.kind in RUNNERS_UP else len(RUNNERS_UP)


def _own_verdict(plan: ChosenPlan) -> str:
    """Whether SLOs are met, with the latencies behind it; the worst of all workloads."""
    if not plan.slo.promises:
        return "the one chosen; no SLO was simulated"
    reached = [(p.what, p.reached_s.value) for p in plan.slo.promises if p.reached_s]
    worst = {what: max(v for name, v in reached if name == what) for what, _ in reached}
    latencies = ", ".join(f"{slo_name(w)} {worst[w] / MS:,.0f} ms" for w in LATENCIES if w in worst)
    met = f"{goals_of(plan)} {'met' if plan.slo.is_kept else 'VIOLATED'}"
    return f"{met}: {latencies}" if latencies else met


def _remark(other: Alternative, loads: Iterable[PlannedLoad], *, is_short: bool) -> str:
    """The remark without the name of its workload, where short up to the first semicolon."""
    remark = other.remark
    for load in loads:
        remark = remark.removeprefix(f"{load.workload}: ").removeprefix(f"{load.workload}, ")
    remark = with_names(PURCHASES.get(remark, remark))
    return remark.partition(";")[0] if is_short else remark


def _slo_table(plan: ChosenPlan, n_most: int | None) -> Table:
    """SLOs, violated ones first, then the user's own limits."""
    ordered = sorted(plan.slo.promises, key=lambda target: target.is_kept)
    rows = [_slo_row(target) for target in ordered]
    rows += [
        ("", limit.name, limit.limit, _used_text(plan, limit), "", _met(limit.is_kept))
        for limit in sorted(plan.limits, key=lambda limit: limit.is_kept)
    ]
    rest = f"; {n_most} of {len(rows)}" if n_most and len(rows) > n_most else ""
    columns = ("workload", "SLO or limit", "target", "predicted", "80 % range", "verdict")
    title = f"SLOs and limits{rest}"
    return Table(title=title, columns=columns, rows=tuple(rows[:n_most]), right=columns[2:5])


def _used_text(plan: ChosenPlan, limit: LimitUse) -> str:
    """How much of a limit is used; the unit stands beside the target."""
    if limit.name == POWER and limit.used_frac == 0.0 and plan.pools:
        return "0 (all rented: no power of the site)"
    used = limit.used.partition("/")[0].removesuffix(" accelerators")
    return f"{used} ({percent(limit.used_frac)})"


def _slo_row(target: SloResult) -> tuple[str, ...]:
    reached = target.reached_s
    return (
        target.workload,
        slo_name(target.what),
        span(target.limit_s),
        "by given capacity" if reached is None else span(reached.value),
        "" if reached is None else f"{span(reached.low)} … {span(reached.high)}",
        _met(target.is_kept),
    )


def _met(is_kept: bool) -> str:
    return "met" if is_kept else "VIOLATED"


def _cost_table(plan: ChosenPlan, n_most: int | None) -> Table:
    """Purchases, the dearest first, and their total where there are several."""
    columns = {
        "purchase": purchase_option,
        "node": lambda line: line.offer,
        ">nodes": lambda line: str(line.n_nodes),
        ">GPUs": lambda line: str(line.n_accelerators_per_node),
        ">$/node-h": lambda line: f"{line.price_usd_per_node_h.value:,.2f}",
        ">hours paid": lambda line: _hours_paid(line, plan),
        ">$/month": lambda line: usd(line.usd_per_month),
        ">as of": lambda line: line.price_date or "given",
    }
    lines = [line for pool in plan.pools for line in pool.purchases]
    lines.sort(key=lambda line: -line.usd_per_month)
    per = "in total" if is_short(plan) else "per month"
    columns[f">{money_unit(plan)}"] = columns.pop(">$/month")
    columns[">as of"] = columns.pop(">as of")
    title = f"Cost: {usd_range(plan.cost_usd_per_month)} {per}"
    found = table(title, lines[:n_most], columns)
    others = [(line.what, *[""] * 5, usd(line.usd_per_month), "") for line in _unbought(plan)]
    if len(lines) + len(others) < 2:
        return found
    total = ("total", *[""] * 5, usd(plan.cost_usd_per_month.value), "")
    return replace(found, rows=(*found.rows, *others, total))


def _hours_paid(line: PurchaseLine, plan: ChosenPlan) -> str:
    """The share of all hours; of a plan that ends within a month the hours themselves."""
    if not is_short(plan):
        return percent(line.paid_frac)
    return f"{line.paid_frac * HOURS_PER_MONTH:,.3g} h"


def _unbought(plan: ChosenPlan) -> list[PlanCostLine]:
    """Lines of the bill that no purchase of nodes stands behind."""
    return [line for line in plan.cost_lines if line.what in ("staff", "porting")]
