"""Training runs as fleets that are needed until they are done, in: SizedJobs; out: Sizings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.plan.answer import SloResult
from gpuplan.domain.plan.selection import FleetOption, Horizon, Selection, SelectionProblem
from gpuplan.domain.plan.sizing import (
    HourLoads,
    LoadPower,
    Periods,
    PoolUtilization,
    ReplicaNeed,
    Reserve,
    Sized,
    SizedJob,
    Sizing,
)
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.training.time import CheckpointWrites, FailureRate
from gpuplan.performance.training.goodput import goodput
from gpuplan.selection.choose import select
from gpuplan.selection.training import training_options
from gpuplan.studies.market.offers import Market, indexed
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.deferrable import interval_of, is_recurring
from gpuplan.studies.planning.options import pool_name
from gpuplan.studies.planning.priced import priced
from gpuplan.units import DAY, HOUR, HOURS_PER_WEEK, MONTH, WEEK

N_STARTS = 24  # between now and the last deadline, at which a run may begin
NO_RESERVE = Reserve(
    n_spare=0,
    domain="none",
    n_failures=0,
    why="a run restarts from its checkpoint",
    upgrade="",
)


def market_for_jobs(market: Market, before: Sequence[Choice] = ()) -> Market:
    """What a run or a job can be made on: rented nodes, and what is left of one's own."""
    left = [(each.rate, each.n_nodes - _n_existing(each.rate, before)) for each in market.standing]
    own = [
        replace(rate, purchase="on_demand", terms=replace(rate.terms, n_nodes_max=n))
        for rate, n in left
        if n > 0
    ]
    return indexed(market._replace(rates=(*own, *market.rates), standing=()))


def _n_existing(rate: NodeRate, before: Sequence[Choice]) -> int:
    """Nodes of one's own that services hold at their peak."""
    provisioned = [
        h for choice in before for h in choice.selection.provisioned if h.pool == pool_name(rate)
    ]
    there = [h.n_nodes[0] for h in provisioned if h.terms.startswith("existing")]
    return int(np.max(np.sum(there, axis=0))) if there else 0


def as_fleets(scenario: Scenario, sizings: Sequence[Sizing]) -> list[Sizing]:
    """Runs that begin together: each is needed in the blocks of time before its end.

    Runs of a schedule fill so much of every week of the horizon; growth of services is not theirs.
    """
    busy_s = {
        sizing.workload: [_busy_s(job, interval_of(scenario, sizing)) for job in sizing.jobs]
        for sizing in sizings
    }
    ends = sorted({each for found in busy_s.values() for each in found})
    if not ends:
        return list(sizings)
    periods = _one_period(ends[-1])
    if is_recurring(scenario, sizings):
        given = sizings[0].demand.periods
        periods = replace(given, load_ratio=floats(np.ones(given.load_ratio.shape)))
        ends = ends if ends[-1] >= WEEK else [*ends, WEEK]
    hours = _blocks(ends)
    return [
        replace(
            sizing,
            demand=replace(sizing.demand, hours=hours, periods=periods),
            sized=tuple(
                _sized(job, np.asarray(ends) <= each, periods)
                for job, each in zip(sizing.jobs, busy_s[sizing.workload], strict=True)
            ),
        )
        for sizing in sizings
    ]


def _blocks(ends: Sequence[float]) -> HourLoads:
    """The time between ends as hours of a week; falling, so that blocks keep their order."""
    widths = np.diff(np.concatenate([[0.0], ends]))
    return HourLoads(
        load_frac=floats(np.linspace(1.0, 0.5, len(ends))),
        hours_per_week=floats(widths / ends[-1] * HOURS_PER_WEEK),
    )


def _busy_s(job: SizedJob, interval_s: float | None) -> float:
    """Seconds until the run is done; of runs on a schedule, those of all runs of a week."""
    wall_s = job.wall_s.value
    return wall_s if interval_s is None else WEEK * min(1.0, wall_s / interval_s)


def _one_period(length_s: float) -> Periods:
    return Periods(
        scenarios=("mid",),
        start_s=floats([0.0]),
        length_s=floats([length_s]),
        load_ratio=floats([[1.0]]),
    )


def _sized(job: SizedJob, is_busy: NDArray[np.bool_], periods: Periods) -> Sized:
    n, power = job.n_replicas, job.power_w
    need = np.broadcast_to(np.where(is_busy, n, 0), (*periods.load_ratio.shape, len(is_busy)))
    each_w = power and power.scaled(1.0 / n)
    return Sized(
        candidate=job.candidate,
        method=job.method,
        need=ReplicaNeed(n_replicas=ints(need)),
        reserve=NO_RESERVE,
        capacity_per_s=None,
        limits=(),
        little=None,
        utilization=PoolUtilization(peak_frac=None, safe_frac=None, band=""),
        power=LoadPower(each_w) if each_w else None,
        cold_start_s=None,
        remarks=(*job.remarks, job_line(job)),
    )


