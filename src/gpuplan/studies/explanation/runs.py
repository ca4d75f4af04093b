"""Why this training run on these accelerators, in: every sized run and its price; out: reasons.

The comparison table of runs and one-off jobs, in: a solved group; out: a row per accelerator.
"""

from collections.abc import Iterator, Sequence
from math import log
from statistics import NormalDist

from gpuplan.domain.plan.answer import Alternative, Crossover, Explanation, WhyNot
from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.comparison import ComparisonRow, RowEvidence, RunFigures
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.explanation.rejected import nearest_first
from gpuplan.studies.explanation.rows import row_without_fleet
from gpuplan.studies.planning.chosen import pool_layout
from gpuplan.studies.planning.curves import log_sd_ratio
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.runs import (
    ComparedRuns,
    PricedRun,
    checkpoint_costs,
    compared_runs,
    deadline_of,
    job_line,
    length,
)
from gpuplan.units import DAY, GB, MINUTE, MONTH

N_ALTERNATIVES = 8
BINDING_FRAC = 0.8  # of the deadline: a run that takes less has time to spare


def run_reasons(scenario: Scenario, runs: ComparedRuns) -> Explanation:
    """Why this run: its cost, its deadline, other accelerators, and what would help."""
    job, name = runs.chosen.job, runs.chosen.job.candidate.workload
    deadline_s = deadline_of(scenario, name)
    binding: tuple[str, ...] = ()
    share = job.wall_s.value / deadline_s if deadline_s else 0.0
    if share > BINDING_FRAC:
        binding = (f"{name}: the deadline is binding: {share:.0%} of it is used",)
    return Explanation(
        why=(
            *(f"{name}: {remark}" for remark in (*job.remarks, job_line(job))),
            f"{name}: {_cost_text(runs.chosen)}",
            *_checkpoint_lines(scenario, job),
        ),
        why_not=tuple(_why_not(runs)),
        binding=binding,
        crossovers=tuple(_crossovers(runs)),
        next_spend=(*_surer(runs.chosen), *_faster_storage(scenario, runs.chosen)),
        naive=tuple(_without_interruptions(job, deadline_s)),
    )


def _cost_text(run: PricedRun) -> str:
    if run.n_runs == 1.0:
        return f"the run costs ${run.usd:,.0f}"
    n_months = run.span_s / MONTH
    return (
        f"each run costs ${run.each_usd:,.2f}; {run.n_runs / n_months:.3g} of them make a month of "
        f"${run.usd / n_months:,.0f}"
    )


def _checkpoint_lines(scenario: Scenario, job: SizedJob) -> Iterator[str]:
    """What writing checkpoints slower or faster costs: storage is bought for goodput."""
    lost = [
        f"{row.bytes_per_s / GB:g} GB/s lose {row.lost_frac:.1%} of time (one every "
        f"{row.interval_s / MINUTE:.0f} min)"
        for row in checkpoint_costs(scenario, job)
    ]
    if lost:
        yield f"{job.candidate.workload}: checkpoints written at " + ", ".join(lost)


def _faster_storage(scenario: Scenario, run: PricedRun) -> Iterator[str]:
    """What the highest rate that was given is worth over the middle one: pay less than that."""
    rows = checkpoint_costs(scenario, run.job)
    if not rows:
        return
    _, now, best = rows
    saved_frac = 1 - (1 - now.lost_frac) / (1 - best.lost_frac)
    if saved_frac > 0:
        yield (
            f"storage that writes {best.bytes_per_s / GB:g} instead of {now.bytes_per_s / GB:g} "
            f"GB/s shortens the run by {saved_frac:.1%}: worth at most "
            f"${run.usd * saved_frac:,.0f} of this run"
        )


