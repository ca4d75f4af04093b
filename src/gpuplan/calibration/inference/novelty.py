"""How new a setup is to the fit: measured here, measured elsewhere, or new in some part."""

from collections.abc import Mapping

from gpuplan.csv_rows import meanings
from gpuplan.domain.calibration.constants import SEEN, Labels, Novelty

SAME = "same configuration"
# What is said of a setup by the gravest kind of label that no row of the fit had.
KINDS = {
    "accelerator": "new accelerator",
    "engine": "new engine",
    "era": "new engine",
    "model": "new model",
    "configuration": SEEN,
}
# Sizes of one design under several names: held out together, or a fold would know the answer.
FAMILIES = tuple(meanings("calibration", "one_design").items())


def model_family(name: str) -> str:
    """Models that must not stand on both sides of a split."""
    low = name.lower()
    return next((family for part, family in FAMILIES if part in low), low.rpartition("/")[2])


def configuration(labels: Labels, model: str) -> str:
    """What a site measures: model family, accelerator, era of the engine and precision."""
    return f"{model_family(model)}|{labels['accelerator']}|{labels['era']}|{labels['precision']}"


def novelty_labels(labels: Labels, *, model: str, regime: str) -> dict[str, str]:
    """What may be new to a fit, by kind, the gravest first."""
    return {
        "accelerator": labels["accelerator"],
        "engine": f"{labels['engine']} on {labels['family']}",
        "era": labels["era"],
        "model": model_family(model),
        "configuration": f"{configuration(labels, model)}|{regime}",
    }


def novelty_of(
    known: Mapping[str, frozenset[str]], labels: Labels, *, model: str, regime: str
) -> Novelty:
    """The gravest that is new; own runs are judged apart."""
    found = novelty_labels(labels, model=model, regime=regime)
    new = [kind for kind, label in found.items() if label not in known.get(kind, ())]
    missing = tuple(f"{kind} {found[kind]}" for kind in new if kind != "configuration")
    return Novelty(KINDS[new[0]] if new else SAME, missing)
