"""How far own runs narrow the ranges of conditions near theirs.

Errors of one configuration have a part in common, a part that fades as conditions part, and a part
of each run. Runs that miss by more than is usual show a site unlike those that ranges were learned
from, and narrow less: a Student process [Shah2014]. Shares were chosen by sites held out
(docs/validation.md).
"""

from collections.abc import Iterable
from math import exp, log2, sqrt

import numpy as np

from gpuplan.domain.calibration.constants import OwnFigure
from gpuplan.domain.inference.performance import ServingSetup

COMMON_FRAC, FADING_FRAC, ALONE_FRAC = 0.4, 0.5, 0.1  # of the squared error of a site never seen
OCTAVES = (2.0, 2.0, 2.0, 1.0, 1.0)  # in which the fading part falls to a third, by condition
FREEDOM = 1.0  # as many runs is it worth that sites are alike
SPREADS = 1.6  # usual errors in a half-width
FIRST = "ttft"
Conditions = tuple[float | None, ...]


def conditions_of(setup: ServingSetup) -> Conditions:
    """Sequences at once, prompt, answer, ranks and accelerators, in octaves; None: not stated."""
    load, n = setup.load, setup.layout.n_accelerators * setup.n_replicas
    counts = (load.n_sequences, load.input_tokens, load.output_tokens, setup.layout.tp, n)
    return tuple(log2(max(1.0, count)) if count else None for count in counts)


def own_figures(own: Iterable[OwnFigure], configuration: str, metric: str) -> list[OwnFigure]:
    """Runs that bear on a metric: its own, else others of the same kind, first tokens or pace."""
    here = [run for run in own if run.configuration == configuration]
    is_first = metric.startswith(FIRST)
    alike = [run for run in here if run.metric.startswith(FIRST) == is_first]
    return [run for run in here if run.metric == metric] or alike


def width_ratio(own: Iterable[OwnFigure], at: Conditions) -> float:
    """What is left of a half-width under these conditions; 1 where nothing is near."""
    runs = list(own)
    if not runs:
        return 1.0
    among = np.array([[_alike(a.at, b.at) for b in runs] for a in runs])
    among += ALONE_FRAC * np.eye(len(runs))
    to = np.array([_alike(run.at, at) for run in runs])
    missed = SPREADS * np.array([run.n_halves for run in runs])
    left = max(ALONE_FRAC, 1.0 - float(to @ np.linalg.solve(among, to)))
    unlike = (FREEDOM + float(missed @ np.linalg.solve(among, missed))) / (FREEDOM + len(runs))
    return sqrt(left * unlike)


def usual_runs(metric: str, at: Iterable[Conditions]) -> list[OwnFigure]:
    """Runs to come, as far off as runs usually are."""
    return [OwnFigure("", metric, conditions, 1.0 / SPREADS) for conditions in at]


def _alike(one: Conditions, other: Conditions) -> float:
    """Share of the squared error that two conditions have in common."""
    apart = sum(
        abs(a - b) / octaves
        for a, b, octaves in zip(one, other, OCTAVES, strict=True)
        if a is not None and b is not None
    )
    return COMMON_FRAC + FADING_FRAC * exp(-apart)
