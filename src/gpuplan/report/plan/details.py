"""Tables of a plan beyond its first screen: pools, replays, figures, growth, candidates."""

from collections.abc import Iterator

from gpuplan.domain.plan.answer import Answer, ChosenPlan, Replay
from gpuplan.domain.sheet import Table
from gpuplan.report.formats import kw, percent, span, usd
from gpuplan.report.plan.headline import is_cpu
from gpuplan.units import HOUR, KWH, MINUTE


def detail_tables(answer: Answer, *, n_most: int | None) -> Iterator[Table]:
    """Every table that a plan has beyond its first screen; long ones cut to so many rows."""
    if answer.plan is not None:
        yield _pool_table(answer.plan)
        yield _replay_table(answer.plan)
        yield _figure_table(answer, answer.plan)
    yield growth_table(answer)
    yield rejected_table(answer, n_most)


def _pool_table(plan: ChosenPlan) -> Table:
    rows = tuple(
        (
            pool.workload,
            pool.accelerator,
            str(pool.n_accelerators) if pool.n_accelerators or is_cpu(pool) else "fraction",
            str(pool.n_replicas),
            str(pool.n_spare_replicas),
            f"{pool.tp}/{pool.pp}",
            pool.precision,
            pool.source,
        )
        for pool in plan.pools
    )
    columns = (
        "workload",
        "accelerator",
        "count",
        "replicas",
        "spare",
        "TP/PP",
        "precision",
        "source",
    )
    return Table(title="Pools", columns=columns, rows=rows, right=columns[2:5])


def _replay_table(plan: ChosenPlan) -> Table:
    """Hours count from midnight, or from the first hour of the profile."""
    rows = tuple(
        (
            r.workload,
            f"{r.n_hours} h{_part(r)}, {r.n_requests:,} requests",
            f"{r.n_replicas_least}"
            + (f" … {r.n_replicas_most}" if r.n_replicas_most > r.n_replicas_least else ""),
            f"{100 * r.kept_frac:.2f} %",
            f"{r.worst_hour}: {100 * r.worst_kept_frac:.2f} %",
            percent(r.mean_use_frac),
            str(len(r.broken_hours)),
        )
        for r in plan.replays
    )
    columns = (
        "workload",
        "simulated",
        "replicas",
        "SLO attainment",
        "worst hour",
        "utilization",
        "h out of SLO",
    )
    return Table(title="Simulated hour by hour", columns=columns, rows=rows, right=columns[2:])


def _part(replay: Replay) -> str:
    """How much of each hour was run, where it was not all of it."""
    return "" if replay.run_s >= HOUR else f" of {replay.run_s / MINUTE:.3g} min"


def _figure_table(answer: Answer, plan: ChosenPlan) -> Table:
    rows = tuple(_figures(answer, plan))
    columns = ("quantity", "value")
    return Table(title="Figures", columns=columns, rows=rows, right=("value",))


def _figures(answer: Answer, plan: ChosenPlan) -> Iterator[tuple[str, str]]:
    yield "peak power at the plug", kw(plan.power_w.value)
    yield f"total cost over {span(plan.span_s)}", usd(plan.total_usd)
    if plan.once_usd:
        yield "of it up front", usd(plan.once_usd)
    if plan.energy_j_per_month:
        yield "energy of the nodes", f"{plan.energy_j_per_month / KWH:,.0f} kWh/month"
    if plan.carbon_kg_per_month is not None:
        yield "carbon, grid average", f"{plan.carbon_kg_per_month:,.0f} kg CO2e/month"
    for pool in plan.pools:
        if pool.use.peak_frac is not None:
            yield f"{pool.workload}: peak utilization", percent(pool.use.peak_frac)
        if pool.use.safe_frac is not None:
            yield f"{pool.workload}: safe utilization", percent(pool.use.safe_frac)
    if answer.proof is not None:
        yield "proven gap to the optimum", f"{100 * answer.proof.gap_frac:.2f} %"
    if answer.uncertainty is not None:
        share = percent(answer.uncertainty.kept_frac)
        yield "samples in which the plan is enough", share


def growth_table(answer: Answer) -> Table:
    """Counts and cost under low, middle and high growth; empty where nothing grows."""
    rows = tuple(
        (
            f"{row.workload}, {row.name}: {100 * row.per_month_frac:.3g} %/month",
            f"× {row.load_ratio:.2f}",
            f"{row.first_fleet} → {row.last_fleet}",
            usd(row.first_usd_per_month),
            usd(row.last_usd_per_month),
            usd(row.mean_usd_per_month),
        )
        for row in answer.explanation.growth
    )
    columns = ("growth", "final load", "fleet", "$/month first", "$/month last", "$/month mean")
    return Table(title="If demand grows", columns=columns, rows=rows, right=columns[3:])


def rejected_table(answer: Answer, n_most: int | None) -> Table:
    """Candidates that were rejected, each with its first failed constraint."""
    shown = answer.rejected[:n_most]
    rows = tuple(
        (r.candidate, r.constraint, r.reason, r.relaxation or "nothing known") for r in shown
    )
    rest = f"; {len(shown)} of {len(answer.rejected)}" if len(shown) < len(answer.rejected) else ""
    columns = ("candidate", "constraint", "why not", "what would help")
    return Table(title=f"Rejected candidates{rest}", columns=columns, rows=rows)
