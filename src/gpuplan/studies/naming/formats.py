"""Formats by name, every unknown word told at once."""

from gpuplan.domain.model.precision import FORMATS, NumberFormat, format_named
from gpuplan.errors import InputError, Problem


def formats_named(
    verb: str, precision: str | None, cache_precision: str | None
) -> tuple[NumberFormat | None, NumberFormat | None]:
    """The formats of weights and cache; None is what was left out."""
    found, problems = [], []
    for flag, name in (("--precision", precision), ("--kv-precision", cache_precision)):
        form = format_named(name) if name else None
        if name and form is None:
            known = ", ".join(sorted(FORMATS))
            problems.append(Problem(flag, f"got {name!r}", f"use one of {known}"))
        found.append(form)
    if problems:
        raise InputError(verb, problems)
    return found[0], found[1]
