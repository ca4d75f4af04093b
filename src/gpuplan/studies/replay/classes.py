"""What each class of requests felt: the mean of all hides who waits."""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.simulation.outcome import (
    ClassStatistics,
    Outcome,
    ServingStatistics,
    SloTargets,
)
from gpuplan.simulation.serving.intervals import summary
from gpuplan.simulation.serving.statistics import kept

MOST_CLASSES = 20


def by_service(
    outcome: Outcome,
    found: ServingStatistics,
    slo: SloTargets,
    *,
    service: Ints,
    names: Sequence[str],
) -> tuple[ClassStatistics, ...]:
    """One class for each service; none where there is one."""
    return _classes(outcome, found, slo, label=service, names=dict(enumerate(names)))


def by_priority(
    outcome: Outcome, found: ServingStatistics, slo: SloTargets
) -> tuple[ClassStatistics, ...]:
    """One class for each priority number; none where all are alike, or nearly all differ."""
    numbers = np.unique(outcome.requests.priority)
    if len(numbers) > MOST_CLASSES:
        return ()
    names = {int(number): f"priority {number}" for number in numbers}
    return _classes(outcome, found, slo, label=outcome.requests.priority, names=names)


def _classes(
    outcome: Outcome,
    found: ServingStatistics,
    slo: SloTargets,
    *,
    label: Ints,
    names: dict[int, str],
) -> tuple[ClassStatistics, ...]:
    if len(names) < 2:
        return ()
    since_s = outcome.requests.arrive_s - outcome.requests.arrive_s[0]
    is_measured = since_s >= found.delivery.warmup.cut_s
    is_kept, times = kept(outcome, slo), outcome.times
    classes = []
    for number, name in names.items():
        is_mine = is_measured & (label == number)
        rows = np.flatnonzero(is_mine & (times.is_finished == 1))
        many = rows[outcome.requests.output_tokens[rows] > 1]
        classes.append(
            ClassStatistics(
                name=name,
                n_requests=int(is_mine.sum()),
                n_completed=len(rows),
                recall_frac=float(is_kept[is_mine].mean()) if is_mine.any() else 0.0,
                ttft=summary(times.ttft_s[rows]),
                tpot=summary(times.tpot_s[many]),
                e2e=summary(times.e2e_s[rows]),
            )
        )
    return tuple(classes)
