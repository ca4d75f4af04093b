"""Training memory, part by part, against theory, PyTorch's own counts and published figures."""

from dataclasses import replace

import pytest

from fakes.training_models import dense, gpt, llama_3_8b, mixture
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.training.setup import (
    ALL_LINEAR_TARGETS,
    Execution,
    LoRA,
    ParallelLayout,
    TrainingMemory,
    TrainingSetup,
)
from gpuplan.errors import InputError
from gpuplan.performance.memory.training.activations import layer_saved
from gpuplan.performance.memory.training.check import training_problems
from gpuplan.performance.memory.training.frameworks import (
    FP16_STATES,
    FSDP_STATES,
    HALF_STATES,
    MEGATRON_STATES,
    OPTIMIZER_BYTES,
    PRACTICES,
    WIDE_ADAPTER,
)
from gpuplan.performance.memory.training.params import stage_params, stages
from gpuplan.performance.memory.training.peak import memory_range, n_in_flight, training_memory
from gpuplan.units import GB

ONE = ParallelLayout()
LORA = LoRA(rank=8, targets=ALL_LINEAR_TARGETS, states=HALF_STATES)


def setup(**changes: object) -> TrainingSetup:
    usual = TrainingSetup(task="full", states=FP16_STATES, micro_batch=1, sequence_tokens=2048)
    return replace(usual, **changes)  # type: ignore[arg-type]


def per_hidden(execution: Execution, adapter: LoRA | None = None, *, tokens: int = 256) -> float:
    """Saved bytes per token and hidden unit of a layer shaped like Llama-2's."""
    model = dense(1, 512, n_heads=8, n_kv_heads=8, intermediate=1376)
    job = setup(
        execution=execution,
        adapter=adapter,
        task="lora" if adapter else "full",
        sequence_tokens=tokens,
    )
    return layer_saved(model.main.groups[0], 512, setup=job, layout=ONE).whole / 512


# Counts that PyTorch 2.13 lists as saved for one decoder layer of transformers (SDPA and eager
# attention) and of litgpt, hidden 512, 8 heads, intermediate 1376, 256 tokens.
@pytest.mark.parametrize(
    ("execution", "adapter", "counted"),
    [
        (Execution(kernels="eager"), None, 45.58),
        (Execution(kernels="eager", attention="math"), None, 69.52),
        (Execution(kernels="compiled"), None, 32.2),
        (Execution(kernels="eager"), LORA, 41.80),
        (Execution(kernels="eager", attention="math"), LORA, 65.73),
        (
            Execution(kernels="eager"),
            LoRA(rank=8, targets=("q", "v"), states=WIDE_ADAPTER, input_bytes_per_element=4),
            40.33,
        ),
        (Execution(kernels="eager"), replace(LORA, input_bytes_per_element=4.0), 67.39),
        (
            Execution(kernels="eager", packs_qkv=True),
            LoRA(rank=8, targets=("q", "v"), states=HALF_STATES, has_dropout=True),
            44.36,
        ),
        (
            Execution(kernels="eager", packs_qkv=True),
            replace(LORA, has_dropout=True),
            63.20,
        ),
    ],
)
def test_saved_tensors_are_those_that_pytorch_lists(
    execution: Execution, adapter: LoRA | None, counted: float
) -> None:
    assert per_hidden(execution, adapter) == pytest.approx(counted, rel=0.03)


def test_fused_layer_is_the_published_formula_without_dropout() -> None:
    # Korthikanti 2022: 34 + 5as/h bytes per token and hidden unit, of which 2 are dropout masks.
    model, s = gpt(), 2048
    job = setup(sequence_tokens=s, execution=Execution(attention="math", kernels="fused"))
    saved = layer_saved(model.main.groups[0], 12288, setup=job, layout=ONE)
    assert saved.whole / 12288 == pytest.approx(32 + 5 * 96 * s / 12288, rel=0.002)


def test_sequence_parallel_divides_the_whole_layer() -> None:
    model = gpt()
    job = setup(execution=Execution(kernels="fused"))
    group = model.main.groups[0]
    whole = layer_saved(group, 12288, setup=job, layout=ONE)
    split = ParallelLayout(tp=8, has_sequence_parallel=True)
    assert layer_saved(group, 12288, setup=job, layout=split).whole == pytest.approx(
        whole.whole / 8
    )
    kept = layer_saved(group, 12288, setup=job, layout=ParallelLayout(tp=8)).whole
    assert kept > whole.whole / 8  # norms and their inputs stay whole without it


def test_states_of_llama_3_8b_are_sixteen_bytes_per_parameter() -> None:
    alone = training_memory(llama_3_8b(), setup(n_micro_batches=2), ONE)
    assert alone.states_bytes == pytest.approx(128.5 * GB, rel=1e-3)
    eight = ParallelLayout(dp=8, sharding="zero3")
    shared = training_memory(llama_3_8b(), setup(n_micro_batches=2), eight)
    assert shared.states_bytes == pytest.approx(16.06 * GB, rel=1e-3)


