"""The comparison table of runs and one-off jobs, in: a solved group; out: a row per accelerator."""

from collections.abc import Iterator, Sequence
from math import log
from statistics import NormalDist

from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.comparison import ComparisonRow, RowEvidence, RunFigures
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.studies.explanation.rejected import nearest_first
from gpuplan.studies.explanation.rows import row_without_fleet
from gpuplan.studies.planning.chosen import pool_layout
from gpuplan.studies.planning.curves import log_sd_ratio
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.runs import PricedRun, compared_runs, deadline_of
from gpuplan.units import MONTH


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
        usd_per_month=run.usd / max(1.0, job.wall_s.value / MONTH),
        usd_per_million_tokens=None,
        latency={},
        probability_frac=in_time_frac(job, deadline_s),
        is_chosen=is_chosen,
        evidence=RowEvidence(
            is_eligible=True,
            power_w=job.power_w.value if job.power_w else None,
            tier=job.wall_s.tier,
            price_source=f"{run.usd_per_accelerator_h:.2f} USD per accelerator-hour",
            run=RunFigures(
                wall_s=job.wall_s.value,
                total_usd=run.usd,
                mfu_frac=job.training.mfu_frac if job.training else None,
                fit_probability_frac=job.training.fit_probability_frac if job.training else None,
            ),
        ),
    )


def _rejected(sizing: Sizing, sold: set[str]) -> Iterator[ComparisonRow]:
    """Accelerators that can be had and do not carry the run, each with the nearest reason."""
    seen = {str(job.candidate.accelerator) for job in sizing.jobs}
    found: dict[str, Rejection] = {}
    for each in nearest_first(sizing.rejected):
        card = str(each.candidate.accelerator)
        if card in sold and card not in seen and each.constraint != "policy":
            found.setdefault(card, each)
    for each in found.values():
        reason, relaxation = each.reason, each.relaxation
        yield row_without_fleet(sizing.workload, each.candidate, reason, relaxation)
