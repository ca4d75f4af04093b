"""Names in published tables that the catalog writes otherwise: same shapes, another name."""

import re
from dataclasses import replace
from functools import lru_cache

from gpuplan.calibration.training.models import known_model
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.csv_rows import meanings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.units import TB

# Only networks of equal shape; a fine-tuned model runs as fast as its base.
SAME_SHAPE = meanings("studies.measured", "same_shape")
# A release date, a purpose or a revision in the name changes the weights, not the shape.
RELEASE = re.compile(
    r"-(?:\d{4}|thinking|instruct|chat|hf|it|base|exp|terminus|speciale)(?=-|$)", re.IGNORECASE
)
REVISION = re.compile(r"(?<=\w)-v\d+(?:\.\d+)?$", re.IGNORECASE)
SPOKEN_VERSION = re.compile(r"(?<=[a-z])[ -]v(?=\d)", re.IGNORECASE)  # `LLaMA v3.3 70B`
# Families whose name at the end of another tells what was tuned: `Hermes-3-Llama-3.1-405B`.
BASES = re.compile(
    r"(?<=-)(?:meta-)?(?:llama|mistral|mixtral|qwen|gemma|phi|yi|falcon)(?=[-\d])", re.I
)

# Names in tables that the catalog knows under another one.
ALIASES = tuple(meanings("studies.measured", "model_alias").items())
OTHER_SIZE = 0.02  # share of the parameters
BARE_SIZE = re.compile(r"\d+(\.\d+)?\s*[bmt]", re.IGNORECASE)  # 5B: of which network?


def find_measured_model(text: str) -> Model:
    """The catalog's model of this name or of the same shape."""
    name = text.rpartition("/")[2]
    for wanted in dict.fromkeys((text, *_other_spellings(name))):
        if not wanted:
            continue
        try:
            return find_model(wanted)
        except InputError:
            continue
    return find_model(text)


def _other_spellings(name: str) -> tuple[str, ...]:
    plain = RELEASE.sub("", name)
    tuned = BASES.search(name)
    base = name[tuned.start() :] if tuned else ""
    return (
        SAME_SHAPE.get(name.lower(), ""),
        plain,
        REVISION.sub("", plain),
        SPOKEN_VERSION.sub(" ", name),
        base,
        RELEASE.sub("", base),
    )


def check_named(name: str) -> None:
    """InputError where a row names no model, or a size that many networks share."""
    fix = "give the model's name, or n_layers, hidden, heads and vocab (--map n_layers:=24)"
    if not name:
        raise one(InputError, "row", "model", "is missing", fix)
    if BARE_SIZE.fullmatch(name):
        raise one(InputError, "row", "model", f"{name} is a size, not a network", fix)


def accelerator_of(text: str, catalog: Catalog) -> Accelerator:
    """The accelerator that a table means; a stated bandwidth replaces the sheet's."""
    head = re.sub(r"\s*\d+\s*gb$", "", re.split(r",| hbm| \(", text.lower())[0])
    # Some tables give the family first and the part in brackets: "Blackwell GPU (B200-SXM)".
    inside = re.search(r"\((.+)\)", text)
    for name in (text, head, re.sub(r"-\d+gb$", "", inside[1].lower()) if inside else head):
        try:
            accelerator = find_accelerator(name, catalog).accelerator
            break
        except PlannerError as error:
            refusal = error
    else:
        raise refusal
    stated = re.search(r"(\d+(?:\.\d+)?)\s*tb/s", text.lower())
    if stated is None:
        return accelerator
    memory = replace(accelerator.memory, bytes_per_s=float(stated[1]) * TB)
    return replace(accelerator, memory=memory)


@lru_cache(maxsize=512)
def named_model(name: str) -> Model:
    """By catalog or alias; by the dimensions of papers where the catalog has another size."""
    for pattern, better in ALIASES:
        if re.search(pattern, name.lower()):
            name = re.sub(pattern, better, name.lower())
            break
    known = known_model(name)
    try:
        found = find_measured_model(name)
    except PlannerError:
        if known is None:
            raise
        return known
    is_other = known is not None and abs(found.n_params / known.n_params - 1) > OTHER_SIZE
    return known if known is not None and is_other else found
