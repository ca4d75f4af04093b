"""Why this run on these accelerators, in: every sized run and its price; out: reasons."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpuplan.domain.plan.answer import Alternative, Crossover, Explanation, WhyNot
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Training
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.jobs import (
    PricedRun,
    faster_storage,
    ideal_choice,
    job_behind,
    job_line,
    priced_runs,
    storage_lines,
)
from gpuplan.units import DAY, MONTH

N_ALTERNATIVES = 8


class ToldJob(NamedTuple):
    """Reasons for one run, and other ways to do it."""

    reasons: Explanation
    alternatives: tuple[Alternative, ...]


def told_jobs(scenario: Scenario, choice: Choice, sizings: Sequence[Sizing]) -> Iterator[ToldJob]:
    """Reasons for every run."""
    for option in choice.selection.chosen:
        job = job_behind(sizings, option)
        if job is not None:
            yield _told(scenario, choice, sizings, job=job)


def _told(
    scenario: Scenario, choice: Choice, sizings: Sequence[Sizing], *, job: SizedJob
) -> ToldJob:
    name = job.candidate.workload
    runs = sorted(priced_runs(choice, sizings, name), key=lambda run: run.usd)
    mine = next(run for run in runs if run.job is job)
    others = [run for run in runs if run.job is not job]
    workload = scenario.workload(name)
    work = workload.work if workload else None
    deadline_s = work.deadline_s if isinstance(work, Training) else None
    reasons = Explanation(
        why=(*(f"{name}: {remark}" for remark in _remarks(job)),
             f"{name}: the run costs ${mine.usd:,.0f}",
             *storage_lines(scenario, job)),
        why_not=tuple(_why_not(mine, others)),
        binding=() if deadline_s is None
        else (f"{name}: the deadline binds: {job.wall_s.value / deadline_s:.0%} of it is used",),
        crossovers=tuple(_crossovers(mine, others)),
        next_spend=(*_surer(job, mine), *faster_storage(scenario, job, mine.usd)),
        naive=tuple(ideal_choice(job, deadline_s=deadline_s)),
    )  # fmt: skip
    return ToldJob(reasons=reasons, alternatives=tuple(_alternatives(mine, others)))


def _surer(job: SizedJob, mine: PricedRun) -> Iterator[str]:
    """What it takes to end in time even at the slow end of utilization and goodput."""
    if job.n_slow_end is not None and job.n_slow_end > job.n_accelerators:
        more = job.n_slow_end - job.n_accelerators
        hourly = more * mine.usd_per_accelerator_h
        yield (
            f"{more} accelerators more (${hourly * 24:,.0f} a day) end in time even at the slow "
            "end of what was given; they end earlier otherwise, so most of it is not lost"
        )


def _remarks(job: SizedJob) -> tuple[str, ...]:
    return (*job.remarks, job_line(job))


def _why_not(mine: PricedRun, others: Sequence[PricedRun]) -> Iterator[WhyNot]:
    for run in others[:N_ALTERNATIVES]:
        port = f", ${run.once_usd:,.0f} of it porting" if run.once_usd else ""
        yield WhyNot(
            question=f"{run.job.candidate.accelerator}, for {run.job.candidate.workload}",
            fleet=f"{run.job.n_accelerators} x {run.job.candidate.accelerator}",
            answer=f"${run.usd:,.0f} for the run{port}; {run.job.wall_s.value / DAY:.1f} days",
            extra_usd_per_month=_monthly_usd(run) - _monthly_usd(mine),
        )


def _crossovers(mine: PricedRun, others: Sequence[PricedRun]) -> Iterator[Crossover]:
    """The price at which another accelerator would be as cheap."""
    for run in others[:3]:
        hours = (run.usd - run.once_usd) / run.usd_per_accelerator_h
        even = (mine.usd - run.once_usd) / hours
        if even > 0:
            yield Crossover(
                what=f"price of {run.job.candidate.accelerator}",
                at=f"${even:,.2f} an accelerator-hour (now ${run.usd_per_accelerator_h:,.2f})",
                then=f"it is as cheap as {mine.job.candidate.accelerator}",
            )


def _alternatives(mine: PricedRun, others: Sequence[PricedRun]) -> Iterator[Alternative]:
    for place, run in enumerate(others[:N_ALTERNATIVES]):
        yield Alternative(
            kind="next cheapest" if place == 0 else "another accelerator",
            fleet=f"{run.job.n_accelerators} x {run.job.candidate.accelerator}",
            usd_per_month=_monthly_usd(run),
            extra_usd_per_month=_monthly_usd(run) - _monthly_usd(mine),
            power_w=run.job.power_w.value if run.job.power_w else 0.0,
            remark=f"${run.usd:,.0f} for the run of {run.job.wall_s.value / DAY:.1f} days",
        )


def _monthly_usd(run: PricedRun) -> float:
    """What the run costs, by the months that it takes."""
    return run.usd / (run.job.wall_s.value / MONTH)
