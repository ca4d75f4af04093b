"""Any published configuration to the network that it describes.

Types of model for configurations that do not name one: derived tables and reduced figures.
"""

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import NamedTuple

from gpuplan.catalog.architectures.decoder import embedding, mtp_stack, text_stack
from gpuplan.catalog.architectures.diffusion import diffusion_stacks, is_diffusion
from gpuplan.catalog.architectures.encoder import ENCODERS, encoder_parts
from gpuplan.catalog.architectures.quantization import read_checkpoint
from gpuplan.catalog.architectures.recommender import RECOMMENDERS, recommender_parts
from gpuplan.catalog.architectures.seq2seq import PAIRS, T5, bart_parts, t5_parts
from gpuplan.catalog.architectures.shape import CONTEXT, Fields, Notes, class_defaults, read_shape
from gpuplan.catalog.architectures.towers import (
    CONFORMERS,
    WAVES,
    conformer_parts,
    towers,
    wave_parts,
    whisper_parts,
)
from gpuplan.catalog.architectures.vision import ALONE, DUAL, dual_parts, vision_tower
from gpuplan.csv_rows import meanings
from gpuplan.domain.model.layers import Experts, FeedForward
from gpuplan.domain.model.network import Checkpoint, Embedding, LayerStack, Model, ModelKind, Part

# Published name -> type of model, first match wins.
BY_NAME = tuple(meanings("catalog", "type_by_name").items())
BY_FEED = {"LLaMAMLP": "llama", "GptNeoxMLP": "gpt_neox", "GemmaMLP": "gemma"}
# The published checkpoints of these share the input table with the head.
TIED = (
    r"qwen2\.5-(coder-|math-)?(0\.5|1\.5|3)b|qwen3-(0\.6|1\.7|4)b|gemma|falcon-(7|40|180)b"
    r"|phi-4-mini|llama-3\.2|smollm|olmo-1b"
)


# Mixers that no noun describes yet: a count without them would be a guess.
UNREADABLE = {"rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm"}
# Families whose parts are read but not all: the miss against the library's own count.
APPROXIMATE = meanings("catalog", "approximate_family")
TEXT_PARTS = ("text_config", "llm_config", "language_config")


class Parts(NamedTuple):
    """What a reading yields before it is named."""

    kind: ModelKind
    architecture: str
    embedding: Embedding
    stacks: tuple[LayerStack, ...]
    max_context: int | None


def read_model(config: Mapping[str, object], *, name: str, source: str = "") -> Model:
    """The network that a `config.json` describes."""
    notes = Notes(name)
    top = _thinker(_top(config, notes, name))
    text = _text(top)
    model_type = top.text("model_type")
    _tell_limits(model_type or top.text("_class_name"), notes)
    parts = _reader(model_type, top.text("_class_name"))(top, text, name)
    n_layers = max((stack.n_layers for stack in parts.stacks), default=1)
    checkpoint = read_checkpoint(top, text, n_layers=min(n_layers, 4096))
    notes.raise_problems()
    return Model(
        name=name,
        kind=parts.kind,
        architecture=parts.architecture,
        embedding=parts.embedding,
        stacks=parts.stacks,
        max_context_tokens=parts.max_context,
        checkpoint=_present(checkpoint, parts),
        assumptions=tuple(notes.assumptions),
        source=source,
    )


def _tell_limits(kind: str, notes: Notes) -> None:
    if kind in UNREADABLE:
        notes.problem("model_type", f"{kind!r} cannot be read yet", "describe it by its size")
        notes.raise_problems()
    if kind in APPROXIMATE:
        notes.assume("parameter count", "approximate", f"{kind} is off by {APPROXIMATE[kind]}")


# What configurations of these classes may leave out.
CLASS_DEFAULTS: dict[str, dict[str, object]] = {
    "WanTransformer3DModel": {"qk_norm": "rms_norm_across_heads", "cross_attn_norm": True},
}
Reader = Callable[[Fields, Fields, str], Parts]


