"""Towers beside a text network: vision, audio, and the projectors that join them."""

from collections.abc import Callable

from gpuplan.catalog.architectures.blocks import Block, layers_of
from gpuplan.catalog.architectures.fields import Fields, Notes
from gpuplan.catalog.architectures.speech import audio_encoder
from gpuplan.catalog.architectures.vision import projector_params, vision_tower
from gpuplan.domain.model.network import LayerStack

# Published with a tower from another library: its size, not its shape, is known
# [timm mobilenetv5_300m].
Reader = Callable[[Fields, Fields, int], LayerStack]
MOBILENET_V5_PARAMS = 294_284_096


def towers(top: Fields, *, text_hidden: int) -> list[LayerStack]:
    """Every tower that the configuration describes."""
    found = []
    readers = (("vision_config", _vision), ("audio_config", _audio))
    for name, reader in readers:
        nested = top.child(name) if top.given(name) else None
        if nested is not None and nested.values:
            found += _tried(top, name, reader, text_hidden=text_hidden)
    return found


def _tried(top: Fields, name: str, reader: Reader, *, text_hidden: int) -> list[LayerStack]:
    """The tower; one whose figures do not suffice is told and left out, for the text can stand."""
    aside = Notes(top.notes.source)
    apart = Fields(top.values, aside, where=top.where, defaults=top.defaults)
    nested = apart.child(name)
    stack = reader(apart, nested, text_hidden) if nested is not None else None
    if aside.problems or stack is None:
        first = aside.problems[0].where if aside.problems else name
        top.notes.assume(name, "left out of all figures", f"it cannot be read: {first}")
        return []
    top.notes.assumptions += [a for a in aside.assumptions if a not in top.notes.assumptions]
    return [stack]


def _vision(top: Fields, vision: Fields, text_hidden: int) -> LayerStack:
    owner = top.text("model_type")
    if owner == "mllama":
        return _mllama(vision, text_hidden)
    if vision.text("model_type") in ("gemma3n_vision", "timm_wrapper"):
        width = vision.count("hidden_size", default=2048)
        top.notes.assume("vision tower", "MobileNet-V5, 294 M parameters", "not in config.json")
        return _opaque(width, MOBILENET_V5_PARAMS + width * text_hidden)
    tower = vision_tower(vision, owner)
    extra = projector_params(top, vision, text_hidden=text_hidden)
    return _with(tower, extra)


def _with(stack: LayerStack, n_more: int) -> LayerStack:
    return LayerStack(
        role=stack.role,
        hidden_size=stack.hidden_size,
        groups=stack.groups,
        n_other_params=stack.n_other_params + n_more,
    )


def _opaque(hidden: int, n_params: int) -> LayerStack:
    return LayerStack(role="vision", hidden_size=hidden, groups=(), n_other_params=n_params)


def _mllama(f: Fields, text_hidden: int) -> LayerStack:
    """Tiles with gated positions, local then gated global layers [Llama-3.2-Vision]."""
    hidden, inner = f.count("hidden_size"), f.count("intermediate_size")
    patch, image = f.count("patch_size"), f.count("image_size")
    n_local, n_global = f.count("num_hidden_layers"), f.count("num_global_layers")
    heads, tiles = f.count("attention_heads"), f.count("max_num_tiles")
    listed = f.values.get("supported_aspect_ratios")
    n_ratios = len(listed) if isinstance(listed, list | tuple) else 8
    block = Block(hidden=hidden, n_heads=heads, inner=inner, bias="m")
    n_patches = (image // patch) ** 2 + 1
    positions = n_patches * hidden + (n_ratios + 1) * tiles * n_patches * hidden + 1
    tile_tables = 2 * ((n_ratios + 1) * tiles * hidden + 1)
    edges = hidden + 3 * patch * patch * hidden + 4 * hidden
    projector = f.count("vision_output_dim") * text_hidden + text_hidden
    return LayerStack(
        role="vision",
        hidden_size=hidden,
        groups=(layers_of(block, n_local + n_global),),
        n_other_params=positions + tile_tables + edges + projector + 2 * n_global,
    )


def _audio(top: Fields, audio: Fields, text_hidden: int) -> LayerStack:
    owner = top.text("model_type")
    tower = audio_encoder(audio)
    if owner == "voxtral":
        wide = audio.count("intermediate_size")
        return _with(tower, wide * text_hidden + text_hidden * text_hidden)
    return _with(tower, tower.hidden_size * text_hidden + text_hidden)
