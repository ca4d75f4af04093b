"""Tables of a plan beyond its first screen: pools, replays, figures, growth, candidates."""

from collections.abc import Iterator

from gpuplan.domain.plan.answer import Answer, ChosenPlan, Replay
from gpuplan.domain.sheet import Table
from gpuplan.report.formats import kw, peak_kw, percent, span, usd
from gpuplan.report.plan.headline import is_cpu, layout_name
from gpuplan.report.table import pairs, table
from gpuplan.units import HOUR, KWH, MINUTE


def detail_tables(answer: Answer, *, n_most: int | None) -> Iterator[Table]:
    """Every table that a plan has beyond its first screen; long ones cut to so many rows."""
    if answer.plan is not None:
        yield _pool_table(answer.plan)
        yield _replay_table(answer.plan)
        yield pairs("Figures", _figures(answer, answer.plan))
    yield growth_table(answer)
    yield rejected_table(answer, n_most)


def _pool_table(plan: ChosenPlan) -> Table:
    columns = {
        "workload": lambda p: p.workload,
        "accelerator": lambda p: p.accelerator,
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
    yield "peak power at the plug", peak_kw(plan)
    yield f"total cost over {span(plan.span_s)}", usd(plan.total_usd)
    if plan.once_usd:
        yield "of it up front", usd(plan.once_usd)
    if plan.energy_j_per_month and plan.power_w:
        drawn = f"{plan.energy_j_per_month / KWH:,.0f} kWh/month"
        yield "energy of the nodes", f"{drawn}: {kw(plan.power_w.low)} on average at this load"
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
        "candidate": lambda r: r.candidate,
        "constraint": lambda r: r.constraint,
        "why not": lambda r: r.reason,
        "what would help": lambda r: r.relaxation or "nothing known",
    }
    shown, n_all = answer.rejected[:n_most], len(answer.rejected)
    rest = f"; {len(shown)} of {n_all}" if len(shown) < n_all else ""
    return table(f"Rejected candidates{rest}", shown, columns)
