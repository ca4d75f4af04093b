"""What must hold of training memory whatever the job."""

import itertools
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.training_models import dense, mixture
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.training.setup import (
    ALL_LINEAR_TARGETS,
    Execution,
    LoRA,
    ParallelLayout,
    StateBytes,
    TrainingSetup,
)
from gpuplan.performance.memory.training.frameworks import (
    DEEPSPEED_BF16_STATES,
    FP16_STATES,
    FSDP_STATES,
    HALF_STATES,
    MEGATRON_STATES,
)
from gpuplan.performance.memory.training.peak import training_memory

SHARDINGS = ("none", "zero1", "zero2", "zero3")
RECOMPUTES = ("none", "selective", "alternate", "full")
POLICIES = (HALF_STATES, FP16_STATES, FSDP_STATES, MEGATRON_STATES, DEEPSPEED_BF16_STATES)

executions = st.builds(
    Execution,
    recompute=st.sampled_from(RECOMPUTES),
    attention=st.sampled_from(("flash", "math")),
    kernels=st.sampled_from(("eager", "fused", "compiled")),
    loss=st.sampled_from(("plain", "held", "sixteen", "parallel", "chunked", "fused")),
    has_gradient_buffers=st.booleans(),
    packs_qkv=st.booleans(),
    expands_kv=st.booleans(),
)
setups = st.builds(
    TrainingSetup,
    task=st.sampled_from(("pretrain", "full")),
    states=st.sampled_from(POLICIES),
    micro_batch=st.integers(1, 16),
    sequence_tokens=st.integers(1, 32768),
    n_micro_batches=st.integers(1, 64),
    execution=executions,
)
layouts = st.builds(
    ParallelLayout,
    tp=st.sampled_from((1, 2, 4)),
    pp=st.sampled_from((1, 2, 4)),
    n_virtual=st.sampled_from((1, 2)),
    cp=st.sampled_from((1, 2)),
    dp=st.sampled_from((1, 2, 8)),
    sharding=st.sampled_from(SHARDINGS),
    has_sequence_parallel=st.booleans(),
    counts_embedding_as_layer=st.booleans(),
    bucket_elements=st.sampled_from((0, 500_000_000)),
)
models = st.sampled_from(
    (dense(8, 1024, n_heads=16, n_kv_heads=4, intermediate=2816), mixture(), dense())
)


def total(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> float:
    return training_memory(model, setup, layout).total_bytes


@given(models, setups, layouts)
def test_more_work_never_takes_less(model: Model, setup: TrainingSetup, layout: ParallelLayout):
    least = total(model, setup, layout)
    assert least > 0
    assert total(model, replace(setup, micro_batch=setup.micro_batch + 1), layout) >= least
    longer = replace(setup, sequence_tokens=setup.sequence_tokens + 128)
    assert total(model, longer, layout) >= least
    more = replace(setup, n_micro_batches=setup.n_micro_batches + 1)
    assert total(model, more, layout) >= least


@given(setups, layouts, st.integers(8, 40))
def test_a_larger_model_never_takes_less(
    setup: TrainingSetup, layout: ParallelLayout, n_layers: int
):
    assert total(dense(n_layers + 4), setup, layout) >= total(dense(n_layers), setup, layout)


@given(models, setups, layouts)
def test_more_shards_never_take_more_states(
    model: Model, setup: TrainingSetup, layout: ParallelLayout
):
    # Gradients that live only at the peak would hide the order: hold them.
    setup = replace(setup, n_micro_batches=max(2, setup.n_micro_batches))
    layout = replace(layout, pp=1, n_virtual=1)  # one stage, so the fullest cannot change
    held = [
        training_memory(model, setup, replace(layout, sharding=sharding)).states_bytes
        for sharding in SHARDINGS
    ]
    assert held == sorted(held, reverse=True)
    doubled = replace(layout, dp=2 * layout.dp)
    before = training_memory(model, setup, layout).states_bytes
    assert training_memory(model, setup, doubled).states_bytes <= before


@given(models, setups, layouts)
def test_one_rank_has_nothing_to_shard(model: Model, setup: TrainingSetup, layout: ParallelLayout):
    alone = replace(layout, dp=1, cp=1)
    found = {total(model, setup, replace(alone, sharding=sharding)) for sharding in SHARDINGS}
    assert len(found) == 1


@given(models, setups, layouts)
def test_more_recompute_never_takes_more(
    model: Model, setup: TrainingSetup, layout: ParallelLayout
):
    found = [
        total(model, replace(setup, execution=replace(setup.execution, recompute=r)), layout)
        for r in RECOMPUTES
    ]
    for more, less in itertools.pairwise(found):
        assert less <= more * (1 + 1e-9)


@given(setups, st.integers(1, 256))
def test_adapters_take_less_than_training_all(setup: TrainingSetup, rank: int):
    states = HALF_STATES
    # Updates scattered into a packed product can outweigh the states of a small model.
    setup = replace(setup, execution=replace(setup.execution, packs_qkv=False))
    adapter = LoRA(rank=rank, targets=ALL_LINEAR_TARGETS, states=states)
    layout = ParallelLayout()
    full = replace(setup, task="full", states=states)
    lora = replace(full, task="lora", adapter=adapter)
    qlora = replace(full, task="qlora", adapter=replace(adapter, base=FORMATS["nf4"]))
    assert total(dense(), lora, layout) <= total(dense(), full, layout)
    assert total(dense(), qlora, layout) <= total(dense(), lora, layout)
    wider = replace(lora, adapter=replace(adapter, rank=rank + 1))
    assert total(dense(), wider, layout) > total(dense(), lora, layout)


@given(models, setups, layouts, st.floats(0.25, 4))
@settings(max_examples=50)
def test_states_scale_with_the_byte(
    model: Model, setup: TrainingSetup, layout: ParallelLayout, factor: float
):
    s = setup.states
    scaled = StateBytes(
        weight_bytes_per_param=factor * s.weight_bytes_per_param,
        gradient_bytes_per_param=factor * s.gradient_bytes_per_param,
        master_bytes_per_param=factor * s.master_bytes_per_param,
        optimizer_bytes_per_param=factor * s.optimizer_bytes_per_param,
        compute_bytes_per_param=s.compute_bytes_per_param,
    )
    setup = replace(setup, n_micro_batches=2)  # gradients stay, so the states are one sum
    layout = replace(layout, pp=1, n_virtual=1)  # one stage, so the fullest cannot change
    before = training_memory(model, setup, layout).states_bytes
    after = training_memory(model, replace(setup, states=scaled), layout).states_bytes
    assert abs(after - factor * before) <= 1e-9 * after


@given(models, setups, layouts)
def test_no_part_is_negative(model: Model, setup: TrainingSetup, layout: ParallelLayout):
    found = training_memory(model, setup, layout)
    assert all(getattr(found, name) >= 0 for name in type(found).__dataclass_fields__)
