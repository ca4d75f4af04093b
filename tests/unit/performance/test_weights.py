"""Weights on one device, against sums made by hand."""

import dataclasses

import pytest

from fakes import models
from gpuplan.calibration.links import link_of
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.memory.weights import (
    expert_columns,
    layer_pieces,
    padded_frac,
    weights_bytes,
)
from gpuplan.performance.serving.work import step_work

BF16 = StorageFormats(base=FORMATS["bf16"], quantized=None, parts=(), cache=FORMATS["bf16"])
TABLE = models.VOCAB * models.HIDDEN
Q_AND_O = 2 * models.HIDDEN * 64
FFN = 3 * models.HIDDEN * models.FFN


def kv_params(n_kv_heads: int = 2) -> int:
    return 2 * models.HIDDEN * n_kv_heads * models.HEAD_DIM


def test_whole_model_is_two_bytes_a_parameter():
    model = models.model()
    assert weights_bytes(model, BF16, ServingLayout()) == 2 * model.n_params


def test_tied_table_is_held_once():
    tied, untied = models.model(is_tied=True), models.model()
    saved = weights_bytes(untied, BF16, ServingLayout()) - weights_bytes(
        tied, BF16, ServingLayout()
    )
    assert saved == 2 * TABLE


def test_tensor_parallel_cuts_matrices_and_copies_norms():
    layer = (Q_AND_O + kv_params() + FFN) / 2 + 2 * models.HIDDEN
    want = 2 * (4 * layer + models.HIDDEN + 2 * TABLE / 2)
    assert weights_bytes(models.model(), BF16, ServingLayout(tp=2)) == want


def test_key_value_heads_are_copied_past_their_number():
    """Eight ranks share two key-value heads: each holds one whole head."""
    layer = Q_AND_O / 8 + kv_params() / 2 + FFN / 8 + 2 * models.HIDDEN
    want = 2 * (4 * layer + models.HIDDEN + 2 * TABLE / 8)
    assert weights_bytes(models.model(), BF16, ServingLayout(tp=8)) == want


def test_quantized_layers_leave_tables_in_base_precision():
    model = models.model()
    storage, _ = storage_of(model, FORMATS["fp8"], None)
    matrices = 4 * (Q_AND_O + kv_params() + FFN)
    rest = 2 * TABLE + 4 * 2 * models.HIDDEN + models.HIDDEN
    assert weights_bytes(model, storage, ServingLayout()) == matrices + 2 * rest


def test_four_bits_are_not_a_quarter_of_a_byte():
    """FP4 is half a byte and its scales (TRAPS 2)."""
    assert FORMATS["nvfp4"].stored_bytes == pytest.approx(0.5 + 1 / 16)
    assert FORMATS["mxfp4"].stored_bytes == pytest.approx(0.5 + 1 / 32)


def test_all_experts_are_resident():
    model = models.model(models.moe_group())
    assert weights_bytes(model, BF16, ServingLayout()) == 2 * model.n_params
    assert model.n_active_params < model.n_params


def test_expert_parallel_deals_experts_not_attention():
    model = models.model(models.moe_group())
    experts = 4 * 8 * 3 * models.HIDDEN * 128
    alone = weights_bytes(model, BF16, ServingLayout())
    dealt = weights_bytes(model, BF16, ServingLayout(dp=4, ep=4))
    assert alone - dealt == 2 * experts * (1 - 1 / 4)


def test_pipeline_stage_holds_its_layers_and_one_table():
    model = models.model()
    layer = Q_AND_O + kv_params() + FFN + 2 * models.HIDDEN
    want = 2 * (2 * layer + models.HIDDEN + TABLE)
    assert weights_bytes(model, BF16, ServingLayout(pp=2)) == want


def test_uneven_pipeline_counts_the_deepest_stage():
    model = models.model(models.dense_group(5))
    layer = Q_AND_O + kv_params() + FFN + 2 * models.HIDDEN
    want = 2 * (3 * layer + models.HIDDEN + TABLE)
    assert weights_bytes(model, BF16, ServingLayout(pp=2)) == pytest.approx(want)


def test_vocabulary_is_padded_to_whole_rows_per_rank():
    model = models.model()
    odd = dataclasses.replace(
        model, embedding=dataclasses.replace(model.embedding, n_vocab=1000, n_input_params=64000)
    )
    want = 1024 / 1000 * 64000 * 2
    even = weights_bytes(model, BF16, ServingLayout()) - 2 * TABLE
    assert weights_bytes(odd, BF16, ServingLayout()) - even == pytest.approx(
        want + 2 * TABLE * (1024 / 1000 - 1), rel=1e-6
    )


def test_step_times_read_the_matrices_that_memory_holds():
    """Layers have one list of parameters: what is multiplied lies in memory, format by format."""
    model = find_model("deepseek-ai/DeepSeek-V3")
    storage = storage_of(model, None, None)[0]
    layout = ServingLayout(tp=8)
    held = {True: 0.0, False: 0.0}
    for group in model.main.groups:
        for part, n_params, ways in layer_pieces(group, layout, BF16):
            if part not in ("other", "experts"):
                form = storage.format_of(part)
                held[form is storage.quantized] += (
                    group.n_layers * n_params / ways * form.stored_bytes
                )
    card = find_accelerator("h200-sxm", read_catalog()).accelerator
    link = link_of(card, n_ranks=8, engine="vllm")
    work = step_work(model, card, storage=storage, layout=layout, link=link)
    assert work.matrices.quantized_bytes == pytest.approx(held[True])
    assert work.matrices.base_bytes == pytest.approx(held[False])


def test_engines_pad_the_shards_of_mxfp4_experts():
    oss = find_model("openai/gpt-oss-120b")
    storage, _ = storage_of(oss, None, None)
    experts = next(g.feed_forward for g in oss.main.groups)
    columns = {tp: expert_columns(experts, ServingLayout(tp=tp)) for tp in (1, 4, 8)}
    assert columns == {1: 2880, 4: 720, 8: 360}
    held = {tp: columns[tp] * padded_frac(experts, ServingLayout(tp=tp), storage) for tp in columns}
    assert held == {1: 2880, 4: 768, 8: 384}
    bare = dataclasses.replace(
        storage, quantized=dataclasses.replace(storage.quantized, pad_multiple=None)
    )
    eight = ServingLayout(tp=8)
    more = weights_bytes(oss, storage, eight) - weights_bytes(oss, bare, eight)
    per_layer = experts.n_experts * experts.n_expert_matrix_params / 8
    expected = oss.main.n_layers * per_layer * (384 / 360 - 1) * storage.quantized.stored_bytes
    assert more == pytest.approx(expected)