@pytest.mark.parametrize(
    ("sharding", "bytes_per_param"),
    [("none", 18), ("zero1", 6 + 12 / 8), ("zero2", 2 + 16 / 8), ("zero3", 18 / 8)],
)
def test_each_zero_stage_shards_one_more_state(sharding: str, bytes_per_param: float) -> None:
    model = dense()
    layout = ParallelLayout(dp=8, sharding=sharding)  # type: ignore[arg-type]
    job = setup(states=MEGATRON_STATES, n_micro_batches=2)
    found = training_memory(model, job, layout).states_bytes
    assert found == pytest.approx(bytes_per_param * model.n_params)


def test_hybrid_sharding_keeps_one_copy_per_group() -> None:
    job = setup(states=FSDP_STATES, n_micro_batches=2)
    whole = training_memory(dense(), job, ParallelLayout(dp=16, sharding="zero3"))
    hybrid = training_memory(dense(), job, ParallelLayout(dp=16, sharding="zero3", n_shard=8))
    assert hybrid.states_bytes == pytest.approx(2 * whole.states_bytes)


def test_zero_2_needs_more_temporaries_than_zero_1() -> None:
    job = setup(n_micro_batches=4)
    found = {
        sharding: training_memory(
            dense(),
            job,
            ParallelLayout(dp=8, sharding=sharding, bucket_elements=500_000_000),  # type: ignore[arg-type]
        )
        for sharding in ("zero1", "zero2")
    }
    assert found["zero2"].temporary_bytes - found["zero1"].temporary_bytes == pytest.approx(1 * GB)


def test_fully_sharded_data_parallel_gathers_two_layers_and_the_tables() -> None:
    model = dense()
    job = setup(states=FSDP_STATES, n_micro_batches=2, execution=Execution(kernels="fused"))
    layout = ParallelLayout(dp=64, sharding="zero3")
    layer = model.main.groups[0].n_params / 32
    tables = model.embedding.n_params
    found = training_memory(model, replace(job, sequence_tokens=65536), layout)
    assert found.logits_bytes > 0  # the peak is at the loss, before gradients of a layer
    assert found.gathered_bytes == pytest.approx(2 * (2 * layer + tables))


def test_tensor_parallel_splits_matrices_and_not_norms() -> None:
    model = dense()
    whole, split = (
        stage_params(model, layout, stages(model, layout)[0])
        for layout in (ONE, ParallelLayout(tp=8))
    )
    assert split.n_matrix == whole.n_matrix / 8
    assert split.n_other == whole.n_other
    assert split.n_input == whole.n_input / 8


def test_expert_parallel_splits_experts_and_shards_them_over_fewer_ranks() -> None:
    model = mixture()
    whole = stage_params(model, ONE, stages(model, ONE)[0])
    layout = ParallelLayout(dp=8, ep=8, sharding="zero1")
    split = stage_params(model, layout, stages(model, layout)[0])
    assert split.n_expert == whole.n_expert / 8
    assert split.n_matrix == whole.n_matrix
    found = training_memory(model, setup(n_micro_batches=2), layout)
    # Eight ranks hold different experts: nothing of them is left to shard.
    assert found.optimizer_bytes == pytest.approx(8 * (split.n_expert + split.n_dense / 8))


def test_mixture_keeps_a_copy_for_every_working_expert() -> None:
    job = setup(execution=Execution(kernels="fused"))
    one, two = (
        layer_saved(mixture(n_active=n).main.groups[0], 1024, setup=job, layout=ONE).whole
        for n in (1, 2)
    )
    # input and output of the expert, both halves of the gate, and their product
    assert two - one == pytest.approx(2 * (2 * 1024 + 3 * 2048))


@pytest.mark.parametrize(
    ("layout", "place", "held"),
    [
        (ParallelLayout(pp=8), 0, 8),
        (ParallelLayout(pp=8), 7, 1),
        (ParallelLayout(pp=8, n_virtual=2), 0, 8 * (1 + 7 / 16)),
        (ParallelLayout(pp=8, n_virtual=4, schedule="interleaved"), 0, 8 * (1 + 7 / 32)),
        (ParallelLayout(pp=8, schedule="v-half"), 0, 5),
        (ParallelLayout(pp=8, schedule="zbv"), 0, 8),
    ],
)
def test_micro_batches_in_flight(layout: ParallelLayout, place: int, held: float) -> None:
    stage = next(s for s in stages(dense(), layout) if s.place == place)
    assert n_in_flight(setup(n_micro_batches=64), layout, stage) == pytest.approx(held)
    assert n_in_flight(setup(n_micro_batches=1), layout, stage) == 1


def test_the_head_can_make_the_last_stage_the_fullest() -> None:
    small = dense(8, 1024, n_heads=16, n_kv_heads=16, intermediate=2816, n_vocab=256000)
    job = setup(n_micro_batches=8, execution=Execution(recompute="full", loss="plain"))
    assert training_memory(small, job, ParallelLayout(pp=4)).logits_bytes > 0
    deep = training_memory(dense(), job, ParallelLayout(pp=4))
    assert deep.logits_bytes == 0  # eight layers four times outweigh one table of logits


