"""Publications that the market tables cite, in: sources_market.toml; out: Source nouns by key."""

import tomllib
from functools import cache
from importlib.resources import files

from gpuplan.domain.provenance import Source


@cache
def read_market_sources() -> dict[str, Source]:
    """The sources of offers, regions and the software matrix, by key."""
    path = files("gpuplan.catalog").joinpath("data", "sources_market.toml")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return {key: Source(key=key, **entry) for key, entry in entries.items()}
