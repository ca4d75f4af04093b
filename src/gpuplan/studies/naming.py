"""Names as people type them to nouns of the catalog: models, accelerators, formats, overlays."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.model_names import without_part
from gpuplan.catalog.models import find_model, is_model_name, may_be_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.overlay import apply_overlay
from gpuplan.catalog.place_names import find_cloud, places_named
from gpuplan.catalog.vision import nearest_vision, vision_model
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS, NumberFormat, format_named
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.terms import Choice, Policy
from gpuplan.errors import InputError, Problem, one
from gpuplan.inputs.documents.document import Document, KeyPath, show_path
from gpuplan.inputs.documents.problems import Finding, refuse
from gpuplan.inputs.documents.yaml_reader import read_yaml
from gpuplan.inputs.scenario.read import scenario_document, scenario_of
from gpuplan.inputs.words.lexicon import Lexicon, NamedModel

MIN_NAME = 2
N_TEXTS = 4096  # pieces of descriptions whose names a server keeps
COMMON_WORDS = ("do",)  # that are names of clouds too
KINDS = ("tpu", "cpu", "gaudi", "trainium", "inferentia")  # as their ids begin


def allowed_ids(
    policy: Policy, catalog: Catalog
) -> tuple[tuple[frozenset[str], frozenset[str]], tuple[Assumption, ...]]:
    """Accelerators that the policy names, as the catalog calls them; none allowed: all are."""
    notes: list[Assumption] = []

    def ids(names: Sequence[str]) -> frozenset[str]:
        groups = [group_ids(name, catalog) for name in names]
        single = [name for name, group in zip(names, groups, strict=True) if not group]
        choices = [find_accelerator(name, catalog) for name in single]
        notes.extend(a for choice in choices for a in choice.assumptions)
        found = {str(choice.accelerator.id) for choice in choices}
        return frozenset(found.union(*groups))

    allowed, forbidden = ids(policy.accelerators.allowed), ids(policy.accelerators.forbidden)
    return (allowed, forbidden), tuple(notes)


def group_ids(name: str, catalog: Catalog) -> frozenset[str]:
    """What a vendor or a kind (tpu, cpu, gaudi …) stands for; empty: the name is neither."""
    word = name.strip().casefold()
    return frozenset(
        str(card.id)
        for card in catalog.accelerators.values()
        if (word == card.vendor.casefold() and not str(card.id).startswith("cpu-"))
        or (word in KINDS and str(card.id).startswith(word))
    )


def plannable(catalog: Catalog, scenario: Scenario) -> Catalog:
    """What plans may choose from: an announced accelerator only where the scenario names it."""
    choice = scenario.policy.accelerators
    names = {*choice.allowed, *choice.forbidden}
    names |= {nodes.accelerator for nodes in scenario.owned}
    names |= {price.accelerator for price in scenario.prices.hardware}
    names |= {offer.accelerator for offer in scenario.prices.offers}
    names |= {each.accelerator for work in scenario.workloads for each in work.capacities}
    return catalog.on_sale({found for name in names if (found := _id(name, catalog))})


def _id(name: str, catalog: Catalog) -> str | None:
    """The one accelerator of this name; None: it names a group, an offer, or none."""
    if group_ids(name, catalog):
        return None
    try:
        return str(find_accelerator(name, catalog).accelerator.id)
    except InputError:
        return None


def lexicon(store: Path | None = None) -> Lexicon:
    """What descriptions in words need of the catalog."""
    return Lexicon(
        model=lambda text: _described_model(text, store),
        card=_card,
        cloud=_cloud,
        place=_place,
        nearest_models=_nearest_models,
    )


@lru_cache(maxsize=N_TEXTS)
def _described_model(text: str, store: Path | None) -> NamedModel | None:
    """The model of a text that is surely a name: whole, common, or with a number in it."""
    is_name = is_model_name(text) or (any(map(str.isdigit, text)) and text[:1].isalpha())
    if not is_name or len(text) < MIN_NAME or group_ids(text, read_catalog()):
        return None
    try:
        if store is None and not may_be_model(text) and vision_model(text) is None:
            return None
        model = model_named(text, store)
    except InputError:
        return None
    why = next((note.why for note in model.assumptions if note.what == "model"), "")
    stored = [note.value for note in model.assumptions if note.what == "stored precision"]
    name = text if stored else without_part(model.name)
    return NamedModel(name, model.kind, why, model.max_context_tokens)


def _nearest_models(text: str) -> str:
    try:
        return f"it is {find_model(text).name}"
    except InputError as error:
        return error.problems[0].fix


@lru_cache(maxsize=N_TEXTS)
def _card(text: str) -> str | None:
    """An accelerator, vendor or kind as typed, without the ending of a plural."""
    catalog, single = read_catalog(), text.removesuffix("s")
    for name in dict.fromkeys((text, single)):
        if group_ids(name, catalog):
            return name
    try:
        choice = find_accelerator(text, catalog)
    except InputError:
        return None
    is_plural = _id(single, catalog) == str(choice.accelerator.id)
    return None if choice.n_accelerators != 1 else single if is_plural else text


@lru_cache(maxsize=N_TEXTS)
def _cloud(text: str) -> str | None:
    if text.strip().casefold() in COMMON_WORDS:
        return None
    try:
        return find_cloud(text)
    except InputError:
        return None


@lru_cache(maxsize=N_TEXTS)
def _place(text: str) -> str | None:
    """A country, the European Union or a region by its id; as typed where it is several."""
    try:
        found = places_named(text)
    except InputError:
        return None
    return found[0] if len(found) == 1 else text


def with_known_places(scenario: Scenario) -> Scenario:
    """The scenario with clouds and regions of its policy by the ids that offers use."""
    policy = scenario.policy
    clouds = _chosen(policy.clouds, lambda name: (find_cloud(name),))
    regions = _chosen(policy.regions, places_named)
    return replace(scenario, policy=replace(policy, clouds=clouds, regions=regions))


def _chosen(choice: Choice, find: Callable[[str], tuple[str, ...]]) -> Choice:
    allowed, forbidden = (
        tuple(dict.fromkeys(id for name in names for id in find(name)))
        for names in (choice.allowed, choice.forbidden)
    )
    return Choice(allowed=allowed, forbidden=forbidden)


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
        if config is not None:
            return read_model(config, name=text, source="fetched by catalog update")
        network, near = vision_model(text), nearest_vision(text)
        if network is None and near:
            which = f"say which: {', '.join(near)}"
            raise one(InputError, "model", text, "could be several networks", which) from None
        if network is None:
            raise
        return network


def read_known_scenario(path: Path, store: Path | None = None) -> Scenario:
    """The scenario of a file, whose models and accelerators the catalog knows."""
    document = scenario_document(path)
    scenario = scenario_of(document, folder=path.parent)
    refuse_unknown(scenario, document, read_catalog(), store)
    return with_known_places(scenario)


def refuse_unknown(
    scenario: Scenario, document: Document, catalog: Catalog, store: Path | None = None
) -> None:
    """Raise InputError with every name that the catalog lacks, each at its line."""
    found: list[Finding] = []
    for i, work in enumerate(scenario.workloads):
        # What is known of a workload's speed stands in for its model.
        if work.model is not None and work.model.name is not None and not work.capacities:
            name = work.model.name
            found += _unknown(("workloads", i, "model"), name, lambda n: model_named(n, store))
    choice = scenario.policy.accelerators
    for part in ("allowed", "forbidden"):
        for name in getattr(choice, part):
            path: KeyPath = ("policy", "accelerators", part)
            found += _unknown(path, name, lambda n: _accelerators(n, catalog))
    for key, of, find in (
        ("clouds", scenario.policy.clouds, find_cloud),
        ("regions", scenario.policy.regions, places_named),
    ):
        for name in (*of.allowed, *of.forbidden):
            found += _unknown(("policy", key), name, find)
    for i, nodes in enumerate(scenario.owned):
        path = ("owned", i, "accelerator")
        found += _unknown(path, nodes.accelerator, lambda n: find_accelerator(n, catalog))
    refuse(document, found)


def _accelerators(name: str, catalog: Catalog) -> object:
    return group_ids(name, catalog) or find_accelerator(name, catalog)


def _unknown(path: KeyPath, name: str, find: Callable[[str], object]) -> list[Finding]:
    try:
        find(name)
    except InputError as error:
        first = error.problems[0]
        return [Finding(path, f"{name!r} {first.what}", first.fix)]
    return []


def formats_named(
    verb: str, precision: str | None, cache_precision: str | None
) -> tuple[NumberFormat | None, NumberFormat | None]:
    """The formats of weights and cache; None is what was left out."""
    found: list[NumberFormat | None] = []
    problems: list[Problem] = []
    for flag, name in (("--precision", precision), ("--kv-precision", cache_precision)):
        try:
            found.append(one_format(verb, flag, name) if name else None)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(verb, problems)
    return found[0], found[1]


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
