"""Small configurations of every kind of network, counted by hand, matrix by matrix."""

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.errors import InputError

HIDDEN, LAYERS, HEADS, INNER, VOCAB = 64, 3, 4, 160, 1000
HEAD = HIDDEN // HEADS
TABLE = VOCAB * HIDDEN
SQUARE = HIDDEN * HIDDEN
DECODER = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "intermediate_size": INNER,
    "vocab_size": VOCAB,
    "max_position_embeddings": 512,
}
GROUPED = 2 * SQUARE + 2 * HIDDEN * 2 * HEAD  # query and output whole, two heads of keys and values
GATED = 3 * HIDDEN * INNER
NORMS = 2 * HIDDEN


def count(model_type: str, **changes: object) -> int:
    config = {**DECODER, "model_type": model_type, "tie_word_embeddings": False, **changes}
    return read_model(config, name="made-up/by-hand").n_params


def decoder(layer: int) -> int:
    """So much a layer, two tables, and one norm at the end."""
    return LAYERS * layer + 2 * TABLE + HIDDEN


def test_llama_has_grouped_heads_and_a_gate():
    assert count("llama") == decoder(GROUPED + GATED + NORMS)


def test_llama_with_as_many_keys_as_heads_has_four_squares():
    found = count("llama", num_key_value_heads=HEADS)
    assert found == decoder(4 * SQUARE + GATED + NORMS)


def test_a_head_size_of_its_own_widens_all_four_matrices():
    wide = 32
    attention = 2 * HIDDEN * HEADS * wide + 2 * HIDDEN * 2 * wide
    assert count("llama", head_dim=wide) == decoder(attention + GATED + NORMS)


def test_biases_are_counted_where_the_configuration_has_them():
    bias = 2 * HIDDEN + 2 * 2 * HEAD  # of query, output, keys and values
    assert count("llama", attention_bias=True) - count("llama") == LAYERS * bias
    assert count("llama", mlp_bias=True) - count("llama") == LAYERS * (2 * INNER + HIDDEN)


def test_qwen2_has_biases_on_queries_keys_and_values_whatever_is_said():
    assert count("qwen2") - count("llama") == LAYERS * (HIDDEN + 2 * 2 * HEAD)


def test_qwen3_norms_queries_and_keys_by_head():
    given = count("qwen3", head_dim=HEAD)
    assert given - count("llama") == LAYERS * 2 * HEAD


def test_gemma_2_has_four_norms_a_layer():
    assert count("gemma2", head_dim=HEAD) - count("gemma", head_dim=HEAD) == LAYERS * 2 * HIDDEN


def test_tied_tables_are_one():
    assert count("llama") - count("llama", tie_word_embeddings=True) == TABLE


def test_gpt_2_has_positions_biases_and_no_gate():
    config = {
        "model_type": "gpt2",
        "n_embd": HIDDEN,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "vocab_size": VOCAB,
        "n_positions": 128,
    }
    attention = 4 * SQUARE + 4 * HIDDEN
    feed = 2 * HIDDEN * 4 * HIDDEN + 4 * HIDDEN + HIDDEN
    layer = attention + feed + 2 * 2 * HIDDEN
    expected = TABLE + 128 * HIDDEN + LAYERS * layer + 2 * HIDDEN
    assert read_model(config, name="x").n_params == expected


MOE = {"num_local_experts": 8, "num_experts_per_tok": 2}


def test_every_expert_is_stored_and_two_of_them_work():
    config = {**DECODER, **MOE, "model_type": "mixtral", "tie_word_embeddings": False}
    model = read_model(config, name="x")
    router = HIDDEN * 8
    assert model.n_params == decoder(GROUPED + 8 * GATED + router + NORMS)
    assert model.n_params - model.n_active_params == LAYERS * 6 * GATED
    assert model.is_moe


def test_a_dense_model_works_with_all_that_it_stores():
    model = read_model({**DECODER, "model_type": "llama"}, name="x")
    assert not model.is_moe
    assert model.n_active_params == model.n_params


LATENT = {
    "model_type": "deepseek_v2",
    "q_lora_rank": None,
    "kv_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 12,
    "num_key_value_heads": HEADS,
    "first_k_dense_replace": LAYERS,
    "tie_word_embeddings": False,
}
UP = 24 * HEADS * (16 + 12)  # keys and values out of the latent vector
DOWN = HIDDEN * (24 + 8)
OUT = HEADS * 12 * HIDDEN


def test_latent_attention_is_a_way_down_and_a_way_up():
    model = read_model({**DECODER, **LATENT}, name="x")
    queries = HIDDEN * HEADS * (16 + 8)
    attention = queries + DOWN + UP + OUT + 24  # the latent vector has a norm
    assert model.n_params == decoder(attention + GATED + NORMS)


def test_latent_queries_have_a_rank_of_their_own():
    model = read_model({**DECODER, **LATENT, "q_lora_rank": 20}, name="x")
    queries = HIDDEN * 20 + 20 * HEADS * (16 + 8) + 20
    attention = queries + DOWN + UP + OUT + 24
    assert model.n_params == decoder(attention + GATED + NORMS)