def _reader(model_type: str, class_name: str) -> Reader:
    if is_diffusion(class_name):
        return _denoiser
    kinds: list[tuple[Container[str], Reader]] = [
        (ENCODERS, _encoder),
        (ALONE, _vision),
        (DUAL, _dual),
        (T5, _pair),
        (PAIRS, _pair),
        (RECOMMENDERS, _recommender),
        (("whisper", *WAVES, *CONFORMERS), _speech),
    ]
    return next((reader for types, reader in kinds if model_type in types), _decoder)


def _decoder(top: Fields, text: Fields, name: str) -> Parts:
    model_type = text.text("model_type") or top.text("model_type")
    shape = replace(read_shape(text, model_type), cross_tokens=_image_tokens(top))
    if not shape.family.is_known:
        top.notes.assume("architecture", "Llama-like decoder", f"unknown type {model_type!r}")
    beside = towers(top, text_hidden=shape.hidden)
    stacks = (text_stack(shape), *mtp_stack(shape), *beside)
    kind: ModelKind = "vision-language" if beside else "decoder"
    tables = embedding(shape, is_tied=tied(top, text, name))
    return Parts(kind, model_type, tables, stacks, shape.max_context)


def _image_tokens(top: Fields) -> int | None:
    """Image tokens that cross-attention keeps: every tile's patches and its class vector."""
    vision = top.child("vision_config") if top.given("vision_config") else None
    if vision is None or top.text("model_type") != "mllama":
        return None
    side = vision.count("image_size") // vision.count("patch_size")
    return (side * side + 1) * vision.count("max_num_tiles", default=4)


def _denoiser(top: Fields, text: Fields, name: str) -> Parts:
    class_name = top.text("_class_name")
    stacks = diffusion_stacks(top, class_name)
    return Parts("diffusion", class_name, Embedding(n_vocab=0, n_input_params=0), stacks, None)


def _encoder(top: Fields, text: Fields, name: str) -> Parts:
    model_type = top.text("model_type")
    tables, stack, context = encoder_parts(top, model_type)
    return Parts("encoder", model_type, tables, (stack,), context)


def _vision(top: Fields, text: Fields, name: str) -> Parts:
    model_type = top.text("model_type")
    stack = replace(vision_tower(top, model_type), role="encoder")
    side = top.count("image_size", default=224) // top.count("patch_size", default=16)
    tables = Embedding(n_vocab=0, n_input_params=0)
    return Parts("vision", model_type, tables, (stack,), side * side + 1)


def _dual(top: Fields, text: Fields, name: str) -> Parts:
    model_type = top.text("model_type")
    tables, stacks = dual_parts(top, text, model_type)
    return Parts("vision-language", model_type, tables, stacks, text.maybe(*CONTEXT, least=1))


def _pair(top: Fields, text: Fields, name: str) -> Parts:
    model_type = top.text("model_type")
    if model_type in T5:
        tables, stacks, context = t5_parts(top, is_tied=tied(top, text, name))
    else:
        tables, stacks, context = bart_parts(top, model_type)
    return Parts("encoder-decoder", model_type, tables, stacks, context)


def _speech(top: Fields, text: Fields, name: str) -> Parts:
    model_type = top.text("model_type")
    if model_type not in WAVES:
        is_whisper = model_type == "whisper"
        read = whisper_parts(top) if is_whisper else conformer_parts(top, model_type)
        tables, stacks, context = read
        return Parts("speech", model_type, tables, stacks, context)
    tables, stack, context = wave_parts(top, model_type)
    return Parts("speech", model_type, tables, (stack,), context)


def _recommender(top: Fields, text: Fields, name: str) -> Parts:
    tables, stack = recommender_parts(top)
    return Parts("recommender", top.text("model_type"), tables, (stack,), None)


