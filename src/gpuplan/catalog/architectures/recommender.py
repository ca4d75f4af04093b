"""Recommenders of the DLRM kind: tables of embeddings, a network over the dense features, their
interaction, and a network over all of it.
"""

from collections.abc import Sequence
from itertools import pairwise

from gpuplan.catalog.architectures.shape import Fields
from gpuplan.domain.model.layers import FeedForward, LayerGroup
from gpuplan.domain.model.network import Embedding, LayerStack

RECOMMENDERS = ("dlrm",)


def recommender_parts(f: Fields) -> tuple[Embedding, LayerStack]:
    """The tables, looked up, and the dense layers, multiplied, of one user and item."""
    width, rows = f.count("embedding_dim"), f.wholes("num_embeddings_per_feature")
    n_read = sum(f.wholes("multi_hot_sizes")) or len(rows)
    bottom = (f.count("dense_in_features"), *f.wholes("dense_arch_layer_sizes"))
    n_vectors = len(rows) + 1
    crossed, n_cross = 0, f.whole("dcn_num_layers")
    if n_cross:  # every feature beside every other: layers of low rank that keep the width
        joined = n_vectors * width
        crossed = n_cross * 2 * joined * f.count("dcn_low_rank_dim")
    else:  # products of all pairs
        joined = width + n_vectors * (n_vectors - 1) // 2
    top = (joined, *f.wholes("over_arch_layer_sizes"))
    n_matrix = _products(bottom) + crossed + _products(top)
    n_biases = sum(bottom[1:]) + sum(top[1:]) + n_cross * joined
    layer = FeedForward(
        intermediate_size=max(top),
        is_gated=False,
        n_matrix_params=n_matrix,
        n_other_params=n_biases,
    )
    stack = LayerStack(
        role="encoder", hidden_size=width, groups=(LayerGroup(n_layers=1, feed_forward=layer),)
    )
    tables = Embedding(
        n_vocab=sum(rows), n_input_params=sum(rows) * width, n_rows_per_sample=n_read
    )
    return tables, stack


def _products(widths: Sequence[int]) -> int:
    return sum(one * two for one, two in pairwise(widths))
