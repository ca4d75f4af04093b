"""Are the models sound? In: the catalog's models; out: findings, one function per rule.

Published counts stand in `data/model_params.csv`, published contexts in `data/model_contexts.csv`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from gpuplan.catalog.contexts import published_contexts
from gpuplan.catalog.model_names import take_apart, without_part
from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.model.layers import Attention
from gpuplan.domain.model.network import Model
from gpuplan.domain.system.findings import Finding, error

COUNT_SLACK = 0.005
REPAIR = "compare its row in models.jsonl with the publisher's config.json"


class Checked(NamedTuple):
    """A rule, how many rows it looked at, and what it found."""

    rule: str
    n_rows: int
    findings: tuple[Finding, ...]


def check_models() -> tuple[Finding, ...]:
    """What every rule objects to."""
    return tuple(finding for one in _checked() for finding in one.findings)


def looked_at() -> dict[str, int]:
    """Models that each rule looks at."""
    return {one.rule: one.n_rows for one in _checked()}


@cache
def _checked() -> tuple[Checked, ...]:
    models = [find_model(name) for name in models_in_catalog()]
    return tuple(rule(models) for rule in RULES)


def counted_as_published(models: Sequence[Model]) -> Checked:
    """The architecture's parameters agree with the published count within 0.5 %."""
    rows = packaged_rows("gpuplan.catalog", "data/model_params.csv")
    published = {row["id"]: float(row["params"]) for row in rows}
    known = [model for model in models if model.name in published]
    wrong = [
        _error("model-params", model, f"{model.n_params:,} parameters, published {count:,.0f}")
        for model in known
        if abs(model.n_params / (count := published[model.name]) - 1) > COUNT_SLACK
    ]
    return Checked("model-params", len(known), tuple(wrong))


def context_as_published(models: Sequence[Model]) -> Checked:
    """A context is the published one and never below the sliding window."""
    published = published_contexts()
    known = [model for model in models if model.max_context_tokens is not None]
    wrong = [*_unlike(known, published), *_below_window(known)]
    return Checked("model-context", len(known), tuple(wrong))


def _unlike(models: Sequence[Model], published: dict[str, int]) -> Iterator[Finding]:
    for model in models:
        tokens = published.get(model.name, model.max_context_tokens)
        if tokens != model.max_context_tokens:
            what = f"context of {model.max_context_tokens}, published {tokens}"
            yield _error("model-context", model, what)


def _below_window(models: Sequence[Model]) -> Iterator[Finding]:
    for model in models:
        windows = [mixer.window_tokens or 0 for mixer in _attentions(model)]
        if max(windows, default=0) > (model.max_context_tokens or 0):
            what = f"window of {max(windows)} above its context of {model.max_context_tokens}"
            yield _error("model-context", model, what)


def heads_divide(models: Sequence[Model]) -> Checked:
    """KV heads divide the attention heads of every layer."""
    wrong = [
        _error("model-heads", model, f"{mixer.n_kv_heads} KV heads of {mixer.n_heads}")
        for model in models
        for mixer in _attentions(model)
        if mixer.n_kv_heads < 1 or mixer.n_heads % mixer.n_kv_heads
    ]
    return Checked("model-heads", len(models), tuple(wrong))


def twins_agree(models: Sequence[Model]) -> Checked:
    """Ids that differ by publisher, case or words such as instruct mean networks of one size."""
    sizes: dict[tuple[object, ...], Model] = {}
    wrong = []
    for model in models:
        key = twin_key(model.name)
        other = sizes.setdefault(key, model)
        if abs(model.n_params / other.n_params - 1) > COUNT_SLACK:
            wrong.append(_error("model-twins", model, f"not the size of its twin {other.name}"))
    return Checked("model-twins", len(models), tuple(wrong))


def ids_stand_for_themselves(models: Sequence[Model]) -> Checked:
    """A whole id means its own checkpoint: no relative, no other precision."""
    ids = models_in_catalog()
    wrong = [
        _error("model-id", model, f"the id {name} leads elsewhere")
        for name, model in zip(ids, models, strict=True)
        if without_part(model.name) != without_part(name)
    ]
    return Checked("model-id", len(models), tuple(wrong))


def aliases_lead_to_one(_models: Sequence[Model]) -> Checked:
    """A short name and the id that it stands for give one model."""
    rows = packaged_rows("gpuplan.catalog", "data/aliases.csv")
    pairs = [(find_model(row["alias"]), find_model(row["id"]), row["alias"]) for row in rows]
    wrong = [
        _error("model-alias", one, f"{alias!r} is not {other.name}")
        for one, other, alias in pairs
        if (one.stacks, one.checkpoint) != (other.stacks, other.checkpoint)
    ]
    return Checked("model-alias", len(pairs), tuple(wrong))


def sourced(models: Sequence[Model]) -> Checked:
    """No model is without a source."""
    wrong = [_error("model-source", model, "has no source") for model in models if not model.source]
    return Checked("model-source", len(models), tuple(wrong))


def twin_key(name: str) -> tuple[object, ...]:
    """The words of an id as the resolver of names takes them apart."""
    taken = take_apart(name)
    return (*sorted(taken.words), taken.precision)


def _attentions(model: Model) -> list[Attention]:
    return [g.mixer for g in model.main.groups if isinstance(g.mixer, Attention)]


def _error(rule: str, model: Model, what: str) -> Finding:
    return error(rule, model.name, what, REPAIR)


RULES = (
    counted_as_published,
    context_as_published,
    heads_divide,
    twins_agree,
    ids_stand_for_themselves,
    aliases_lead_to_one,
    sourced,
)
