"""What single families add beside mixers and feed-forward parts: rare, counted for exactness."""

from gpuplan.catalog.architectures.shape import INNER, VOCAB, Shape, is_new_falcon

GEMMA3N = "gemma3n_text"
PER_LAYER = (GEMMA3N, "gemma4_text", "gemma4_unified_text")


def n_norms(shape: Shape) -> int:
    """Norms of hidden width in a layer."""
    f, count = shape.f, shape.family.n_norms
    if shape.model_type == "falcon":
        return _falcon_norms(shape)
    if shape.model_type == "stablelm" and f.flag("use_parallel_residual"):
        return 1
    return count


def _falcon_norms(shape: Shape) -> int:
    f = shape.f
    if is_new_falcon(f, shape.n_heads):
        return f.count("num_ln_in_parallel_attn", default=2)
    return 1 if f.flag("parallel_attn", default=True) else 2


def layer_params(shape: Shape, feed: str) -> int:
    """Parameters of one layer that stand beside its parts."""
    total = _per_layer_gate(shape)
    if shape.model_type == GEMMA3N:
        total += _altup(shape)
    if shape.model_type == "bitnet":
        total += shape.hidden + shape.f.count(*INNER)  # norms within the parts
    if shape.model_type in ("gemma4_text", "gemma4_unified_text") and feed == "moe":
        total += 3 * shape.hidden
    return total


def _per_layer_gate(shape: Shape) -> int:
    width = shape.f.whole("hidden_size_per_layer_input") if shape.model_type in PER_LAYER else 0
    return 2 * shape.hidden * width + shape.hidden if width else 0


def _altup(shape: Shape) -> int:
    """Alternating updates and the learned residual of Gemma 3n."""
    hidden, f = shape.hidden, shape.f
    streams, rank = f.count("altup_num_inputs"), f.count("laurel_rank")
    altup = streams**2 + streams**3 + streams * hidden + 2 * hidden
    return altup + 2 * hidden * rank + hidden


def special_params(shape: Shape) -> int:
    """Parameters of the network that stand beside its layers."""
    f, hidden = shape.f, shape.hidden
    total = 0
    if shape.model_type == "bloom":
        total += shape.norm(hidden)  # the embedding is normalized
    if shape.model_type == "opt":
        total += _opt(shape)
    if shape.model_type in PER_LAYER:
        total += _per_layer_table(shape)
    if shape.model_type == GEMMA3N:
        total += 2 * (f.count("altup_num_inputs") - 1) * hidden * hidden
    streams = f.whole("hc_mult")
    if streams:
        total += streams * streams * hidden + streams + 1
    return total


def _opt(shape: Shape) -> int:
    """A narrow embedding is projected; norms after the parts leave none at the end."""
    width = shape.f.count("word_embed_proj_dim", default=shape.hidden)
    total = 2 * width * shape.hidden if width != shape.hidden else 0
    is_before = shape.f.flag("do_layer_norm_before", default=True)
    return total - (0 if is_before else shape.norm(shape.hidden))


def _per_layer_table(shape: Shape) -> int:
    """A second embedding with a slice for every layer, and its projection."""
    width = shape.f.whole("hidden_size_per_layer_input")
    if not width:
        return 0
    rows = shape.f.count("vocab_size_per_layer_input", *VOCAB)
    return shape.n_layers * width * (rows + shape.hidden) + width
