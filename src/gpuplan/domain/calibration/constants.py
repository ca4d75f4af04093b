"""Free numbers of a model: their prior, what they depend on, and what a fit made of them."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from math import exp
from typing import Any, NamedTuple

from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.noun import dataclass

Labels = Mapping[str, str]  # kind -> label, e.g. era -> vllm-0.10
ABSENT = "no"  # the label of rows without the trait that an effect is about
BEND = 6.0
# The same node measured twice differs by this much [MLPerf]: no range is narrower.
LEAST_LOG = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A shrunk deviation by label; several kinds together make one label."""

    kinds: tuple[str, ...]
    log_sd: float  # how far labels may differ before the data has spoken
    # Deviations that measurements of parts suggest, by label; the others start at none.
    prior: tuple[tuple[str, float], ...] = ()

    def prior_of(self, label: str) -> float:
        """Log deviation before the data has spoken, or where it never will."""
        return next((value for name, value in self.prior if name == label), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One free number: value = centre of all labels, times exp of the deviations."""

    name: str
    value: float  # before the fit
    log_sd: float
    effects: tuple[Effect, ...] = ()
    most: float | None = None  # physical bound: no fraction above 1
    source: str = ""  # where the prior comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstants:
    """All constants of one kind of model after a fit."""

    constants: tuple[Constant, ...]
    log_value: Mapping[str, float]  # by name
    deviation: Mapping[str, Mapping[str, float]]  # by "name:kinds", then by label
    n_rows: int
    sources: tuple[str, ...]

    def values(self, labels: Labels) -> dict[str, float]:
        """Every number for these labels; labels never seen leave the centre as it is."""
        return {constant.name: self._value(constant, labels) for constant in self.constants}

    def known(self, kind: str) -> frozenset[str]:
        """Labels of this kind, alone, that the fit has seen."""
        keys = [effect_key(c.name, e) for c in self.constants for e in c.effects]
        alone = [key for key in keys if key.endswith(f":{kind}")]
        return frozenset(label for key in alone for label in self.deviation.get(key, {}))

    def _value(self, constant: Constant, labels: Labels) -> float:
        log_value = self.log_value[constant.name]
        for effect in constant.effects:
            observed = self.deviation.get(effect_key(constant.name, effect), {})
            label = joined_label(effect, labels)
            log_value += observed[label] if label in observed else effect.prior_of(label)
        return float(bounded(exp(log_value), constant.most))


def bounded(value: Any, most: float | None) -> Any:
    """The value, bent smoothly below its physical bound so that a fit keeps its slope.

    Plain arithmetic: holds for columns too.
    """
    if most is None:
        return value
    return value * (1.0 + (value / most) ** BEND) ** (-1.0 / BEND)


def effect_key(name: str, effect: Effect) -> str:
    """How an effect is written in the stored fit."""
    return f"{name}:{'+'.join(effect.kinds)}"


def joined_label(effect: Effect, labels: Labels) -> str:
    """The label of a setup for this effect."""
    if len(effect.kinds) == 1:
        return labels[effect.kinds[0]]
    return "|".join(labels[kind] for kind in effect.kinds)


HERE, SEEN = "measured here", "known model and accelerator"


class Novelty(NamedTuple):
    """How new a setup is to the fit, and what of it no row of the fit had."""

    kind: str = ""
    missing: tuple[str, ...] = ()


AT_LIMIT = "mlperf_server"  # requests as fast as a submission dares: no measure of other loads


def range_keys(metric: str, regime: str, *, kind: str, novelty: str) -> tuple[str, ...]:
    """The factors of a half-width, widest group first.

    `kind` holds parts, the widest group first, such as `dense|cuda|vllm`; none where it is empty.
    """
    cell, parts = f"{metric}|{regime}", kind.split("|") if kind else []
    above = f"{metric} at the limit" if regime == AT_LIMIT else metric
    within = ("|".join((cell, *parts[:n])) for n in range(len(parts) + 1))
    return (above, *within, f"novelty|{novelty}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRule:
    """Half-widths of 80 % ranges as products of factors: what is not named counts as 1."""

    log_half: Mapping[str, float]  # by key of `range_keys`
    log_middle: Mapping[str, float]  # by cell of a percentile: over the predicted mean
    n_groups: int  # of the ledger that it was learned from
    log_least: Mapping[str, float] = field(default_factory=dict)  # by level, of rows held out

    def half(self, keys: Iterable[str]) -> float:
        """The half-width in logs: a range is the prediction times exp of minus it to plus it."""
        return max(LEAST_LOG, exp(sum(self.log_half.get(key, 0.0) for key in keys)))

    def middle(self, metric: str, regime: str) -> float:
        """Log ratio of a percentile to the mean, as measured, else as in the regimes measured."""
        known = [v for key, v in self.log_middle.items() if key.startswith(f"{metric}|")]
        return self.log_middle.get(f"{metric}|{regime}", sum(known) / max(1, len(known)))


class OwnFigure(NamedTuple):
    """A figure of a site's own run: under which conditions, and how far off it was."""

    configuration: str
    metric: str
    at: tuple[float | None, ...]  # conditions in octaves; None: not stated
    n_halves: float  # log ratio to the package's prediction, in half-widths of a site never seen


# One fit is one thing: told apart by identity, so that what is derived from it can be kept.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InferenceCalibration:
    """What a fit of serving measurements hands to predictions."""

    constants: FittedConstants
    ranges: RangeRule
    known: Mapping[str, frozenset[str]]  # what the rows had, by kind of novelty
    held_out: Mapping[str, Mapping[str, MetricErrors]]  # by split, then "regime metric"
    version: str
    own: tuple[OwnFigure, ...] = ()  # of the user's site
