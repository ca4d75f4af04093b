"""Predictions by constants that had not seen their rows: lines of a ledger in, errors out.

How ranges are learned from such lines is in `tools/fits/ranges.py`; the package holds the result.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.residuals import metric_errors
from gpuplan.domain.calibration.constants import RangeRule, range_keys
from gpuplan.domain.calibration.validation import MetricErrors

APART = ("max_load", "output_tokens_per_s")  # scored by kind of network too


class Line(NamedTuple):
    """One prediction by constants that had not seen its row, beside what was measured."""

    metric: str
    regime: str
    kind: str  # of network, home or port, and engine, as `range_kind` has it
    group: str  # source, model and accelerator
    novelty: str
    log_ratio: float  # measured / predicted; of a percentile, over the predicted mean

    @property
    def cell(self) -> str:
        """Metric and regime."""
        return f"{self.metric}|{self.regime}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The factors that its half-width is the product of."""
        return range_keys(self.metric, self.regime, kind=self.kind, novelty=self.novelty)

    @property
    def levels(self) -> tuple[str, ...]:
        """Its factors but that of novelty, widest group first."""
        return self.keys[:-1]


def errors_by_split(
    splits: Mapping[str, Sequence[Line]], rule: RangeRule
) -> dict[str, dict[str, MetricErrors]]:
    """The errors of held-out rows by split, then by regime and metric, and what the rule holds."""
    return {split: _by_regime(lines, rule) for split, lines in splits.items()}


def _by_regime(lines: Iterable[Line], rule: RangeRule) -> dict[str, MetricErrors]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[f"{line.regime} {line.metric}"].append(line)
        if (line.regime, line.metric) == APART:
            found[f"{line.regime} {line.metric}, {line.kind.partition('|')[0]}"].append(line)
    return {key: _errors(some, rule) for key, some in sorted(found.items()) if len(some) > 1}


def _errors(lines: Sequence[Line], rule: RangeRule) -> MetricErrors:
    ratios = np.array([line.log_ratio for line in lines])
    off = ratios - np.array([rule.log_middle.get(line.cell, 0.0) for line in lines])
    inside = np.abs(off) <= np.array([rule.half(line.keys) for line in lines])
    return metric_errors(np.expm1(-ratios), inside)
