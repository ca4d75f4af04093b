"""Free numbers of a model: their prior, what they depend on, and what a fit made of them."""

from collections.abc import Mapping
from itertools import product
from math import exp
from typing import Any

from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.noun import dataclass

Labels = Mapping[str, str]  # kind -> label, e.g. era -> vllm-0.10
BEND = 6.0


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
            seen = self.deviation.get(effect_key(constant.name, effect), {})
            label = joined_label(effect, labels)
            log_value += seen[label] if label in seen else effect.prior_of(label)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Where measurements outside the fit lie, as logs of measured / predicted."""

    log_low: float  # a tenth lies below
    log_mid: float
    log_high: float  # a tenth lies above
    n: int


# One fit is one thing: told apart by identity, so that what is derived from it can be kept.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InferenceCalibration:
    """What a fit of serving measurements hands to predictions."""

    constants: FittedConstants
    spreads: Mapping[str, Spread]  # by "novelty|regime|metric|cell"
    known: Mapping[str, frozenset[str]]  # model families, engine versions, accelerator families
    held_out: Mapping[str, Mapping[str, MetricErrors]]  # by split, then "regime metric"
    version: str

    def spread(self, novelty: str, regime: str, *, metric: str, cells: tuple[str, ...]) -> Spread:
        """The spread of the narrowest cell that was measured, else of the regime, else of all."""
        # What was never held out alone is as uncertain as a whole publication, the widest split.
        for kind, where in product((novelty, "source"), (regime, "any")):
            for cell in (*cells, "all"):
                found = self.spreads.get(f"{kind}|{where}|{metric}|{cell}")
                if found is not None:
                    return found
        return self.spreads["source|any|any|all"]
