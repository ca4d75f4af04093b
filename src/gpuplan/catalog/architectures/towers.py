"""Towers beside a text network: vision, audio, and the projectors that join them.

Speech: Whisper-like encoder-decoders, wave encoders, and audio towers of larger models.
"""

from collections.abc import Callable

from gpuplan.catalog.architectures.blocks import Block, attention_of, checked_heads, layers_of
from gpuplan.catalog.architectures.seq2seq import side_block
from gpuplan.catalog.architectures.shape import Fields, Notes
from gpuplan.catalog.architectures.vision import projector_params, vision_tower
from gpuplan.domain.model.layers import FeedForward, LayerGroup
from gpuplan.domain.model.network import Embedding, LayerStack

WAVES = ("wav2vec2", "hubert", "wavlm", "data2vec-audio", "unispeech", "unispeech-sat")
CONFORMERS = ("parakeet_ctc", "parakeet_rnnt", "parakeet_tdt", "canary")
NO_KEY_BIAS = "qvom"


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
        top.notes.assume(name, "excluded from all figures", f"it cannot be read: {first}")
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


def whisper_parts(f: Fields) -> tuple[Embedding, tuple[LayerStack, ...], int | None]:
    """Decoder and audio encoder of a Whisper-like network."""
    hidden, n_vocab = f.count("d_model"), f.count("vocab_size")
    source, target = f.count("max_source_positions"), f.count("max_target_positions")
    decoder = LayerStack(
        role="text",
        hidden_size=hidden,
        groups=(
            layers_of(
                side_block(f, hidden, "decoder", NO_KEY_BIAS),
                f.count("decoder_layers"),
                has_cross=True,
                cross_tokens=source,
            ),
        ),
        n_other_params=2 * hidden,
    )
    embedding = Embedding(
        n_vocab=n_vocab,
        n_input_params=n_vocab * hidden,
        n_position_params=target * hidden,
        is_tied=True,
        n_head_matrix_params=n_vocab * hidden,
    )
    return embedding, (decoder, audio_encoder(f)), target


def audio_encoder(f: Fields) -> LayerStack:
    """Two convolutions over the spectrogram, stored positions, plain layers."""
    hidden = f.count("d_model", "hidden_size")
    source = f.count("max_source_positions", default=1500)
    block = Block(
        hidden=hidden,
        n_heads=checked_heads(f, hidden, "encoder_attention_heads", "num_attention_heads"),
        inner=f.count("encoder_ffn_dim", "intermediate_size"),
        bias=NO_KEY_BIAS,
    )
    conv = 3 * hidden * (f.count("num_mel_bins") + hidden) + 2 * hidden
    return LayerStack(
        role="audio",
        hidden_size=hidden,
        groups=(layers_of(block, f.count("encoder_layers", "num_hidden_layers")),),
        n_other_params=conv + source * hidden + 2 * hidden,
    )