def _top(config: Mapping[str, object], notes: Notes, name: str) -> Fields:
    model_type = config.get("model_type")
    class_name = config.get("_class_name")
    if model_type is None and isinstance(class_name, str):
        return Fields(config, notes, defaults=CLASS_DEFAULTS.get(class_name))
    if isinstance(model_type, str) and not model_type.startswith("("):
        return Fields(config, notes, defaults=class_defaults(model_type))
    plain = Fields({k: v for k, v in config.items() if k != "model_type"}, notes)
    kind = named_type(plain, name)
    usual = class_defaults(kind)
    if model_type is not None:  # a derived table that does not record what is tied
        usual = {k: v for k, v in usual.items() if k != "tie_word_embeddings"}
    return Fields({**plain.values, "model_type": kind}, notes, defaults=usual)


def _thinker(top: Fields) -> Fields:
    """The part that understands and writes; what speaks beside it is told and left out."""
    nested = top.child("thinker_config") if top.given("thinker_config") else None
    if nested is None:
        return top
    top.notes.assume("speech output", "excluded from all figures", "only the thinker is read")
    kind = top.text("model_type")
    return Fields({"model_type": kind, **nested.values}, top.notes, where=nested.where)


def _text(top: Fields) -> Fields:
    """The text network's own part, or the whole where all stands flat."""
    if top.given(*TEXT_PARTS):
        nested = top.child(*TEXT_PARTS)
        if nested is not None:
            return _text(nested) if nested.given(*TEXT_PARTS) else nested
    usual = top.defaults.get("text_config")
    if isinstance(usual, Mapping):
        merged = {**usual, **top.defaults}
        return Fields(top.values, top.notes, defaults=merged)
    return top


def tied(top: Fields, text: Fields, name: str) -> bool:
    """Whether the head shares the input table: what is said, else what the type of model does."""
    for part in (top, text):
        if part.given("tie_word_embeddings"):
            return part.flag("tie_word_embeddings")
    # Wrappers of newer libraries say "tied" by default; published ones follow their text part.
    for part in (text, top):
        if part.defaults.get("tie_word_embeddings") is not None:
            return part.flag("tie_word_embeddings")
    is_tied = is_named_tied(name)
    assumed = "tied to the input" if is_tied else "separate"
    top.notes.assume("output table", assumed, "the configuration does not say; by its name")
    return is_tied


def _present(checkpoint: Checkpoint, parts: Parts) -> Checkpoint:
    """Only the parts that the network has."""
    there = _parts_there(parts)
    return Checkpoint(
        base=checkpoint.base,
        quantized=checkpoint.quantized,
        parts=tuple(part for part in checkpoint.parts if part in there),
        cache=checkpoint.cache,
        others=tuple((part, form) for part, form in checkpoint.others if part in there),
    )


def _parts_there(parts: Parts) -> set[Part]:
    there: set[Part] = {"embedding", "head"}
    for stack in parts.stacks:
        if stack.role in ("vision", "audio"):
            there.add("tower")
            continue
        for group in stack.groups:
            there |= {"attention"} if group.mixer or group.cross else set()
            there |= _feed_there(group.feed_forward)
    return there


def _feed_there(feed: FeedForward | Experts | None) -> set[Part]:
    if isinstance(feed, Experts):
        return {"experts", "shared_experts"} if feed.shared else {"experts"}
    return {"feed_forward"} if feed else set()


def named_type(f: Fields, name: str) -> str:
    """The type of model that this name or its feed-forward part belongs to; empty if unknown."""
    low = name.lower()
    for pattern, kind in BY_NAME:
        if re.search(pattern, low):
            f.notes.assume("type of model", kind, "the configuration names none; by its name")
            return kind
    kind = BY_FEED.get(f.text("mlp_class"), "")
    if kind:
        f.notes.assume("type of model", kind, "by its feed-forward part")
    return kind


def is_named_tied(name: str) -> bool:
    """Whether the published checkpoint of this name has one table for input and output."""
    return re.search(TIED, name.lower()) is not None
