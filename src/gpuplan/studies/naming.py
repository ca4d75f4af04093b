"""Names as people type them to nouns of the catalog: models, accelerators, formats, overlays."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.overlay import apply_overlay
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS, NumberFormat, format_named
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.terms import Policy
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document, KeyPath, show_path
from gpuplan.inputs.documents.yaml_reader import read_yaml

KINDS = ("tpu", "cpu", "gaudi", "trainium", "inferentia")  # as their ids begin


def allowed_ids(
    policy: Policy, catalog: Catalog
) -> tuple[tuple[frozenset[str], frozenset[str]], tuple[Assumption, ...]]:
    """Accelerators that the policy names, as the catalog calls them; none allowed: all are."""
    told: list[Assumption] = []

    def ids(names: Sequence[str]) -> frozenset[str]:
        groups = [group_ids(name, catalog) for name in names]
        single = [name for name, group in zip(names, groups, strict=True) if not group]
        choices = [find_accelerator(name, catalog) for name in single]
        told.extend(a for choice in choices for a in choice.assumptions)
        found = {str(choice.accelerator.id) for choice in choices}
        return frozenset(found.union(*groups))

    allowed, forbidden = ids(policy.accelerators.allowed), ids(policy.accelerators.forbidden)
    return (allowed, forbidden), tuple(told)


def group_ids(name: str, catalog: Catalog) -> frozenset[str]:
    """What a vendor or a kind (tpu, cpu, gaudi …) stands for; empty: the name is neither."""
    word = name.strip().casefold()
    return frozenset(
        str(card.id)
        for card in catalog.accelerators.values()
        if (word == card.vendor.casefold() and not str(card.id).startswith("cpu-"))
        or (word in KINDS and str(card.id).startswith(word))
    )


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


def formats_named(
    verb: str, precision: str | None, cache_precision: str | None
) -> tuple[NumberFormat | None, NumberFormat | None]:
    """The formats of weights and cache; None is what was left out."""
    flags = (("--precision", precision), ("--kv-precision", cache_precision))
    weights, kept = (one_format(verb, flag, name) if name else None for flag, name in flags)
    return weights, kept


def one_format(verb: str, where: str, name: str) -> NumberFormat:
    """The format of this name; InputError that names the nearest where there is none."""
    form = format_named(name)
    if form is not None:
        return form
    near = get_close_matches(name.strip().lower(), FORMATS, n=2, cutoff=0.5)
    fix = f"use {' or '.join(near)}; " if near else ""
    known = ", ".join(sorted(FORMATS))
    raise InputError(verb, [Problem(where, f"got {name!r}", f"{fix}known are {known}")])


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