def _without_interruptions(job: SizedJob, deadline_s: float | None) -> Iterator[WhyNot]:
    """Accelerators by arithmetic alone, as if nothing ever stopped."""
    if deadline_s is None or job.goodput is None or job.goodput.goodput_frac is None:
        return
    n = -(-job.accelerator_s.value // deadline_s)
    late = job.accelerator_s.value / n / job.goodput.goodput_frac - deadline_s
    if n < job.n_accelerators and late > 0:
        yield WhyNot(
            question="divide the work by the deadline",
            fleet=f"{n:.0f} x {job.candidate.accelerator}",
            answer=f"ends {late / DAY:.1f} days late: failures and checkpoints take time too",
            extra_usd_per_month=None,
        )


def _surer(run: PricedRun) -> Iterator[str]:
    """What it takes to meet the deadline even at the slow end of utilization and goodput."""
    more = (run.job.n_slow_end or 0) - run.job.n_accelerators
    if more > 0:
        usd_per_day = more * run.usd_per_accelerator_h * 24
        yield (
            f"{more} more accelerators (${usd_per_day:,.0f}/day) meet the deadline even at the "
            "slow end of what was given; otherwise the run ends earlier, so most of it is not lost"
        )


def _fleet(run: PricedRun) -> str:
    return f"{run.job.n_accelerators} x {run.job.candidate.accelerator}"


def _why_not(runs: ComparedRuns) -> Iterator[WhyNot]:
    for run in runs.others[:N_ALTERNATIVES]:
        port = f", ${run.once_usd:,.0f} of it porting" if run.once_usd else ""
        yield WhyNot(
            question=f"{run.job.candidate.accelerator}, for {run.job.candidate.workload}",
            fleet=_fleet(run),
            answer=f"${run.each_usd:,.0f} for the run{port}; {length(run.job.wall_s.value)}",
            extra_usd_per_month=runs.usd_per_month(run) - runs.usd_per_month(runs.chosen),
        )


def _crossovers(runs: ComparedRuns) -> Iterator[Crossover]:
    """The price at which another accelerator would be as cheap."""
    for run in runs.others[:3]:
        hours = (run.usd - run.once_usd) / run.usd_per_accelerator_h
        even = (runs.chosen.usd - run.once_usd) / hours
        if even > 0:
            yield Crossover(
                what=f"price of {run.job.candidate.accelerator}",
                at=f"${even:,.2f} per accelerator-hour (now ${run.usd_per_accelerator_h:,.2f})",
                then=f"it is as cheap as {runs.chosen.job.candidate.accelerator}",
            )


def run_alternatives(runs: ComparedRuns) -> Iterator[Alternative]:
    """The same run on other accelerators, cheapest first."""
    for place, run in enumerate(runs.others[:N_ALTERNATIVES]):
        yield Alternative(
            kind="next cheapest" if place == 0 else "another accelerator",
            fleet=_fleet(run),
            usd_per_month=runs.usd_per_month(run),
            extra_usd_per_month=runs.usd_per_month(run) - runs.usd_per_month(runs.chosen),
            power_w=run.power_w or 0.0,
            remark=f"${run.each_usd:,.0f} for the run of {length(run.job.wall_s.value)}",
        )


def run_rows(inputs: PlanInputs, groups: Sequence[SolvedGroup]) -> Iterator[ComparisonRow]:
    """Of every run the best layout on each accelerator, the chosen one first, then by its price."""
    for group in groups:
        if not group.choice.is_jobs:
            continue
        for compared in compared_runs(group.choice, group.sizings):
            name = compared.chosen.job.candidate.workload
            deadline_s = deadline_of(inputs.scenario, name)
            yield _row(compared.chosen, deadline_s, is_chosen=True)
            yield from (_row(run, deadline_s, is_chosen=False) for run in compared.others)
            sizing = next(each for each in group.sizings if each.workload == name)
            sold = {rate.node.accelerator for rate in inputs.market.ways}
            yield from _rejected(sizing, sold)


def in_time_frac(job: SizedJob, deadline_s: float | None) -> float | None:
    """How likely the run fits in memory and ends before its deadline, where it has one.

    None: a job without a deadline that does not train.
    """
    fits = job.training.fit_probability_frac if job.training else None
    if deadline_s is None:
        return fits
    late, sd = log(job.wall_s.value / deadline_s), log_sd_ratio(job.wall_s)
    in_time = float(late <= 0) if sd <= 0 else NormalDist().cdf(-late / sd)
    return in_time * (1.0 if fits is None else fits)


def _row(run: PricedRun, deadline_s: float | None, *, is_chosen: bool) -> ComparisonRow:
    job, candidate = run.job, run.job.candidate
    return ComparisonRow(
        workload=candidate.workload,
        accelerator=str(candidate.accelerator),
        precision=candidate.precision,
        layout=pool_layout(candidate, job.n_accelerators_per_node),
        n_replicas=1 if candidate.run else job.n_replicas,
        n_accelerators=job.n_accelerators,
        usd_per_month=run.usd / max(1.0, run.span_s / MONTH),
        usd_per_million_tokens=None,
        latency={},
        probability_frac=in_time_frac(job, deadline_s),
        is_chosen=is_chosen,
        evidence=RowEvidence(
            is_eligible=True,
            power_w=run.power_w,
            tier=job.wall_s.tier,
            price_source=f"{run.usd_per_accelerator_h:.2f} USD per accelerator-hour",
            run=RunFigures(
                wall_s=job.wall_s.value,
                total_usd=run.each_usd,
                mfu_frac=job.training.mfu_frac if job.training else None,
                fit_probability_frac=job.training.fit_probability_frac if job.training else None,
                is_past_knee=job.training is not None and job.training.is_past_knee,
                needs=job.training.needs if job.training else None,
            ),
        ),
    )


def _rejected(sizing: Sizing, sold: set[str]) -> Iterator[ComparisonRow]:
    """Accelerators that can be had and do not carry the run, each with the nearest reason."""
    observed = {str(job.candidate.accelerator) for job in sizing.jobs}
    found: dict[str, Rejection] = {}
    for each in nearest_first(sizing.rejected):
        card = str(each.candidate.accelerator)
        if card in sold and card not in observed and each.constraint != "policy":
            found.setdefault(card, each)
    for each in found.values():
        reason, relaxation = each.reason, each.relaxation
        yield row_without_fleet(sizing.workload, each.candidate, reason, relaxation)
