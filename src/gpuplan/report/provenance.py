"""Assumptions, cautions and overrides, the same in every document."""

from collections.abc import Sequence

from gpuplan.domain.provenance import Assumption, Override

SCHEMA_VERSION = "1.0"


def assumptions_document(assumptions: Sequence[Assumption]) -> list[dict[str, str]]:
    """Every value that the user did not give, with the flag that changes it."""
    return [
        {"what": a.what, "value": a.value, "why": a.why, "change": a.change, "source": a.source}
        for a in assumptions
    ]


def overrides_document(overrides: Sequence[Override]) -> list[dict[str, str]]:
    """Every catalog fact that an overlay replaced."""
    return [
        {
            "item": o.item,
            "quantity": o.quantity,
            "catalog_value": o.catalog_value,
            "overlay_value": o.overlay_value,
            "overlay": o.overlay,
        }
        for o in overrides
    ]


def assumption_lines(assumptions: Sequence[Assumption]) -> tuple[str, ...]:
    """One line each, for a terminal."""
    return tuple(
        f"{a.what}: {a.value} ({a.why}{'; change with ' + a.change if a.change else ''})"
        for a in assumptions
    )


def override_lines(overrides: Sequence[Override]) -> tuple[str, ...]:
    """One line each, for a terminal."""
    return tuple(
        f"{o.item} {o.quantity}: {o.overlay_value} from {o.overlay}"
        + (f" instead of {o.catalog_value}" if o.catalog_value else "")
        for o in overrides
    )