def test_latent_attention_caches_one_vector_and_one_rotated_key():
    model = read_model({**DECODER, **LATENT, "torch_dtype": "bfloat16"}, name="x")
    ((n_layers, cache),) = model.caches()
    assert (n_layers, cache.n_heads, cache.elements_per_head) == (LAYERS, 1, 24 + 8)


BERT = {
    "model_type": "bert",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "vocab_size": VOCAB,
    "max_position_embeddings": 128,
    "type_vocab_size": 2,
}
BERT_LAYER = (
    4 * (SQUARE + HIDDEN)  # query, key, value and output, each with its bias
    + 2 * HIDDEN * INNER
    + INNER
    + HIDDEN
    + 2 * 2 * HIDDEN  # two norms of scale and bias
)
BERT_TABLES = (VOCAB + 128 + 2) * HIDDEN + 2 * HIDDEN


def test_bert_has_three_tables_a_norm_and_a_pooler():
    model = read_model(BERT, name="x")
    assert model.kind == "encoder"
    assert model.n_params == BERT_TABLES + LAYERS * BERT_LAYER + SQUARE + HIDDEN


def test_distilbert_has_neither_types_nor_pooler():
    config = {
        "model_type": "distilbert",
        "dim": HIDDEN,
        "n_layers": LAYERS,
        "n_heads": HEADS,
        "hidden_dim": INNER,
        "vocab_size": VOCAB,
        "max_position_embeddings": 128,
    }
    expected = (VOCAB + 128) * HIDDEN + 2 * HIDDEN + LAYERS * BERT_LAYER
    assert read_model(config, name="x").n_params == expected


T5 = {
    "model_type": "t5",
    "d_model": HIDDEN,
    "d_kv": HEAD,
    "d_ff": INNER,
    "num_heads": HEADS,
    "num_layers": LAYERS,
    "num_decoder_layers": 2,
    "vocab_size": VOCAB,
    "relative_attention_num_buckets": 32,
    "tie_word_embeddings": True,
}


def test_t5_decodes_with_a_second_attention():
    feed = 2 * HIDDEN * INNER
    encoder = LAYERS * (4 * SQUARE + feed + 2 * HIDDEN)
    decoder_ = 2 * (8 * SQUARE + feed + 3 * HIDDEN)
    ends = 2 * (HIDDEN + 32 * HEADS)  # a norm and a table of relative positions on each side
    assert read_model(T5, name="x").n_params == TABLE + encoder + decoder_ + ends


def test_a_gated_t5_has_a_third_matrix():
    gated = read_model({**T5, "feed_forward_proj": "gated-gelu"}, name="x").n_params
    assert gated - read_model(T5, name="x").n_params == (LAYERS + 2) * HIDDEN * INNER


def test_bart_has_positions_on_both_sides():
    config = {
        "model_type": "bart",
        "d_model": HIDDEN,
        "encoder_layers": LAYERS,
        "decoder_layers": 2,
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": INNER,
        "decoder_ffn_dim": INNER,
        "vocab_size": VOCAB,
        "max_position_embeddings": 128,
    }
    attention, norm = 4 * (SQUARE + HIDDEN), 2 * HIDDEN
    feed = 2 * HIDDEN * INNER + INNER + HIDDEN
    encoder = LAYERS * (attention + feed + 2 * norm) + norm
    decoder_ = 2 * (2 * attention + feed + 3 * norm) + norm
    positions = 2 * (128 + 2) * HIDDEN
    assert read_model(config, name="x").n_params == TABLE + positions + encoder + decoder_


def test_vit_cuts_pictures_into_patches():
    config = {
        "model_type": "vit",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "image_size": 32,
        "patch_size": 8,
        "num_channels": 3,
    }
    patches = 3 * 8 * 8 * HIDDEN + HIDDEN
    positions = (4 * 4 + 1) * HIDDEN + HIDDEN  # sixteen patches, the class, and its vector
    ends = 2 * HIDDEN + SQUARE + HIDDEN  # last norm and pooler
    assert read_model(config, name="x").n_params == (
        patches + positions + LAYERS * BERT_LAYER + ends
    )


@pytest.mark.parametrize("n_layers", [1, 2, 7])
def test_layers_are_alike(n_layers):
    one = count("llama", num_hidden_layers=1)
    more = count("llama", num_hidden_layers=n_layers)
    assert more - one == (n_layers - 1) * (GROUPED + GATED + NORMS)


@pytest.mark.parametrize("kind", ["rwkv", "xlstm", "rwkv7"])
def test_what_no_noun_describes_is_refused_rather_than_guessed(kind):
    with pytest.raises(InputError, match="cannot be read yet"):
        count(kind)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("nvidia/canary-1b-flash", 883e6),
        ("nvidia/canary-180m-flash", 182e6),
        ("nvidia/canary-1b-v2", 978e6),
        ("nvidia/parakeet-tdt-0.6b-v2", 618e6),
        ("hunyuanvideo-community/HunyuanVideo/transformer", 12_821_012_544),
        ("stabilityai/stable-diffusion-3.5-medium/transformer", 2_243_171_520),
    ],
)
def test_conformers_and_denoisers_have_the_published_count(name, published):
    assert find_model(name).n_params == pytest.approx(published, rel=0.003)
