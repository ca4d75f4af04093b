"""A user's runs as deviations over the package's constants: priors, values, and the file of them.

Every constant that runs depend on gets a factor for the user's engine on the accelerator, and a
narrower one by class of model and precision. Factors start at 1 and a prior keeps them
there: few rows move them little, and what no row touches stays as the package has it.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.inference.own import OCTAVES, Conditions, width_ratio
from gpuplan.calibration.runs.detect import USER_KIND
from gpuplan.calibration.runs.fields import mapping, short
from gpuplan.domain.calibration.constants import (
    Constant,
    Effect,
    FittedConstants,
    InferenceCalibration,
    Labels,
    OwnFigure,
    RangeRule,
    bounded,
    effect_key,
)
from gpuplan.domain.calibration.runs import MovedConstant
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
LEAST_SPREAD_ROWS = 6  # figures below which a site's own width is not drawn
OWN_LEVEL = 0.85  # of few own figures: the level that holds four of five of the next
PROBED = (1, 3)  # conditions at which it is known how far a measured site's ranges narrow
MEANS = ("output_tokens_per_s", "ttft_mean_ms", "tpot_mean_ms", "tpot_p50_ms", "e2e_s")
LEAST_MOVE = 0.01
MOST_LOG = 5.0
MOST_HALVES, MOST_OCTAVES = 1000.0, 64.0
N_OWN = 3 + len(OCTAVES)
DOCUMENT_VERSION = 3


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


class OwnMiss(NamedTuple):
    """A figure of the site beside a refit that its condition was held out of."""

    configuration: str
    metric: str
    log_ratio: float  # measured / predicted
    half: float  # in logs, of the range that it would have at a site never seen


def narrowing(rule: RangeRule, metric: str, n_conditions: int) -> float:
    """Log factor on a half-width once a configuration was measured under so many conditions."""
    known = [rule.log_half.get(f"probed|{n}|{metric}", 0.0) for n in PROBED]
    return float(np.interp(math.log(n_conditions), np.log(PROBED), known))


def own_factor(rule: RangeRule, runs: Sequence[OwnFigure], metric: str, *, at: Conditions) -> float:
    """What own runs leave of a half-width under these conditions.

    Never less than held-out runs of the site ask for.
    """
    if not runs:
        return 1.0
    n_conditions = len({run.at for run in runs})
    left = math.exp(narrowing(rule, metric, n_conditions)) * width_ratio(runs, at)
    requested = rule.log_half.get(_requested_key(runs[0].configuration, metric), -math.inf)
    return max(left, math.exp(requested))


def _requested_key(configuration: str, metric: str) -> str:
    return f"here|{configuration}|{metric}"


def requested_width(own: Iterable[OwnMiss]) -> dict[tuple[str, str], float]:
    """Log factors that the site's held-out figures ask for, where there are enough of them."""
    found: dict[tuple[str, str], list[float]] = {}
    for miss in own:
        ratio = abs(miss.log_ratio) / miss.half
        found.setdefault((miss.configuration, miss.metric), []).append(ratio)
    return {
        key: math.log(max(1e-3, float(np.quantile(of, OWN_LEVEL))))
        for key, of in sorted(found.items())
        if len(of) >= LEAST_SPREAD_ROWS
    }


def measured_here(
    calibration: InferenceCalibration, own: Sequence[OwnFigure], missed: Iterable[OwnMiss] = ()
) -> InferenceCalibration:
    """The calibration of a site with these runs: narrower, as far as they bear."""
    rule = calibration.ranges
    requested = {
        _requested_key(*key): round(value, 4) for key, value in requested_width(missed).items()
    }
    ranges = replace(rule, log_half={**rule.log_half, **requested})
    return replace(calibration, own=(*calibration.own, *own), ranges=ranges)


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
        "asked": {
            key: value
            for key, value in sorted(moved.ranges.log_half.items())
            if key not in package.ranges.log_half
        },
        "own": [
            [run.configuration, run.metric, round(run.n_halves, 4), *map(_rounded, run.at)]
            for run in moved.own
        ],
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
    requested = {key: float(str(value)) for key, value in mapping(found["asked"]).items()}
    own = tuple(OwnFigure(run[0], run[1], tuple(run[3:]), run[2]) for run in _own_of(found))
    ranges = replace(package.ranges, log_half={**package.ranges.log_half, **requested})
    return replace(moved, own=own, ranges=ranges)


def _rounded(count: float | None) -> float | None:
    return None if count is None else round(count, 3)


def _own_of(found: Mapping[str, object]) -> list[list[Any]]:
    own = found.get("own")
    return own if isinstance(own, list) else []


def _is_own(run: object) -> bool:
    """Configuration, metric, how far off, and conditions, some of them not stated."""
    if not isinstance(run, list) or len(run) != N_OWN:
        return False
    names, n_halves, *at = run[:2], *run[2:]
    is_named = all(isinstance(name, str) for name in names) and run[1] in MEANS
    return (
        is_named
        and _is_log(n_halves, MOST_HALVES)
        and all(c is None or _is_log(c, MOST_OCTAVES) for c in at)
    )


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
    for key, value in mapping(found.get("asked")).items():
        if not key.startswith("here|") or not _is_log(value):
            problems.append(Problem("asked", f"{str(key)[:60]!r} is not sound", again))
    problems += [
        Problem("own", f"{str(run)[:60]!r} is not sound", again)
        for run in _own_of(found)
        if not _is_own(run)
    ]
    return problems if _own_of(found) else [*problems, Problem("own", "missing", again)]


def _is_log(value: object, most: float = MOST_LOG) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(float(str(value))) and abs(float(str(value))) <= most
