"""Training runs as fleets that are needed until they are done, in: SizedJobs; out: Sizings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.plan.answer import SloResult, WhyNot
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.plan.sizing import (
    HourLoads,
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
from gpuplan.studies.market.offers import Market, indexed
from gpuplan.studies.planning.chosen import Choice
from gpuplan.units import DAY, GB, HOUR, HOURS_PER_WEEK

NO_RESERVE = Reserve(
    n_spare=0, domain="none", n_failures=0, n_replicas_per_domain=0,
    why="a run restarts from its checkpoint", upgrade="",
)  # fmt: skip


def market_for_runs(market: Market, catalog: Catalog) -> Market:
    """What a run can be made on: nodes of the usual size, and one's own by the hour.

    Ranks on rented machines of one card each would talk over a network that nobody described.
    """
    sizes = node_sizes(catalog)
    whole = [
        rate
        for rate in market.rates
        if rate.evidence.source == "user"
        or rate.node.n_accelerators >= sizes.get(rate.node.accelerator, 1)
    ]
    own = [replace(each.rate, purchase="on_demand") for each in market.standing]
    return indexed(market._replace(rates=(*own, *whole), standing=()))


def as_fleets(sizings: Sequence[Sizing]) -> list[Sizing]:
    """Runs that begin together: each is needed in the blocks of time before its end."""
    walls = sorted({job.wall_s.value for sizing in sizings for job in sizing.jobs})
    if not walls:
        return list(sizings)
    widths = np.diff(np.concatenate([[0.0], walls]))
    hours = HourLoads(
        # Falling, so that blocks keep their order in time.
        load_frac=floats(np.linspace(1.0, 0.5, len(walls))),
        hours_per_week=floats(widths / walls[-1] * HOURS_PER_WEEK),
    )
    periods = Periods(
        scenarios=("mid",),
        start_s=floats([0.0]),
        length_s=floats([walls[-1]]),
        load_ratio=floats([[1.0]]),
    )
    return [
        replace(
            sizing,
            demand=replace(sizing.demand, hours=hours, periods=periods),
            sized=tuple(_sized(job, walls) for job in sizing.jobs),
        )
        for sizing in sizings
    ]


def _sized(job: SizedJob, walls: Sequence[float]) -> Sized:
    n = [job.n_accelerators if end <= job.wall_s.value else 0 for end in walls]
    each_w = None
    if job.power_w is not None:
        power, count = job.power_w, job.n_accelerators
        each_w = replace(
            power, value=power.value / count, low=power.low / count, high=power.high / count
        )
    return Sized(
        candidate=job.candidate,
        method=job.method,
        need=ReplicaNeed(n_replicas=ints([[n]])),
        reserve=NO_RESERVE,
        capacity_per_s=None,
        n_slow_end=job.n_slow_end,
        limits=(),
        little=None,
        utilization=PoolUtilization(peak_frac=None, safe_frac=None, band=""),
        power_w=each_w,
        cold_start_s=None,
        remarks=(*job.remarks, job_line(job)),
    )


def job_line(job: SizedJob) -> str:
    """How long on how many."""
    hours = job.accelerator_s.value / HOUR
    amount = f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
    each, unit = (DAY, "days") if job.wall_s.value >= 2 * DAY else (HOUR, "hours")
    return (
        f"{amount} accelerator-hours of {job.candidate.accelerator}: {job.n_accelerators} of "
        f"them take {job.wall_s.value / each:.1f} {unit} ({job.wall_s.low / each:.1f} … "
        f"{job.wall_s.high / each:.1f}), {job.ideal_s / each:.1f} if nothing ever stopped"
    )


def job_behind(sizings: Sequence[Sizing], option: FleetOption) -> SizedJob | None:
    """The run that an option stands for."""
    name = option.name.rsplit(" on ", 1)[0]
    return next(
        (
            job
            for sizing in sizings
            if sizing.workload == option.workload
            for job in sizing.jobs
            if job.candidate.name == name
        ),
        None,
    )


def job_promise(scenario: Scenario, job: SizedJob) -> SloResult | None:
    """The deadline, and when the run ends."""
    workload = scenario.workload(job.candidate.workload)
    work = workload.work if workload else None
    if not isinstance(work, Training) or work.deadline_s is None:
        return None
    return SloResult(
        workload=job.candidate.workload,
        what="deadline",
        limit_s=work.deadline_s,
        reached_s=job.wall_s,
        is_kept=job.wall_s.value <= work.deadline_s * (1 + 1e-9),
    )


class Written(NamedTuple):
    """Checkpoints at one rate: what they and the work since the last one cost."""

    bytes_per_s: float
    lost_frac: float
    interval_s: float


def written_at(scenario: Scenario, job: SizedJob) -> list[Written]:
    """The low, middle and high rate that was given; none where they are one or unknown."""
    workload = scenario.workload(job.candidate.workload)
    work = workload.work if workload else None
    if not isinstance(work, Training) or work.checkpoint is None or job.goodput is None:
        return []
    rate, mtbf = work.checkpoint.write_bytes_per_s, work.accelerator_mtbf_s
    if rate is None or mtbf is None or rate.is_exact:
        return []
    size = job.goodput.write_s * rate.mid
    restart = (job.goodput.restart_frac or 0.0) * mtbf / job.n_accelerators
    rows = []
    for each in (rate.low, rate.mid, rate.high):
        found = goodput(
            FailureRate(mtbf_s=mtbf / job.n_accelerators, restart_s=restart),
            CheckpointWrites(size_bytes=size, write_bytes_per_s=each),
        )
        rows.append(Written(each, 1 - (found.goodput_frac or 0.0), found.interval_s or 0.0))
    return rows


def storage_lines(scenario: Scenario, job: SizedJob) -> Iterator[str]:
    """What writing checkpoints slower or faster costs: storage is bought for goodput."""
    lost = [
        f"{row.bytes_per_s / GB:g} GB/s lose {row.lost_frac:.1%} (every {row.interval_s / 60:.0f} "
        "min)"
        for row in written_at(scenario, job)
    ]
    if lost:
        yield f"{job.candidate.workload}: checkpoints written at " + ", ".join(lost)


def faster_storage(scenario: Scenario, job: SizedJob, usd: float) -> Iterator[str]:
    """What the highest rate that was given is worth over the middle one: pay less than that."""
    rows = written_at(scenario, job)
    if not rows:
        return
    now, best = rows[1], rows[2]
    saved = usd * (1 - (1 - now.lost_frac) / (1 - best.lost_frac))
    if saved > 0:
        yield (
            f"storage that writes {best.bytes_per_s / GB:g} GB/s, not {now.bytes_per_s / GB:g}, "
            f"shortens the run by {saved / usd:.1%}: worth ${saved:,.0f} of this run at most"
        )


def ideal_choice(job: SizedJob, *, deadline_s: float | None) -> Iterator[WhyNot]:
    """Accelerators by arithmetic alone, as if nothing ever stopped."""
    if deadline_s is None or job.goodput is None or job.goodput.goodput_frac is None:
        return
    n = -(-job.accelerator_s.value // deadline_s)
    late = job.accelerator_s.value / n / job.goodput.goodput_frac - deadline_s
    if n < job.n_accelerators and late > 0:
        yield WhyNot(
            question="divide the work by the deadline",
            fleet=f"{n:.0f} x {job.candidate.accelerator}",
            answer=f"ends {late / DAY:.1f} days late: stops and checkpoints take their share",
            extra_usd_per_month=None,
        )


class PricedRun(NamedTuple):
    """A run with the least that it costs, porting included."""

    job: SizedJob
    usd: float
    once_usd: float
    usd_per_accelerator_h: float


def priced_runs(choice: Choice, sizings: Sequence[Sizing], workload: str) -> Iterator[PricedRun]:
    """Every run of a workload that could be paid for, at its least price."""
    best: dict[str, PricedRun] = {}
    for option in choice.rows.problem.options:
        job = job_behind(sizings, option) if option.workload == workload else None
        if job is None:
            continue
        run = _run(choice, option, job)
        known = best.get(job.candidate.name)
        if known is None or run.usd < known.usd:
            best[job.candidate.name] = run
    yield from best.values()


def _run(choice: Choice, option: FleetOption, job: SizedJob) -> PricedRun:
    rates = [t for t in choice.rows.problem.terms if t.pool == option.pool]
    price = min(terms.usd_per_node_h for terms in rates)
    per_node = choice.pool(option.pool).n_accelerators_per_node
    nodes = -(-int(option.need.max()) // per_node)
    return PricedRun(
        job=job,
        usd=nodes * price * job.wall_s.value / HOUR + option.once_usd,
        once_usd=option.once_usd,
        usd_per_accelerator_h=price / per_node,
    )
