"""The fitted training constants, in: the stored fit; out: constants and ranges for one setup."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from gpuplan.calibration.residuals import Spread
from gpuplan.calibration.tables import read_constants
from gpuplan.calibration.training.priors import best_fracs, prior
from gpuplan.calibration.training.stacks import Stack
from gpuplan.domain.calibration.constants import FittedConstants, Labels
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.provenance import Tier
from gpuplan.domain.training.time import TrainingConstants, constants_from

FILE = "llm_training.json"
VERSION = 1
# What is new to the fit widens the range: measured by leaving accelerators out.
NEW_FAMILY_WIDENS = 1.35
ASSUMED_WIDENS = 2.5
# Formulas were chosen with the rows in sight, so that left-out rows flatter. A first study's
# ranges held 66 % of rows that nobody had seen, and erred half again as much on them: 1.34 to 1.5.
# A known program with a known model already takes the residuals of models left out; with experts
# its next release may run the same recipe half again as fast.
UNSEEN_WIDENS = 1.4


class Known(NamedTuple):
    """What the fit has seen of a setup."""

    is_program: bool
    is_model: bool
    is_family: bool
    has_conditions: bool = True  # sequence and batch were given, not assumed

    @property
    def regime(self) -> str:
        """Which residuals the range is drawn from."""
        if not self.is_program:
            return "new program"
        return "known" if self.is_model else "new model"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCalibration:
    """Constants with the residuals outside their fit."""

    fitted: FittedConstants
    spreads: Mapping[str, Spread]  # by "kind|regime"
    seen: frozenset[str]  # "program|model"
    families: frozenset[str]

    def known(self, labels: Labels, model: str, *, has_conditions: bool = True) -> Known:
        """How much of the setup the fit has seen."""
        programs = {pair.partition("|")[0] for pair in self.seen}
        return Known(
            is_program=labels["program"] in programs,
            is_model=f"{labels['program']}|{model}" in self.seen,
            is_family=labels["family"] in self.families,
            has_conditions=has_conditions,
        )

    def spread(self, kind: str, known: Known) -> Spread:
        """Factors that hold 80 % of measurements of this kind: dense, sparse or script."""
        found = self.spreads[f"{kind}|{known.regime}"]
        is_familiar = known.regime == "known" and kind != "sparse"
        power = (1.0 if known.is_family else NEW_FAMILY_WIDENS) * (
            1.0 if known.has_conditions else ASSUMED_WIDENS
        )
        power *= 1.0 if is_familiar else UNSEEN_WIDENS
        return Spread(found.low**power, found.high**power)


def tier_of(known: Known) -> Tier:
    """How far to trust a prediction."""
    return "fitted" if known.is_family and known.has_conditions else "estimated"


def constants_of(
    fitted: FittedConstants, labels: Labels, *, accelerator: Accelerator, stack: Stack
) -> TrainingConstants:
    """Constants of one setup."""
    return constants_from(with_traits(fitted.values(labels), accelerator, stack))


def with_traits(
    values: Mapping[str, float], accelerator: Accelerator, stack: Stack
) -> dict[str, float]:
    """Fitted values with what is known of the accelerator and the software."""
    best16, best8, best4 = best_fracs(accelerator)
    overlap = values["dp_overlap_frac"] if stack.overlaps_gradients else 0.0
    traits = {
        "best16_frac": best16,
        "best8_frac": best8,
        "best4_frac": best4,
        "dp_overlap_frac": overlap,
        "layer_s": values["layer_s"] * stack.host_ratio,
        "accumulate_bytes_per_param": values["accumulate_bytes_per_param"] * stack.accumulate_ratio,
    }
    return {**values, **traits}


@cache
def read_calibration() -> TrainingCalibration:
    """The fit as shipped."""
    return calibration_from(read_constants(FILE))


def calibration_from(stored: Mapping[str, Any]) -> TrainingCalibration:
    """A stored fit as nouns."""
    fitted = FittedConstants(
        constants=prior(),
        log_value=stored["log_value"],
        deviation=stored["deviation"],
        n_rows=stored["n_rows"],
        sources=tuple(stored["sources"]),
    )
    return TrainingCalibration(
        fitted=fitted,
        spreads={key: Spread(*pair) for key, pair in stored["spreads"].items()},
        seen=frozenset(stored["seen"]),
        families=frozenset(stored["families"]),
    )


def document(calibration: TrainingCalibration, scores: Mapping[str, Any]) -> dict[str, Any]:
    """The fit as it is stored: values, priors, rows, sources, residuals."""
    fitted = calibration.fitted
    return {
        "version": VERSION,
        "what": "LLM training step time",
        "n_rows": fitted.n_rows,
        "sources": list(fitted.sources),
        "priors": {c.name: [c.value, c.log_sd, c.source] for c in fitted.constants},
        "log_value": _rounded(fitted.log_value),
        "deviation": {key: _rounded(found) for key, found in sorted(fitted.deviation.items())},
        "spreads": {key: [round(x, 5) for x in pair] for key, pair in calibration.spreads.items()},
        "seen": sorted(calibration.seen),
        "families": sorted(calibration.families),
        "scores": dict(scores),
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in sorted(values.items())}


def seen_pairs(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Programs and models of the rows of a fit."""
    return frozenset(f"{program}|{model}" for program, model in pairs)
