"""The fitted training constants, in: the stored fit; out: constants and ranges for one setup."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from gpuplan.calibration.residuals import Spread
from gpuplan.calibration.tables import priors, read_constants, stored_fit
from gpuplan.calibration.training.stacks import Stack
from gpuplan.domain.calibration.constants import FittedConstants, Labels
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.provenance import Tier
from gpuplan.domain.training.time import TrainingConstants, constants_from

FILE = "llm_training.json"
# What is new to the fit widens the range: measured by holding accelerators out.
NEW_FAMILY_WIDENS = 1.35
ASSUMED_WIDENS = 2.5
# Formulas were chosen with the rows in sight, so that held-out rows flatter. A first study's
# ranges covered 66 % of unpublished rows, and erred half again as much on them: 1.34 to 1.5.
# A known program with a known model already takes the residuals of held-out models; with experts
# its next release may run the same recipe half again as fast.
UNSEEN_WIDENS = 1.4

# Best measured share of the dense peak, 16-bit and 8-bit [MAMF]; 4-bit and workstation boards
# from operator tables. A GeForce clocks above the rate that its sheet counts with.
BEST_FRAC: dict[str, tuple[float, float, float]] = {
    "v100": (0.80, 0.80, 0.80), "a100": (0.869, 0.87, 0.87), "h100": (0.803, 0.709, 0.70),
    "h200": (0.803, 0.734, 0.70), "gh200": (0.838, 0.776, 0.70), "b200": (0.776, 0.763, 0.60),
    "b300": (0.786, 0.745, 0.48), "gb200": (0.729, 0.723, 0.60), "gb300": (0.760, 0.745, 0.48),
    "mi300x": (0.514, 0.45, 0.45), "mi325x": (0.604, 0.50, 0.50), "mi350x": (0.62, 0.60, 0.50),
    "mi355x": (0.62, 0.60, 0.50), "h800": (0.803, 0.709, 0.70),
    "gaudi2": (0.969, 0.955, 0.9), "gaudi3": (0.741, 0.769, 0.7), "tpu": (0.93, 0.90, 0.90),
    "rtx-4090": (0.98, 0.95, 0.95), "rtx-3090": (0.95, 0.95, 0.95), "l40s": (0.62, 0.60, 0.60),
    "rtx-pro-6000": (0.84, 0.80, 0.75), "rtx-6000-ada": (0.70, 0.68, 0.68),
}  # fmt: skip
UNKNOWN_BEST_FRAC = (0.76, 0.70, 0.50)


class Known(NamedTuple):
    """What of a setup the rows of the fit had."""

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
    known_pairs: frozenset[str]  # "program|model"
    families: frozenset[str]

    def known(self, labels: Labels, model: str, *, has_conditions: bool = True) -> Known:
        """How much of the setup the rows of the fit had."""
        programs = {pair.partition("|")[0] for pair in self.known_pairs}
        return Known(
            is_program=labels["program"] in programs,
            is_model=f"{labels['program']}|{model}" in self.known_pairs,
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


def best_fracs(accelerator: Accelerator) -> tuple[float, float, float]:
    """16-, 8- and 4-bit; an accelerator that nobody measured gets the middle of the others."""
    name = str(accelerator.id)
    found = [key for key in BEST_FRAC if name.startswith(key)]
    return BEST_FRAC[max(found, key=len)] if found else UNKNOWN_BEST_FRAC


def training_labels(
    stack: Stack, *, family: str, architecture: str, program: str = ""
) -> dict[str, str]:
    """What the constants of a setup may depend on."""
    return {
        "stack": stack.name,
        "kernels": stack.kernels,
        "flash": stack.flash,
        "links": stack.links,
        "family": family,
        "architecture": architecture,
        "program": program,
    }


def constants_of(
    fitted: FittedConstants, labels: Labels, *, accelerator: Accelerator, stack: Stack
) -> TrainingConstants:
    """The constants of one setup, with its accelerator's and software's traits."""
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
    """The training calibration that the package ships."""
    return calibration_from(read_constants(FILE))


def calibration_from(stored: Mapping[str, Any]) -> TrainingCalibration:
    """The calibration of a stored fit."""
    return TrainingCalibration(
        fitted=stored_fit(stored, priors("training")),
        spreads={key: Spread(*pair) for key, pair in stored["spreads"].items()},
        known_pairs=frozenset(stored["seen"]),
        families=frozenset(stored["families"]),
    )


def known_pairs(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Programs and models of the rows of a fit."""
    return frozenset(f"{program}|{model}" for program, model in pairs)
