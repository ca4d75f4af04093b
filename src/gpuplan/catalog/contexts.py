"""The longest context of a model of the catalog: published, or not known."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from gpuplan.catalog.architectures.shape import CONTEXT
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Assumption

# Their classes fix the length, whatever a configuration says.
FIXED_LENGTH = ("encoder", "encoder-decoder", "speech", "vision", "diffusion", "recommender")


def with_context(model: Model, config: Mapping[str, object]) -> Model:
    """The published context; one that only the class's default tells is not known.

    Stored figures leave out what a shape does not need, so what is missing there was published.
    """
    published = published_contexts().get(model.name)
    if published is not None:
        return replace(model, max_context_tokens=published)
    inner = [part for part in config.values() if isinstance(part, dict)]
    is_reported = any(key in part for key in CONTEXT for part in (config, *inner))
    if is_reported or model.max_context_tokens is None or model.kind in FIXED_LENGTH:
        return model
    why = "the catalog has no published figure: the model's own limit is not checked"
    change = "the path of its config.json"
    note = Assumption(what="longest context", value="not known", why=why, change=change)
    return replace(model, max_context_tokens=None, assumptions=(*model.assumptions, note))


@cache
def published_contexts() -> dict[str, int]:
    """Longest contexts that configurations leave out, in tokens by id."""
    rows = packaged_rows("gpuplan.catalog", "data/model_contexts.csv")
    return {row["id"]: int(row["context_tokens"]) for row in rows}