def wave_parts(f: Fields, kind: str) -> tuple[Embedding, LayerStack, int | None]:
    """Encoder over raw sound: convolutions, a projection, convolved positions, plain layers."""
    hidden = f.count("hidden_size")
    block = Block(
        hidden=hidden,
        n_heads=checked_heads(f, hidden, "num_attention_heads"),
        inner=f.count("intermediate_size"),
    )
    last = (f.wholes("conv_dim") or (1,))[-1]
    projection = 2 * last + last * hidden + hidden
    if kind == "hubert" and not f.flag("feat_proj_layer_norm", default=True):
        projection -= 2 * last
    groups, width = f.count("num_conv_pos_embedding_groups"), f.count("num_conv_pos_embeddings")
    positions = hidden * max(1, hidden // groups) * width + width + hidden
    relative = _relative(f, hidden, block.n_heads) if kind == "wavlm" else 0
    stack = LayerStack(
        role="encoder",
        hidden_size=hidden,
        groups=(layers_of(block, f.count("num_hidden_layers")),),
        n_other_params=_extractor(f) + projection + positions + 3 * hidden + relative,
    )
    return Embedding(n_vocab=f.whole("vocab_size"), n_input_params=0), stack, None


def conformer_parts(f: Fields, kind: str) -> tuple[Embedding, tuple[LayerStack, ...], int | None]:
    """A FastConformer over the spectrogram, and what writes its text.

    Beside it: one matrix for every frame (ctc), a recurrent network that joins it (rnnt, tdt), or
    a decoder that attends to it (canary).
    """
    coder = f.child("encoder_config") or f
    encoder, width, n_vocab = _conformer(coder), coder.count("hidden_size"), f.count("vocab_size")
    if kind == "canary":
        is_tied = f.flag("tie_word_embeddings", default=True)
        return _attending(f.child("decoder_config") or f, encoder, n_vocab, is_tied=is_tied)
    if kind == "parakeet_ctc":
        head = width * n_vocab
        tables = Embedding(n_vocab=n_vocab, n_input_params=0, n_output_params=head)
        return tables, (_with(encoder, n_vocab),), None
    inner, n_layers = f.count("decoder_hidden_size"), f.count("num_decoder_layers")
    n_out = n_vocab + (len(f.wholes("durations")) if kind == "parakeet_tdt" else 0)
    tables = Embedding(
        n_vocab=n_vocab, n_input_params=n_vocab * inner, n_output_params=inner * n_out
    )
    gates = 4 * (2 * inner * inner + 2 * inner)
    joins = (width + 1) * inner + (inner + 1) * inner + n_out
    return tables, (_with(encoder, n_layers * gates + joins),), None


def _conformer(f: Fields) -> LayerStack:
    """Half a feed-forward part, attention, convolution and the other half in every layer."""
    hidden, inner = f.count("hidden_size"), f.count("intermediate_size")
    bias = "qkvo" if f.flag("attention_bias", default=True) else ""
    block = Block(
        hidden=hidden, n_heads=checked_heads(f, hidden, "num_attention_heads"), inner=1, bias=bias
    )
    kernel, n_norms = f.count("conv_kernel_size"), 5 * 2 + 2 + 2  # of layers, batches, positions
    n_biases = 2 * (inner + hidden) if bias else 0
    n_biases += 4 * hidden if f.flag("convolution_bias", default=True) else 0
    group = LayerGroup(
        n_layers=f.count("num_hidden_layers"),
        mixer=attention_of(block),
        feed_forward=FeedForward(
            intermediate_size=2 * inner,
            is_gated=False,
            n_matrix_params=4 * hidden * inner + 4 * hidden * hidden,
            n_other_params=n_biases + kernel * hidden,
        ),
        n_norm_params=n_norms * hidden,
    )
    channels, n_halved = f.count("subsampling_conv_channels"), 3
    sampled = channels * (9 + 1) + (n_halved - 1) * (channels * (9 + 1) + channels * (channels + 1))
    n_rows = f.count("num_mel_bins") >> n_halved
    return LayerStack(
        role="encoder",
        hidden_size=hidden,
        groups=(group,),
        n_other_params=sampled + (channels * n_rows + 1) * hidden,
    )


def _attending(
    f: Fields, encoder: LayerStack, n_vocab: int, *, is_tied: bool
) -> tuple[Embedding, tuple[LayerStack, ...], int | None]:
    hidden, context = f.count("hidden_size"), f.count("max_position_embeddings")
    block = Block(
        hidden=hidden,
        n_heads=checked_heads(f, hidden, "num_attention_heads"),
        inner=f.count("intermediate_size"),
        is_causal=True,
    )
    layers = layers_of(block, f.count("num_hidden_layers"), has_cross=True)
    text = LayerStack(role="text", hidden_size=hidden, groups=(layers,), n_other_params=4 * hidden)
    embedding = Embedding(
        n_vocab=n_vocab,
        n_input_params=n_vocab * hidden,
        n_output_params=n_vocab * (1 if is_tied else 1 + hidden),
        is_tied=is_tied,
        n_head_matrix_params=n_vocab * hidden,
    )
    return embedding, (text, encoder), context


def _extractor(f: Fields) -> int:
    dims, kernels = f.wholes("conv_dim"), f.wholes("conv_kernel")
    total, before = 0, 1
    for dim, kernel in zip(dims, kernels, strict=False):
        total += before * dim * kernel + (dim if f.flag("conv_bias") else 0)
        before = dim
    per_layer = f.text("feat_extract_norm", default="group") == "layer"
    return total + 2 * (sum(dims) if per_layer else (dims or (0,))[0])


def _relative(f: Fields, hidden: int, heads: int) -> int:
    """Gated relative positions, a gate in each layer and one table."""
    dim = max(1, hidden // heads)
    gates = f.count("num_hidden_layers") * (heads + 8 * dim + 8)
    return gates + f.count("num_buckets", default=320) * heads