def job_line(job: SizedJob) -> str:
    """How long the run takes, on how many accelerators."""
    hours = job.accelerator_s.value / HOUR
    amount = f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
    each, unit = (DAY, "days") if job.wall_s.value >= 2 * DAY else (HOUR, "hours")
    return (
        f"{amount} accelerator-hours of {job.candidate.accelerator}: {job.n_accelerators} of "
        f"them take {job.wall_s.value / each:.1f} {unit} ({job.wall_s.low / each:.1f} … "
        f"{job.wall_s.high / each:.1f}), {job.ideal_s / each:.1f} without interruptions"
    )


def length(wall_s: float) -> str:
    """Days of a run; hours where it is over within two."""
    return f"{wall_s / DAY:,.1f} days" if wall_s >= 2 * DAY else f"{wall_s / HOUR:.1f} hours"


def job_behind(sizings: Sequence[Sizing], option: FleetOption) -> SizedJob | None:
    """The run that an option stands for."""
    name = option.name.rsplit(" on ", 1)[0]
    jobs = (job for sizing in sizings if sizing.workload == option.workload for job in sizing.jobs)
    return next((job for job in jobs if job.candidate.name == name), None)


def training_work(scenario: Scenario, job: SizedJob) -> Training | None:
    """What the scenario says of the run; None where it is none."""
    workload = scenario.workload(job.candidate.workload)
    work = workload.work if workload else None
    return work if isinstance(work, Training) else None


def deadline_of(scenario: Scenario, workload: str) -> float | None:
    """Seconds from now until the run or job has to be done; None where nobody said."""
    found = scenario.workload(workload)
    return found.deadline_s if found else None


def deadline_result(scenario: Scenario, job: SizedJob) -> SloResult | None:
    """The deadline, and when the run ends; None where there is no deadline."""
    deadline_s = deadline_of(scenario, job.candidate.workload)
    if deadline_s is None:
        return None
    return SloResult(
        workload=job.candidate.workload,
        what="deadline",
        limit_s=deadline_s,
        reached_s=job.wall_s,
        is_kept=job.wall_s.value <= deadline_s * (1 + 1e-9),
    )


def staggered_lines(
    scenario: Scenario, problem: SelectionProblem, sizings: Sequence[Sizing]
) -> Iterator[str]:
    """When runs that cannot be made at once would fit one after the other, by their deadlines."""
    jobs = [(option, job_behind(sizings, option)) for option in problem.options]
    known = [(option, job) for option, job in jobs if job]
    found_s = [deadline_of(scenario, option.workload) for option, _ in known]
    ends = [end_s for end_s in found_s if end_s is not None]
    if len(problem.workloads) < 2 or len(ends) < len(jobs):
        return
    horizon = _even_horizon(problem.horizon, max(ends))
    starts = [
        started
        for (option, job), deadline_s in zip(known, ends, strict=True)
        for started in training_options(
            horizon,
            option,
            n_accelerators=int(option.need.max()),
            run_s=job.wall_s.value,
            deadline_s=deadline_s,
        )
    ]
    terms = tuple(given for given in problem.terms if not given.is_committed)
    later = replace(problem, horizon=horizon, options=tuple(starts), terms=terms)
    found = select(later) if later.workloads == problem.workloads else None
    if isinstance(found, Selection):
        after = {o.workload: float(np.argmax(o.need[0, :, 0] > 0)) for o in found.chosen}
        texts = [
            f"{name} starts after {n * horizon.period_s / DAY:.3g} days" if n else f"{name} at once"
            for name, n in sorted(after.items(), key=lambda item: item[1])
        ]
        yield f"the runs fit one after another: {', '.join(texts)}"


def _even_horizon(horizon: Horizon, end_s: float) -> Horizon:
    """Equal periods until the end, in which a run may begin; money is not discounted."""
    even = floats(np.ones(N_STARTS))
    return replace(
        horizon,
        hour_s=floats([end_s / N_STARTS]),
        upfront_discount_frac=even,
        running_discount_frac=even,
    )


class CheckpointCost(NamedTuple):
    """Checkpoints at one rate: what they and the work since the last one cost."""

    bytes_per_s: float
    lost_frac: float
    interval_s: float


