"""A user's overlay files over the packaged catalog."""

from collections.abc import Sequence
from pathlib import Path

from gpuplan.catalog.overlay import apply_overlay
from gpuplan.domain.catalog import Catalog
from gpuplan.inputs.yaml_reader import read_yaml


def with_overlays(catalog: Catalog, overlays: Sequence[Path]) -> Catalog:
    """The catalog with every overlay applied in turn; each override stays visible on it."""
    for path in overlays:
        catalog = apply_overlay(catalog, read_yaml(path).data, overlay=str(path))
    return catalog
