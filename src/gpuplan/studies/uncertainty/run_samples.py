"""A run when it is not as fast or as dear as assumed, in: every priced run; out: ranges, regret."""

from collections.abc import Sequence
from math import log

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import ChosenPlan, PriceScenario, RegretRow, TornadoBar, Uncertainty
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.ranges import exactly
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.jobs import PricedRun, job_behind, job_promise, priced_runs
from gpuplan.studies.uncertainty.samples import PRICE_MOVES, PRICE_RATIOS, Z_80, Draws, draws_of

N_ROWS = 6


def run_ranges(
    scenario: Scenario, parts: Sequence[tuple[Choice, Sequence[Sizing]]], request: PlanRequest,
    *, plan: ChosenPlan,
) -> Uncertainty | None:  # fmt: skip
    """Ranges of a run that stands alone; None where there are several, or no samples."""
    chosen = [(c, s, option) for c, s in parts for option in c.selection.chosen]
    if request.n_samples == 0 or len(chosen) != 1:
        return None
    [(choice, sizings, option)] = chosen
    job = job_behind(sizings, option)
    runs = sorted(priced_runs(choice, sizings, option.workload), key=lambda run: run.usd)
    if job is None or not any(run.job is job for run in runs):
        return None
    runs.sort(key=lambda run: run.job is not job)  # the chosen one first
    draws = draws_of(
        request.n_samples, request.seed, exactly(0.0), n_months=1.0,
        kinds=[str(run.job.candidate.accelerator) for run in runs],
    )  # fmt: skip
    promise = job_promise(scenario, job)
    return run_uncertainty(
        runs, draws, plan=plan, deadline_s=promise.limit_s if promise else None, seed=request.seed
    )


def run_uncertainty(
    runs: Sequence[PricedRun], draws: Draws, *, plan: ChosenPlan, deadline_s: float | None,
    seed: int,
) -> Uncertainty:  # fmt: skip
    """Every way to do the run over all samples of length and prices, the chosen one first."""
    base = plan.cost_usd_per_month.value
    scale = base / runs[0].usd  # a month of the plan, whatever time others take
    cost = np.array([sampled_usd(run, draws) for run in runs]) * scale
    p95 = np.percentile(cost - cost.min(axis=0), 95, axis=1)
    kept = [is_in_time(run.job, draws, deadline_s) for run in runs]
    rows = tuple(
        RegretRow(
            fleet=_name(runs[i].job),
            mean_usd_per_month=float(cost[i].mean()),
            p95_regret_usd_per_month=float(p95[i]),
            kept_frac=float(kept[i].mean()),
        )
        for i in np.argsort(cost.mean(axis=1), kind="stable")
    )
    low, high = (float(x) for x in np.percentile(cost[0], [10, 90]))
    return Uncertainty(
        n_samples=len(draws.speed),
        seed=seed,
        cost_usd_per_month=Estimate(
            value=base, low=min(low, base), high=max(high, base), tier="simulated"
        ),
        kept_frac=float(kept[0].mean()),
        least_regret=_name(runs[int(np.argmin(p95))].job),
        rows=rows[:N_ROWS],
        tornado=_tornado(runs[0], scale),
        prices=tuple(_moved(runs, name, ratio, scale) for name, ratio in PRICE_MOVES),
        inputs=("length of the run", "prices"),
    )


def sampled_usd(run: PricedRun, draws: Draws) -> Floats:
    """What the run costs in each sample; porting is paid once whatever happens."""
    price = draws.prices[str(run.job.candidate.accelerator)]
    return floats((run.usd - run.once_usd) * length_ratio(run.job, draws) * price + run.once_usd)


def length_ratio(job: SizedJob, draws: Draws) -> Floats:
    """Length over the one planned; the run's own range holds 80 %."""
    return floats(np.exp(-_log_sd(job) * draws.speed))


def is_in_time(job: SizedJob, draws: Draws, deadline_s: float | None) -> Floats:
    """1 where the deadline is met, or where there is none."""
    if deadline_s is None:
        return floats(np.ones(len(draws.speed)))
    wall_s = job.wall_s.value * length_ratio(job, draws)
    return floats((wall_s <= deadline_s * (1 + 1e-9)).astype(np.float64))


def _log_sd(job: SizedJob) -> float:
    wall = job.wall_s
    return log(wall.high / wall.low) / (2 * Z_80) if wall.low > 0 else 0.0


def _name(job: SizedJob) -> str:
    return f"{job.n_accelerators} x {job.candidate.accelerator}"


def _moved(runs: Sequence[PricedRun], name: str, ratio: float, scale: float) -> PriceScenario:
    usd = [((run.usd - run.once_usd) * ratio + run.once_usd) * scale for run in runs]
    best = int(np.argmin(usd))
    return PriceScenario(
        name=name,
        usd_per_month=usd[0],
        best_fleet=_name(runs[best].job),
        best_usd_per_month=usd[best],
    )


def _tornado(run: PricedRun, scale: float) -> tuple[TornadoBar, ...]:
    sd, rent = _log_sd(run.job), run.usd - run.once_usd
    length = (float(np.exp(-Z_80 * sd)), float(np.exp(Z_80 * sd)))
    moves = {"length of the run": length, "prices": (min(PRICE_RATIOS), max(PRICE_RATIOS))}
    bars = [
        TornadoBar(
            what=what,
            span=f"{low:.0%} … {high:.0%} of the plan's",
            low_usd_per_month=(rent * low + run.once_usd) * scale,
            high_usd_per_month=(rent * high + run.once_usd) * scale,
        )
        for what, (low, high) in moves.items()
        if high > low * (1 + 1e-9)
    ]
    return tuple(sorted(bars, key=lambda bar: bar.low_usd_per_month - bar.high_usd_per_month))
