"""The checks, by the chapters of the documents; importing this registers all of them."""

from requirements.checks import (  # noqa: F401
    cost,
    drawn,
    foundations,
    internals,
    metrics,
    operation,
    production,
    scaling,
    scope,
    storage,
    worked,
)
