"""Leaving engines of every kind behind three names: see kinds.py."""

from typing import Any

from gpuplan.simulation.serving.kernels.engine.featured import AnyEngine, FeaturedEngine
from gpuplan.simulation.serving.kernels.engine.featured_removal import (
    abort_featured,
    empty_featured,
    spend_featured,
)
from gpuplan.simulation.serving.kernels.engine.removal import abort as abort_plain
from gpuplan.simulation.serving.kernels.engine.removal import empty as empty_plain
from gpuplan.simulation.serving.kernels.engine.removal import spend as spend_plain
from gpuplan.simulation.serving.kernels.jit.compiled import by_kind


def abort(e: AnyEngine, i: int) -> None:
    """The request leaves between two steps, wherever it is."""
    (abort_featured if isinstance(e, FeaturedEngine) else abort_plain)(e, i)


def spend(e: AnyEngine, until: int) -> None:
    """The engine dies at this instant: busy until then, with the step in progress lost."""
    (spend_featured if isinstance(e, FeaturedEngine) else spend_plain)(e, until)


def empty(e: AnyEngine, now: int) -> None:
    """A fresh engine at this instant; what it has counted stays."""
    (empty_featured if isinstance(e, FeaturedEngine) else empty_plain)(e, now)


def _abort(e: Any, i: Any) -> Any:
    def featured(e: Any, i: Any) -> Any:
        return abort_featured(e, i)

    def plain(e: Any, i: Any) -> Any:
        return abort_plain(e, i)

    return featured if e.instance_class is FeaturedEngine else plain


def _spend(e: Any, until: Any) -> Any:
    def featured(e: Any, until: Any) -> Any:
        return spend_featured(e, until)

    def plain(e: Any, until: Any) -> Any:
        return spend_plain(e, until)

    return featured if e.instance_class is FeaturedEngine else plain


def _empty(e: Any, now: Any) -> Any:
    def featured(e: Any, now: Any) -> Any:
        return empty_featured(e, now)

    def plain(e: Any, now: Any) -> Any:
        return empty_plain(e, now)

    return featured if e.instance_class is FeaturedEngine else plain


by_kind(_abort, abort)
by_kind(_spend, spend)
by_kind(_empty, empty)
