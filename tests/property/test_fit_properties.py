"""What must hold of every fit, whatever the model, the device and the load (INV-3, 5, 6, 10)."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import models
from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.serving import SequenceLoad, ServingLayout
from gpuplan.domain.model.layers import LayerGroup, State
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.memory.cache import sequence_bytes
from gpuplan.performance.memory.fit import measure
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import vllm_settings
from gpuplan.units import GIB, MIB


@st.composite
def groups(draw) -> LayerGroup:
    n_layers = draw(st.integers(1, 8))
    kind = draw(st.sampled_from(["dense", "window", "moe", "state"]))
    if kind == "moe":
        return models.moe_group(n_layers, n_experts=draw(st.sampled_from([4, 8, 64])))
    if kind == "state":
        state = State(n_heads=4, n_elements=draw(st.integers(1, 10_000)), element_bytes=4.0)
        return LayerGroup(n_layers=n_layers, states=(state,))
    window = draw(st.integers(1, 5000)) if kind == "window" else None
    n_kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    return models.dense_group(n_layers, n_kv_heads=n_kv_heads, window_tokens=window)


networks = st.lists(groups(), min_size=1, max_size=3).map(
    lambda parts: models.model(*parts, max_context_tokens=None)
)
layouts = st.builds(ServingLayout, tp=st.sampled_from([1, 2, 4, 8]), pp=st.integers(1, 2))
loads = st.builds(
    SequenceLoad, context_tokens=st.integers(1, 20_000), n_sequences=st.integers(1, 3000)
)
sizes_bytes = st.floats(200 * MIB, 16 * GIB)
formats = st.sampled_from(["bf16", "fp8", "int4", "nvfp4"])


@st.composite
def deployments(draw) -> Deployment:
    device = models.device(draw(sizes_bytes))
    model = draw(networks)
    storage, _ = storage_of(model, FORMATS[draw(formats)], FORMATS["bf16"])
    return Deployment(
        model=model,
        accelerator=device,
        storage=storage,
        layout=draw(layouts),
        engine=vllm_settings(device, max_sequences=64),
        load=draw(loads),
    )


@given(deployments())
@settings(deadline=None, max_examples=60)
def test_same_inputs_same_answer(deployment):
    assert measure(deployment) == measure(deployment)


@given(deployments(), st.floats(1.0, 4.0))
@settings(deadline=None, max_examples=60)
def test_more_memory_is_never_worse(deployment, times):
    memory = deployment.accelerator.memory
    larger = dataclasses.replace(memory, visible_bytes=memory.visible_bytes * times)
    device = dataclasses.replace(deployment.accelerator, memory=larger)
    before = measure(deployment)
    after = measure(dataclasses.replace(deployment, accelerator=device))
    assert after.headroom_bytes >= before.headroom_bytes
    assert after.max_concurrency >= before.max_concurrency
    assert after.max_context_tokens >= before.max_context_tokens
    assert after.fits or not before.fits


@given(deployments())
@settings(deadline=None, max_examples=60)
def test_a_smaller_load_is_never_worse(deployment):
    load = deployment.load
    fewer = dataclasses.replace(load, n_sequences=max(1, load.n_sequences // 2))
    shorter = dataclasses.replace(load, context_tokens=max(1, load.context_tokens // 2))
    before = measure(deployment).headroom_bytes
    assert measure(dataclasses.replace(deployment, load=fewer)).headroom_bytes >= before
    assert measure(dataclasses.replace(deployment, load=shorter)).headroom_bytes >= before


@given(deployments())
@settings(deadline=None, max_examples=60)
def test_a_smaller_cache_format_is_never_worse(deployment):
    storage = dataclasses.replace(deployment.storage, cache=FORMATS["fp8"])
    after = measure(dataclasses.replace(deployment, storage=storage))
    assert after.headroom_bytes >= measure(deployment).headroom_bytes


@given(networks, layouts, st.integers(1, 10_000), st.integers(0, 10_000))
@settings(deadline=None, max_examples=100)
def test_cache_never_shrinks_with_context(model, layout, context, more):
    sizes = [
        sequence_bytes(models.deployment(model, n, layout=layout))
        for n in (context, context + more)
    ]
    assert sizes[1] >= sizes[0]


@given(networks, st.sampled_from([1, 2, 4]))
@settings(deadline=None, max_examples=60)
def test_ranks_together_hold_the_model_at_least_once(model, tp):
    """Copies make it more than the whole, never less."""
    storage, _ = storage_of(model, None, None)
    device = models.device()
    deployment = Deployment(
        model=model,
        accelerator=device,
        storage=storage,
        layout=ServingLayout(tp=tp),
        engine=vllm_settings(device),
        load=SequenceLoad(context_tokens=16, n_sequences=1),
    )
    assert tp * measure(deployment).memory.weights_bytes >= 2 * model.n_params * (1 - 1e-12)


@given(networks)
def test_active_parameters_are_among_all(model):
    assert 0 < model.n_active_params <= model.n_params


@given(deployments())
@settings(deadline=None, max_examples=60)
def test_concurrency_is_the_largest_that_fits(deployment):
    most = measure(deployment).max_concurrency
    if most == 0 or measure(deployment).memory.sequence_bytes == 0:
        return
    for n, wanted in ((most, True), (most + deployment.layout.dp, False)):
        load = dataclasses.replace(deployment.load, n_sequences=n)
        assert measure(dataclasses.replace(deployment, load=load)).fits is wanted
