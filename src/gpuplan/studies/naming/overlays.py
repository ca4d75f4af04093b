"""A user's overlay files over the packaged catalog."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gpuplan.catalog.overlay import apply_overlay
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.inputs.yaml_reader import Document, KeyPath, read_yaml, show_path


def with_overlays(catalog: Catalog, overlays: Sequence[Path]) -> Catalog:
    """The catalog with every overlay applied in turn; each override stays visible on it."""
    for path in overlays:
        document = read_yaml(path)
        catalog = apply_overlay(
            catalog, document.data, overlay=str(path), where=partial(_where, document)
        )
    return catalog


def _where(document: Document, path: KeyPath) -> str:
    """The line and the keys, as a person finds them."""
    return f"line {document.line_of(path)}, {show_path(path)}"