def test_optimizer_in_backward_holds_no_gradients() -> None:
    states = replace(HALF_STATES, optimizer_bytes_per_param=OPTIMIZER_BYTES["paged-adamw"])
    practice = PRACTICES["torchtune"].execution
    job = setup(states=states, execution=replace(practice, steps_in_backward=True))
    found = training_memory(dense(), job, ONE)
    assert found.gradients_bytes < 0.05 * found.weights_bytes
    assert found.optimizer_bytes == 0


def test_unsharded_accumulation_is_the_whole_gradient() -> None:
    layout = ParallelLayout(dp=2, sharding="zero3")
    job = setup(states=HALF_STATES, n_micro_batches=4)
    held = replace(job, execution=replace(job.execution, accumulates_unsharded=True))
    assert training_memory(dense(), held, layout).gradients_bytes == pytest.approx(
        2 * training_memory(dense(), job, layout).gradients_bytes
    )


def test_four_bit_base_keeps_tables_wide_and_unpacks_one_matrix() -> None:
    model = dense()
    adapter = replace(LORA, base=FORMATS["nf4"])
    job = setup(task="qlora", states=HALF_STATES, adapter=adapter)
    found = training_memory(model, job, ONE)
    tables = model.embedding.n_params
    n_small = model.n_params - tables - 32 * 2 * 4096 - 4096
    assert found.weights_bytes == pytest.approx(0.5625 * n_small + 2 * (model.n_params - n_small))
    assert found.temporary_bytes == pytest.approx(2 * 4096 * 11008)
    assert found.gradients_bytes == found.optimizer_bytes == found.master_bytes == 0


def test_adapters_count_both_factors_of_every_target() -> None:
    adapter = LoRA(rank=8, targets=("q", "v"), states=HALF_STATES)
    job = setup(task="lora", states=HALF_STATES, adapter=adapter)
    # litgpt prints 4,194,304 trainable parameters for this job.
    assert training_memory(dense(), job, ONE).adapters_bytes == 4_194_304 * 8


def test_scopes_nest() -> None:
    found = training_memory(dense(), setup(), ParallelLayout(dp=2, sharding="zero1"))
    assert found.states_bytes < found.allocated_bytes < found.reserved_bytes < found.total_bytes
    assert found.allocated_bytes < found.least_bytes < found.total_bytes
    parts = [getattr(found, name) for name in TrainingMemory.__dataclass_fields__]
    assert found.total_bytes == pytest.approx(sum(parts))
    low, high = memory_range(found.total_bytes)
    assert low < found.total_bytes < high


def test_every_problem_is_told_at_once() -> None:
    job = setup(task="lora", micro_batch=0)
    layout = ParallelLayout(tp=3, pp=64, ep=2, dp=4, sharding="zero3", n_shard=3)
    with pytest.raises(InputError) as caught:
        training_memory(dense(), job, layout)
    places = [problem.where for problem in caught.value.problems]
    assert places == ["micro_batch", "adapter", "pp", "tp", "ep", "n_shard"]


@pytest.mark.parametrize(
    ("job", "layout", "where"),
    [
        (setup(adapter=LORA), ONE, "adapter"),
        (setup(task="qlora", adapter=LORA), ONE, "adapter.base"),
    ],
)
def test_task_and_adapter_must_agree(
    job: TrainingSetup, layout: ParallelLayout, where: str
) -> None:
    with pytest.raises(InputError) as caught:
        training_memory(dense(), job, layout)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_embedding_and_output_may_take_a_stage_place_of_their_own() -> None:
    """Llama-3.1-405B ran 126 layers on 16 stages of 8 chunks [Llama3-2024]."""
    model, job = llama_3_8b(), setup()  # 32 layers
    places = ParallelLayout(pp=2, n_virtual=17, schedule="interleaved")
    assert not training_problems(model, job, places)
    (found,) = training_problems(model, job, replace(places, n_virtual=18))
    assert found.where == "pp"
    assert "2 stages x 18 chunks" in found.what
    assert "at most 34" in found.fix


def test_expert_parallelism_must_divide_experts_and_ranks() -> None:
    with pytest.raises(InputError) as caught:
        training_memory(mixture(), setup(), ParallelLayout(ep=3, dp=4))
    assert len(caught.value.problems) == 2


def test_inputs_held_over_from_the_step_before_are_counted() -> None:
    # Inputs of the packed product, the output projection, the feed-forward part and its second
    # matrix: three of them hidden wide, one 2.6875 times that, two bytes each.
    execution = Execution(kernels="eager", packs_qkv=True)
    once, twice = (
        per_hidden(execution, replace(LORA, base=FORMATS["nf4"], n_kept_base_inputs=n))
        for n in (1, 2)
    )
    assert twice - once == pytest.approx(2 * (3 + 2.6875))
