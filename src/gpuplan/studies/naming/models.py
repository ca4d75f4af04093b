"""A model by name: from the package, from a file, or from what an update has fetched."""

from pathlib import Path

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.domain.model.network import Model
from gpuplan.errors import InputError


def model_named(text: str, store: Path | None = None) -> Model:
    """The model; a fetched config answers where the package has none of that id."""
    try:
        return find_model(text)
    except InputError:
        # What fetches models loads a network stack: few plans need it.
        from gpuplan.catalog.update.models import (  # noqa: PLC0415
            MODEL_ID,
            stored_model_config,
        )

        is_id = MODEL_ID.fullmatch(text) is not None and ".." not in text and "--" not in text
        config = stored_model_config(store, text) if store and is_id else None
        if config is None:
            raise
        return read_model(config, name=text, source="fetched by catalog update")