def checkpoint_costs(scenario: Scenario, job: SizedJob) -> list[CheckpointCost]:
    """The low, middle and high write rate that was given; none where they are one or unknown."""
    work = training_work(scenario, job)
    if work is None or work.checkpoint is None or job.goodput is None:
        return []
    rate, mtbf = work.checkpoint.write_bytes_per_s, work.accelerator_mtbf_s
    if rate is None or mtbf is None or rate.is_exact:
        return []
    size = job.goodput.write_s * rate.mid
    fleet_mtbf = mtbf / job.n_accelerators
    failures = FailureRate(
        mtbf_s=fleet_mtbf, restart_s=(job.goodput.restart_frac or 0.0) * fleet_mtbf
    )
    rows = []
    for each in (rate.low, rate.mid, rate.high):
        found = goodput(failures, CheckpointWrites(size_bytes=size, write_bytes_per_s=each))
        lost = 1 - (found.goodput_frac or 0.0)
        rows.append(CheckpointCost(each, lost, found.interval_s or 0.0))
    return rows


class PricedRun(NamedTuple):
    """A run with the least that it costs, porting included; of a schedule, all of its runs."""

    job: SizedJob
    option: FleetOption
    usd: float
    once_usd: float
    usd_per_accelerator_h: float
    power_w: float | None = None  # most that its nodes draw at the wall; None: unknown
    n_runs: float = 1.0
    horizon_s: float | None = None  # of a schedule; None: it is one run

    @property
    def span_s(self) -> float:
        """What the bill is of: until the run ends, or the horizon of a schedule."""
        return self.job.wall_s.value if self.horizon_s is None else self.horizon_s

    @property
    def each_usd(self) -> float:
        """What one run costs; of a schedule, without what is paid once for all."""
        return self.usd if self.n_runs == 1.0 else (self.usd - self.once_usd) / self.n_runs


class ComparedRuns(NamedTuple):
    """The chosen run beside every other that could be paid for, cheapest first."""

    chosen: PricedRun
    others: list[PricedRun]

    def usd_per_month(self, run: PricedRun) -> float:
        """What a run costs over the months of the chosen one: the cheaper run costs less here."""
        return run.usd / max(1.0, self.chosen.span_s / MONTH)


def compared_runs(choice: Choice, sizings: Sequence[Sizing]) -> Iterator[ComparedRuns]:
    """For every chosen run: all that were sized for its workload, at their least price."""
    for option in choice.selection.chosen:
        job = job_behind(sizings, option)
        runs = sorted(_priced_runs(choice, sizings, option.workload), key=lambda run: run.usd)
        mine = [run for run in runs if run.job is job]
        if mine:
            others = [_billed(choice, run) for run in _best_of_kinds(runs, mine[0])]
            others.sort(key=lambda run: run.usd)
            yield ComparedRuns(_billed(choice, mine[0]._replace(option=option)), others)


def _billed(choice: Choice, run: PricedRun) -> PricedRun:
    """The run at the bill of a plan that is made for it alone: staff of a site of one's own too."""
    if choice.host:
        return run  # in idle hours of nodes that others pay for
    alone = choice._replace(selection=replace(choice.selection, chosen=()))
    found = priced(alone, run.option, has_limits=False)
    return run if found is None else run._replace(usd=found.usd)


def _best_of_kinds(runs: Sequence[PricedRun], chosen: PricedRun) -> list[PricedRun]:
    """The cheapest run on each accelerator in each precision that was not chosen."""
    best: dict[tuple[str, str], PricedRun] = {}
    for run in runs:
        best.setdefault(_kind(run), run)
    return [run for kind, run in best.items() if kind != _kind(chosen)]


def _kind(run: PricedRun) -> tuple[str, str]:
    return str(run.job.candidate.accelerator), run.job.candidate.precision


def _priced_runs(choice: Choice, sizings: Sequence[Sizing], workload: str) -> Iterator[PricedRun]:
    best: dict[str, PricedRun] = {}
    for option in choice.table.problem.options:
        job = job_behind(sizings, option) if option.workload == workload else None
        if job is None:
            continue
        run = _run(choice, option, job)
        known = best.get(job.candidate.name)
        if known is None or run.usd < known.usd:
            best[job.candidate.name] = run
    yield from best.values()


def _run(choice: Choice, option: FleetOption, job: SizedJob) -> PricedRun:
    terms = choice.table.problem.terms
    price = min(given.usd_per_node_h for given in terms if given.pool == option.pool)
    pool = choice.pool(option.pool)
    nodes, horizon = pool.nodes_for(int(option.need.max())), choice.table.problem.horizon
    paid_s = horizon.shape[1] * float(horizon.hour_s[option.need[0, 0] > 0].sum())
    wall_s = job.wall_s.value
    return PricedRun(
        job=job,
        option=option,
        usd=nodes * price * paid_s / HOUR + option.once_usd,
        once_usd=option.once_usd,
        usd_per_accelerator_h=price / pool.n_accelerators_per_node,
        power_w=nodes * pool.max_w or None,
        n_runs=paid_s / wall_s if choice.repeats else 1.0,
        horizon_s=choice.span_s if choice.repeats else None,
    )
