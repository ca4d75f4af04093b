"""A user's runs as deviations over the package's constants: priors, values, and the file of them.

Every constant that runs depend on gets a factor for the user's engine on the accelerator, and a
narrower one by class of model and precision. Factors start at 1 and a prior keeps them
there: few rows move them little, and what no row touches stays as the package has it.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.inference.ranges import Miss, tails
from gpuplan.calibration.runs.detect import USER_KIND
from gpuplan.calibration.runs.fields import mapping, short
from gpuplan.domain.calibration.constants import (
    Constant,
    Effect,
    FittedConstants,
    InferenceCalibration,
    Labels,
    Spread,
    bounded,
    effect_key,
)
from gpuplan.domain.calibration.runs import MovedConstant
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, Problem

Floats = NDArray[np.float64]

SITE = ("engine", "accelerator")
GROUP = ("engine", "accelerator", "class", "precision")
# How far one site may differ from the package's centre, by constant: log scale, before the
# fit. Wider where sites truly differ (host, start of a request), narrow for kernels.
PACE_SDS = {
    "slowdown_frac": 0.25, "host_s": 0.5, "host_sequence_s": 0.4, "operator_s": 0.2,
    "gemm_compute_frac": 0.15, "gemm_read_frac": 0.12, "cache_read_frac": 0.15,
    "attention_compute_frac": 0.15, "expert_compute_frac": 0.15, "expert_read_frac": 0.15,
    "reduce_time_frac": 0.2, "start_s": 0.4, "interference_frac": 0.1,
}  # fmt: skip
LATENCY_SDS = {
    "serve_start_s": 0.6, "start_prompts": 0.4, "start_steps": 0.4, "first_wave_frac": 0.2,
}  # fmt: skip
GROUP_SHARE = 0.4  # of the site's own deviation: groups of one site resemble each other
NEW_WIDTH = 3.0  # of priors for an engine or hardware that the package's rows do not hold
FIXED_LOG_SD = 1e-4  # the common factor stays 1: what is not measured is not moved
LEAST_SPREAD_ROWS = 6  # figures below which tails are not drawn
LEAST_MOVE = 0.01
MOST_LOG = 5.0
DOCUMENT_VERSION = 1
SPREAD_FIELDS = ("log_low", "log_mid", "log_high", "n")


def factors(sds: Mapping[str, float], of: FittedConstants, *, is_new: bool) -> tuple[Constant, ...]:
    """Factors with their priors; wider where the engine or hardware is new to the package."""
    wide = NEW_WIDTH if is_new else 1.0
    return tuple(
        Constant(name=c.name, value=1.0, log_sd=FIXED_LOG_SD, effects=_effects(wide * sds[c.name]))
        for c in of.constants
        if c.name in sds
    )


def _effects(sd: float) -> tuple[Effect, ...]:
    return Effect(kinds=SITE, log_sd=sd), Effect(kinds=GROUP, log_sd=GROUP_SHARE * sd)


def base_values(found: FittedConstants, labels: Sequence[Labels]) -> dict[str, Floats]:
    """The package's constants for every row, before their bounds."""
    loose = replace(found, constants=tuple(replace(c, most=None) for c in found.constants))
    rows = [loose.values(row) for row in labels]
    return {c.name: np.array([row[c.name] for row in rows]) for c in found.constants}


def moved_values(
    constants: Sequence[Constant], base: Mapping[str, Floats], by: Mapping[str, Floats]
) -> dict[str, Floats]:
    """The constants times their factors, within their bounds."""
    return {
        c.name: np.asarray(bounded(base[c.name] * by.get(c.name, 1.0), c.most)) for c in constants
    }


def with_deviations(
    package: InferenceCalibration, deviations: Mapping[str, Mapping[str, float]], *, version: str
) -> InferenceCalibration:
    """The package's calibration with a user's deviations beside its own."""
    fitted = package.constants
    names = {key.split(":")[0] for key in deviations}
    sds = {**PACE_SDS, **LATENCY_SDS}
    constants = tuple(
        replace(c, effects=(*c.effects, *_effects(sds[c.name]))) if c.name in names else c
        for c in fitted.constants
    )
    merged = replace(fitted, constants=constants, deviation={**fitted.deviation, **deviations})
    return replace(package, constants=merged, version=version)


def site_key(miss: Miss) -> str:
    """The group of figures that share a spread: regime, metric, engine and kind of model."""
    return f"{miss.regime}|{miss.metric}|{miss.cells[0]}"


def site_spreads(found: Iterable[Miss]) -> dict[str, Spread]:
    """Tails of the site's own held-out figures, where there are enough."""
    groups: dict[str, list[float]] = {}
    for miss in found:
        groups.setdefault(site_key(miss), []).append(miss.log_ratio)
    return {key: tails(of) for key, of in sorted(groups.items()) if len(of) >= LEAST_SPREAD_ROWS}


def widened(estimate: Estimate, spread: Spread) -> Estimate:
    """The estimate with a range that holds the site's too."""
    low = min(estimate.low, estimate.value * math.exp(spread.log_low))
    high = max(estimate.high, estimate.value * math.exp(spread.log_high))
    return replace(estimate, low=low, high=high)


