"""Tables of a plan beyond its first screen: pools, replays, figures, growth, candidates."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from gpuplan.domain.plan.answer import Answer, ChosenPlan, Replay
from gpuplan.domain.plan.comparison import CalendarRow
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.sheet import Table
from gpuplan.report.formats import accelerator_name, kw, peak_kw, percent, span, three, usd
from gpuplan.report.needs import needs_table, plan_needs
from gpuplan.report.plan.headline import is_cpu, is_short, layout_name, with_names
from gpuplan.report.table import pairs, table
from gpuplan.units import GB, HOUR, KWH, MINUTE, TFLOP

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
BLOCK_H = 3  # hours that a column of the calendar stands for


def detail_tables(answer: Answer, *, n_most: int | None) -> Iterator[Table]:
    """Every table that a plan has beyond its first screen; long ones cut to so many rows."""
    if answer.plan is not None:
        yield needs_table(plan_needs(answer))
        yield _pool_table(answer.plan)
        yield _replay_table(answer.plan)
        yield pairs("Figures", _figures(answer, answer.plan))
    yield trade_table(answer)
    yield calendar_table(answer)
    yield growth_table(answer)
    yield order_table(answer)
    yield rejected_table(answer, n_most)


def trade_table(answer: Answer) -> Table:
    """Specifications of each accelerator beside its work per dollar and joule."""
    columns = {
        "accelerator": lambda r: f"{accelerator_name(r.accelerator)} {r.precision}",
        ">memory (GB)": lambda r: f"{r.memory_bytes / GB:,.0f}",
        ">GB/s": lambda r: f"{r.memory_bytes_per_s / GB:,.0f}",
        ">TFLOP/s": lambda r: f"{r.peak_flop_per_s / TFLOP:,.0f}",
        ">work/s": lambda r: three(r.n_work_per_s),
        ">per $": lambda r: "–" if r.n_work_per_usd is None else three(r.n_work_per_usd),
        ">per J": lambda r: "–" if r.n_work_per_j is None else three(r.n_work_per_j),
    }
    rows = answer.decision.trade
    unit = " and ".join(dict.fromkeys(row.unit for row in rows))
    return table(f"Performance per $ and W of one accelerator within SLO: {unit}", rows, columns)


def calendar_table(answer: Answer) -> Table:
    """Accelerators by day and time; one row where all days are alike."""
    calendar = answer.decision.calendar
    shown = [line for row in calendar.rows for line in _days(row)]

    def at(start: int) -> Callable[[tuple[str, str, tuple[int, ...]]], str]:
        return lambda line: _span(line[2][start : start + BLOCK_H])

    columns: dict[str, Callable[[tuple[str, str, tuple[int, ...]]], str]] = {
        "workload": lambda line: line[0],
        "day": lambda line: line[1],
        **{f">{start:02d} h": at(start) for start in range(0, 24, BLOCK_H)},
    }
    remark = f"; {calendar.remark}" if calendar.remark else ""
    return table(f"Calendar: accelerators by the hour{remark}", shown, columns)


def _days(row: CalendarRow) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    days = [row.accelerators[24 * k : 24 * (k + 1)] for k in range(7)]
    if all(day == days[0] for day in days):
        yield row.workload, "every day", days[0]
        return
    for name, day in zip(DAYS, days, strict=True):
        yield row.workload, name, day


def _span(counts: tuple[int, ...]) -> str:
    least, most = min(counts), max(counts)
    return str(most) if least == most else f"{least}–{most}"


def _pool_table(plan: ChosenPlan) -> Table:
    columns = {
        "workload": lambda p: p.workload,
        "accelerator": lambda p: accelerator_name(p.accelerator),
        ">count": lambda p: str(p.n_accelerators) if p.n_accelerators or is_cpu(p) else "fraction",
        ">replicas": lambda p: str(p.n_replicas),
        ">spare": lambda p: str(p.n_spare_replicas),
        "layout": layout_name,
        "precision": lambda p: p.precision,
        "source": lambda p: p.source,
    }
    return table("Pools", plan.pools, columns)


def _replay_table(plan: ChosenPlan) -> Table:
    """Hours count from midnight, or from the first hour of the profile."""
    columns = {
        "workload": lambda r: r.workload,
        "simulated": lambda r: f"{r.n_hours} h{_part(r)}, {r.n_requests:,} requests",
        ">replicas": _replicas,
        ">SLO attainment": lambda r: f"{100 * r.kept_frac:.2f} %",
        ">worst hour": lambda r: f"{r.worst_hour}: {100 * r.worst_kept_frac:.2f} %",
        ">utilization": lambda r: percent(r.mean_use_frac),
        ">hours out of SLO": lambda r: str(len(r.broken_hours)),
    }
    return table("Simulated hour by hour", plan.replays, columns)


def _replicas(replay: Replay) -> str:
    least, most = replay.n_replicas_least, replay.n_replicas_most
    return str(least) if most <= least else f"{least} … {most}"


def _part(replay: Replay) -> str:
    """How much of each hour was run, where it was not all of it."""
    return "" if replay.run_s >= HOUR else f" of {replay.run_s / MINUTE:.3g} min"


def _figures(answer: Answer, plan: ChosenPlan) -> Iterator[tuple[str, str]]:
    per = "" if is_short(plan) else "/month"
    yield "peak power at the plug", peak_kw(plan)
    yield f"total cost over {span(plan.span_s)}", usd(plan.total_usd)
    if plan.once_usd:
        yield "of it up front", usd(plan.once_usd)
    if plan.energy_j_per_month and plan.power_w:
        drawn = f"{plan.energy_j_per_month / KWH:,.0f} kWh{per}"
        yield "energy of the nodes", f"{drawn}: {kw(plan.power_w.low)} on average at this load"
    if plan.carbon_kg_per_month is not None:
        yield "carbon, grid average", f"{plan.carbon_kg_per_month:,.0f} kg CO2e{per}"
    for pool in merged(plan.pools):
        if pool.use.peak_frac is not None:
            yield f"{pool.workload}: peak utilization", percent(pool.use.peak_frac)
        if pool.use.safe_frac is not None:
            yield f"{pool.workload}: safe utilization", percent(pool.use.safe_frac)
    if answer.proof is not None:
        yield "proven gap to the optimum", f"{100 * answer.proof.gap_frac:.2f} %"
    if answer.uncertainty is not None:
        share = percent(answer.uncertainty.kept_frac)
        yield "samples in which the plan is enough", share


def order_table(answer: Answer) -> Table:
    """What is bought or reserved, with the day of the order; empty where nothing is."""
    today = date.fromisoformat(answer.provenance.as_of)

    def day(seconds: float) -> str:
        return (today + timedelta(seconds=seconds)).isoformat()

    columns = {
        "order by": lambda order: day(order.order_s),
        "in service": lambda order: day(order.service_s),
        "purchase": lambda order: order.purchase,
        "node": lambda order: order.name,
        ">nodes": lambda order: str(order.n_nodes),
        ">GPUs": lambda order: str(order.n_accelerators),
        ">paid at once": lambda order: usd(order.usd),
    }
    return table("Orders by date", answer.plan.bill.orders if answer.plan else (), columns)


def growth_table(answer: Answer) -> Table:
    """Counts and cost under low, middle and high growth; empty where nothing grows."""
    columns = {
        "growth": lambda g: f"{g.workload}, {g.name}: {100 * g.per_month_frac:.3g} %/month",
        "final load": lambda g: f"× {g.load_ratio:.2f}",
        "fleet": lambda g: f"{g.first_fleet} → {g.last_fleet}",
        ">first ($/month)": lambda g: usd(g.first_usd_per_month),
        ">last ($/month)": lambda g: usd(g.last_usd_per_month),
        ">mean ($/month)": lambda g: usd(g.mean_usd_per_month),
    }
    return table("If demand grows", answer.explanation.growth, columns)


def rejected_table(answer: Answer, n_most: int | None) -> Table:
    """Candidates that were rejected, each with its first failed constraint."""
    columns = {
        "candidate": lambda r: with_names(r.candidate),
        "constraint": lambda r: r.constraint,
        "why not": lambda r: with_names(r.reason),
        "what would help": lambda r: with_names(r.relaxation) or "nothing known",
    }
    shown, n_all = answer.rejected[:n_most], len(answer.rejected)
    rest = f"; {len(shown)} of {n_all}" if len(shown) < n_all else ""
    return table(f"Rejected candidates{rest}", shown, columns)
