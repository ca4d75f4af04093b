"""Limits that a fleet must keep to, for a gate in continuous integration."""

from gpuplan.domain.telemetry.diagnosis import Diagnosis, ScoreLimits
from gpuplan.errors import Problem
from gpuplan.units import MONTH

SEVERITY = ("fine", "note", "waste", "slow", "fault")


def score(found: Diagnosis, limits: ScoreLimits) -> tuple[Problem, ...]:
    """Every limit that is broken, or that nothing was measured for."""
    use, quality = found.use, found.quality
    checks = (
        ("precision", quality.precision_frac, limits.precision_frac, "least"),
        ("recall", quality.recall_frac, limits.recall_frac, "least"),
        ("peak", use.peak_frac if use else None, limits.peak_frac, "most"),
        ("mean", use.mean_frac if use else None, limits.mean_least_frac, "least"),
    )
    broken = [
        one
        for name, value, limit, kind in checks
        if (one := _check(name, value, limit, kind)) is not None
    ]
    return (*broken, *_waste(found, limits), *_verdicts(found, limits))


def _check(name: str, found: float | None, limit: float | None, kind: str) -> Problem | None:
    if limit is None:
        return None
    if found is None:
        return Problem(name, "nothing was measured for it", "give telemetry that holds it")
    # A share read as 95 % is 0.95, whatever its last bits say.
    is_kept = found >= limit - 1e-9 if kind == "least" else found <= limit + 1e-9
    if is_kept:
        return None
    return Problem(name, f"{found:.1%}", f"{limit:.1%} at {kind}")


def _waste(found: Diagnosis, limits: ScoreLimits) -> tuple[Problem, ...]:
    if limits.waste_usd_per_month is None or found.use is None:
        return ()
    if any(one.usd is None for one in found.waste) or not found.use.span_s:
        return (Problem("waste", "has no price", "give --usd-per-h"),)
    per_month = sum(one.usd or 0.0 for one in found.waste) * MONTH / found.use.span_s
    if per_month <= limits.waste_usd_per_month:
        return ()
    fix = f"{limits.waste_usd_per_month:,.0f} USD a month at most"
    return (Problem("waste", f"{per_month:,.0f} USD a month", fix),)


def _verdicts(found: Diagnosis, limits: ScoreLimits) -> tuple[Problem, ...]:
    if limits.worst is None:
        return ()
    least = SEVERITY.index(limits.worst)
    return tuple(
        Problem(verdict.cause, verdict.title, verdict.actions[0].what)
        for verdict in found.verdicts
        if SEVERITY.index(verdict.severity) >= least and verdict.severity != "fine"
    )