def with_spreads(
    calibration: InferenceCalibration, spreads: Mapping[str, Spread]
) -> InferenceCalibration:
    """The calibration with ranges that hold the site's spreads, never narrower than its own."""
    made = dict(calibration.spreads)
    kinds = sorted({key.split("|")[0] for key in calibration.spreads})
    for key, site in spreads.items():
        regime, metric, cell = key.split("|", 2)
        cells = (cell, cell.rpartition("|")[2])
        for kind in kinds:
            own = calibration.spread(kind, regime, metric=metric, cells=cells)
            made[f"{kind}|{key}"] = replace(
                own,
                log_low=min(own.log_low, site.log_low),
                log_high=max(own.log_high, site.log_high),
            )
    return replace(calibration, spreads=made)


def moves(
    package: FittedConstants, after: FittedConstants, labels: Sequence[Labels]
) -> tuple[MovedConstant, ...]:
    """Constants that moved for some of these setups, largest first; one line per group."""
    found: dict[tuple[str, str, str], MovedConstant] = {}
    for row in labels:
        label = "|".join(row[kind] for kind in GROUP)
        old, new = package.values(row), after.values(row)
        for name in (name for name in (*PACE_SDS, *LATENCY_SDS) if name in old):
            if abs(new[name] / old[name] - 1.0) > LEAST_MOVE:
                key = name, label, f"{new[name] / old[name]:.3f}"
                found[key] = MovedConstant(name=name, label=label, values=(old[name], new[name]))
    return tuple(sorted(found.values(), key=lambda m: -abs(math.log1p(m.change_frac))))


def package_name(package: InferenceCalibration) -> str:
    """Version and fingerprint of the constants that deviations stand on."""
    fitted = package.constants
    deviations = sorted((key, sorted(of.items())) for key, of in fitted.deviation.items())
    values = [sorted(fitted.log_value.items()), deviations]
    mark = hashlib.sha256(repr(values).encode()).hexdigest()[:8]
    return f"{package.version}-{mark}"


def user_document(
    package: InferenceCalibration,
    moved: InferenceCalibration,
    *,
    rows: Sequence[Mapping[str, str]],
    figures: Mapping[str, object],
) -> dict[str, object]:
    """The refit as a document: deviations, the rows that they rest on, and their errors."""
    return {
        "kind": USER_KIND,
        "schema_version": DOCUMENT_VERSION,
        "package_calibration": package_name(package),
        "version": moved.version,
        **figures,
        "deviations": {
            key: {label: round(value, 5) for label, value in sorted(of.items())}
            for key, of in sorted(moved.constants.deviation.items())
            if key not in package.constants.deviation
        },
        "known": {
            kind: sorted(labels - package.known.get(kind, frozenset()))
            for kind, labels in moved.known.items()
        },
        "spreads": {
            key: asdict(spread)
            for key, spread in moved.spreads.items()
            if package.spreads.get(key) != spread
        },
        "rows": [{name: text for name, text in row.items() if text} for row in rows],
    }


def from_user_document(
    document: object, package: InferenceCalibration, *, where: str
) -> InferenceCalibration:
    """The calibration of a stored refit; InputError where it is none, or of another package."""
    found = mapping(document)
    problems = _document_problems(found, package_name(package))
    if problems:
        raise InputError(short(where), problems)
    deviations = {
        key: {label: float(str(value)) for label, value in mapping(of).items()}
        for key, of in mapping(found["deviations"]).items()
    }
    moved = with_deviations(package, deviations, version=str(found["version"]))
    added = mapping(found.get("known"))
    known = {
        kind: labels | frozenset(map(str, _list(added.get(kind))))
        for kind, labels in package.known.items()
    }
    return replace(moved, known=known, spreads={**package.spreads, **_spreads(found)})


def _spreads(found: Mapping[str, object]) -> dict[str, Spread]:
    made = {}
    for key, of in mapping(found.get("spreads")).items():
        low, mid, high, n = (float(str(mapping(of)[name])) for name in SPREAD_FIELDS)
        made[key] = Spread(log_low=low, log_mid=mid, log_high=high, n=int(n))
    return made


def _document_problems(found: Mapping[str, object], package_here: str) -> list[Problem]:
    again = "run `gpuplan calibrate` on this file or on your runs again"
    if found.get("kind") != USER_KIND:
        return [Problem("kind", "not a calibration of gpuplan", "give what calibrate --out wrote")]
    if found.get("schema_version") != DOCUMENT_VERSION:
        return [Problem("schema_version", f"got {found.get('schema_version')!r}", again)]
    if found.get("package_calibration") != package_here:
        made = str(found.get("package_calibration"))[:80]
        what = f"made over {made!r}, here is {package_here!r}"
        return [Problem("package_calibration", what, again)]
    keys = {
        effect_key(name, effect)
        for name, sd in {**PACE_SDS, **LATENCY_SDS}.items()
        for effect in _effects(sd)
    }
    problems = []
    deviations = found.get("deviations")
    if not isinstance(deviations, dict) or not isinstance(found.get("version"), str):
        return [Problem("deviations", "missing", again)]
    for key, of in deviations.items():
        values = list(mapping(of).values())
        if key not in keys or not all(_is_log(value) for value in values):
            problems.append(Problem("deviations", f"{str(key)[:60]!r} is not sound", again))
    for key, of in mapping(found.get("spreads")).items():
        spread = mapping(of)
        is_whole = set(spread) == set(SPREAD_FIELDS) and _is_count(spread.get("n"))
        if not is_whole or not all(_is_log(v) for k, v in spread.items() if k != "n"):
            problems.append(Problem("spreads", f"{str(key)[:60]!r} is not sound", again))
    return problems


def _is_log(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(float(str(value))) and abs(float(str(value))) <= MOST_LOG


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
