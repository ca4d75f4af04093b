"""Speech: Whisper-like encoder-decoders, wave encoders, and audio towers of larger models."""

from gpuplan.catalog.architectures.blocks import Block, checked_heads, layers_of
from gpuplan.catalog.architectures.fields import Fields
from gpuplan.catalog.architectures.seq2seq import side_block
from gpuplan.domain.model.network import Embedding, LayerStack

WAVES = ("wav2vec2", "hubert", "wavlm", "data2vec-audio", "unispeech", "unispeech-sat")
NO_KEY_BIAS = "qvom"


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
