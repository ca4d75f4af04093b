"""A run that is longer or dearer than planned, in: every priced run; out: ranges, regret."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuplan.candidates.risk import Z_80
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import ChosenPlan, TornadoBar, Uncertainty
from gpuplan.domain.plan.sizing import SizedJob
from gpuplan.domain.ranges import exactly
from gpuplan.studies.planning.curves import log_sd_ratio
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.runs import PricedRun, compared_runs, deadline_result
from gpuplan.studies.uncertainty.samples import (
    PRICE_MOVES,
    PRICE_RATIOS,
    SampledFleets,
    Samples,
    draw_samples,
    price_scenario,
    tornado_bar,
)


def run_uncertainty_of(
    inputs: PlanInputs, groups: Sequence[SolvedGroup], *, plan: ChosenPlan
) -> Uncertainty | None:
    """Ranges of a run that stands alone; None where there are several, or no samples."""
    compared = [each for group in groups for each in compared_runs(group.choice, group.sizings)]
    n_chosen = sum(len(group.choice.selection.chosen) for group in groups)
    request = inputs.request
    if request.n_samples == 0 or n_chosen != 1 or len(compared) != 1:
        return None
    runs = [compared[0].chosen, *compared[0].others]
    samples = draw_samples(
        request.n_samples,
        request.seed,
        exactly(0.0),
        n_months=1.0,
        kinds=[str(run.job.candidate.accelerator) for run in runs],
    )
    slo = deadline_result(inputs.scenario, runs[0].job)
    deadline_s = slo.limit_s if slo else None
    usd = plan.cost_usd_per_month.value
    return run_uncertainty(runs, samples, usd=usd, deadline_s=deadline_s, seed=request.seed)


def run_uncertainty(
    runs: Sequence[PricedRun], samples: Samples, *, usd: float, deadline_s: float | None, seed: int
) -> Uncertainty:
    """Every way to do the run over all samples of duration and prices, the chosen one first."""
    # A month of the plan, whatever time others take; a job of seconds costs less than a cent.
    scale = usd / runs[0].usd if runs[0].usd else 1.0
    names = [f"{run.job.n_accelerators} x {run.job.candidate.accelerator}" for run in runs]
    sampled = SampledFleets(
        names,
        np.array([_sampled_usd(run, samples) for run in runs]) * scale,
        np.array([is_in_time(run.job, samples, deadline_s) for run in runs]),
        usd,
    )
    return sampled.uncertainty(
        seed=seed,
        tornado=_tornado(runs[0], scale),
        prices=tuple(
            price_scenario(name, names, [scale * float(_usd(run, ratio)) for run in runs])
            for name, ratio in PRICE_MOVES.items()
        ),
        inputs=("duration of the run", "prices"),
    )


def _usd(run: PricedRun, ratio: float | Floats) -> float | Floats:
    """The run with its rent multiplied; porting is paid once whatever happens."""
    return (run.usd - run.once_usd) * ratio + run.once_usd


def _sampled_usd(run: PricedRun, samples: Samples) -> Floats:
    """[sample] what the run costs."""
    price = samples.prices[str(run.job.candidate.accelerator)]
    return floats(_usd(run, floats(duration_ratio(run.job, samples) * price)))


def duration_ratio(job: SizedJob, samples: Samples) -> Floats:
    """[sample] duration over the one planned; the run's own range holds 80 %."""
    return floats(np.exp(-log_sd_ratio(job.wall_s) * samples.speed))


def is_in_time(job: SizedJob, samples: Samples, deadline_s: float | None) -> NDArray[np.bool_]:
    """[sample] whether the deadline is met, or there is none."""
    wall_s = job.wall_s.value * duration_ratio(job, samples)
    most_s = np.inf if deadline_s is None else deadline_s * (1 + 1e-9)
    return np.asarray(wall_s <= most_s)


def _tornado(run: PricedRun, scale: float) -> list[TornadoBar]:
    width = Z_80 * log_sd_ratio(run.job.wall_s)
    moves = {
        "duration of the run": [float(np.exp(-width)), float(np.exp(width))],
        "prices": [PRICE_RATIOS[0], PRICE_RATIOS[-1]],
    }
    return [
        tornado_bar(what, ratios, "the plan's", (scale * float(_usd(run, x)) for x in ratios))
        for what, ratios in moves.items()
    ]
