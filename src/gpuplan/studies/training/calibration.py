"""Fit of the training constants: cases to constants, residuals of held-out cases to ranges."""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import (
    MeasuredModel,
    Measurements,
    balanced_weights,
    one_per_row,
)
from gpuplan.calibration.residuals import (
    Floats,
    Spread,
    clustered_spread,
    is_inside,
    spread_of,
)
from gpuplan.calibration.tables import priors
from gpuplan.calibration.training.constants import with_traits
from gpuplan.calibration.training.rows import shipped_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.training.time import constants_from
from gpuplan.performance.kernels.columns import stacked
from gpuplan.performance.training.step import step_parts
from gpuplan.studies.measured.training import shape_key
from gpuplan.studies.training.cases import Case, cases_of, kind_of

# Every source pulls alike, however many rows it has; a single row not like a whole source.
ROWS_PER_SOURCE = 25.0
ROW_WEIGHT_MAX = 2.5
N_ROUNDS = 100
N_FOLDS = 5
KINDS = ("dense", "sparse", "script")
LEAST_ROWS = 15  # fewer residuals of a kind say nothing of its range
# Constants that a trait of the software multiplies.
FACTORS = ("dp_overlap_frac", "layer_s", "accumulate_bytes_per_param")
Key = Callable[[Case], Hashable]


def usable(cases: Sequence[Case]) -> list[Case]:
    """The cases that give their sequence length and a measured step."""
    return [case for case in cases if case.is_complete and case.measured_step_s is not None]


def measurements(cases: Sequence[Case]) -> Measurements:
    """The step times of these cases and their formula; every source pulls alike."""
    basis, traits = stacked([case.basis for case in cases]), _trait_columns(cases)

    def log_steps(values: Mapping[str, Floats]) -> Floats:
        found = {**values, **traits}
        found |= {name: values[name] * traits[name] for name in FACTORS}
        logs: Floats = np.log(sum(step_parts(basis, constants_from(found))))  # type: ignore[arg-type]
        return logs

    sources = [source_of(case) for case in cases]
    weight = balanced_weights(sources, ROWS_PER_SOURCE, most=ROW_WEIGHT_MAX)
    return Measurements(
        labels=[case.configuration.labels for case in cases],
        predict=log_steps,
        observed=one_per_row([case.measured_step_s or np.nan for case in cases], weight),
        sources=[case.row.text("source") for case in cases],
    )


TRAINING = MeasuredModel(
    constants=lambda: priors("training"),
    rows=lambda: usable(cases_of(shipped_rows(), read_catalog())[0]),
    measured=measurements,
    n_rounds=N_ROUNDS,
)


def source_of(case: Case) -> str:
    """Tables of one publisher are one source."""
    return case.row.text("source").partition(":")[0]


def model_of(case: Case) -> str:
    """The network, not the spelling of its name."""
    return shape_key(case.configuration.model)


def accelerator_of(case: Case) -> str:
    """The accelerator of a case by its catalog id."""
    return str(case.configuration.accelerator.id)


def fold_of(case: Case) -> int:
    """A fold by configuration, so that repeated runs stay together."""
    found = case.configuration
    text = f"{shape_key(found.model)}{found.accelerator.id}{found.layout}{found.setup}"
    return sum(map(ord, text)) % N_FOLDS


def errors_by_case(cases: Sequence[Case], key: Key) -> Floats:
    """The log errors of held-out groups in the order of the cases."""
    folds = {fold: iter(errors.tolist()) for fold, errors in TRAINING.folds(key, cases).items()}
    return np.array([next(folds[key(case)]) for case in cases])


def is_covered(cases: Sequence[Case], key: Key, errors: Floats) -> NDArray[np.bool_]:
    """Whether each case lies in the range that the other folds draw for its kind."""
    folds = np.array([str(key(case)) for case in cases])
    kinds = np.array([kind_of(case) for case in cases])
    inside = np.zeros(len(cases), dtype=bool)
    for fold, kind in sorted(set(zip(folds.tolist(), kinds.tolist(), strict=True))):
        chosen = (folds == fold) & (kinds == kind)
        others = [case for case, name in zip(cases, folds, strict=True) if name != fold]
        spread = kind_spread(others, key, errors[folds != fold], kind=kind)
        inside[chosen] = is_inside(errors[chosen], spread)
    return inside


def kind_spread(cases: Sequence[Case], key: Key, errors: Floats, *, kind: str) -> Spread:
    """From this kind alone where it has enough rows, else from all."""
    chosen = np.array([kind_of(case) == kind for case in cases])
    if chosen.sum() < LEAST_ROWS:
        chosen = np.ones(len(cases), dtype=bool)
    if key is fold_of:  # drawn by lot: no groups that err together
        return spread_of(errors[chosen])
    groups = [str(key(case)) for case, is_in in zip(cases, chosen, strict=True) if is_in]
    return clustered_spread(errors[chosen], groups)


def _trait_columns(cases: Sequence[Case]) -> dict[str, Floats]:
    unit = dict.fromkeys(FACTORS, 1.0)
    rows = [
        with_traits(unit, case.configuration.accelerator, case.configuration.stack)
        for case in cases
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
