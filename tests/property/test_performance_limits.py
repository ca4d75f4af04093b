"""No constants, load or layout make hardware faster than it is, and better hardware never hurts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.models import dense_group, device, model, moe_group
from fakes.steps import REGIME, USUAL, case, link
from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.kernels.regimes import REGIMES
from gpuplan.performance.kernels.step import StepConstants, StepLoad, n_touched, step_time_s
from gpuplan.performance.serving.work import step_work

FP8 = StorageFormats(base=FORMATS["bf16"], quantized=FORMATS["fp8"],
              parts=("attention", "feed_forward", "experts"), cache=FORMATS["fp8"])  # fmt: skip
NETWORKS = (model(), model(moe_group()), model(dense_group(window_tokens=64)))
LAYOUTS = (ServingLayout(), ServingLayout(tp=2), ServingLayout(tp=4), ServingLayout(dp=2, ep=2),
           ServingLayout(pp=2))  # fmt: skip
FRACTIONS = ("gemm_compute_frac", "gemm_read_frac", "cache_read_frac", "attention_compute_frac")

loads = st.builds(
    StepLoad,
    st.floats(0, 20_000), st.floats(0, 10_000), st.floats(0, 16), st.floats(1, 1024),
    st.floats(0, 100_000),
    st.floats(1, 4),
    st.sampled_from((0.0, 1.0)),
)  # fmt: skip
networks = st.sampled_from(NETWORKS)
layouts = st.sampled_from(LAYOUTS)


@st.composite
def constants(draw) -> StepConstants:
    shares = {name: draw(st.floats(0.05, 0.97)) for name in FRACTIONS}
    return USUAL._replace(
        **shares, slowdown_frac=draw(st.floats(0.3, 3.0)), host_s=draw(st.floats(0, 0.01)),
        expert_evenness=draw(st.floats(0.1, 100.0)), operator_s=draw(st.floats(0, 1e-5)),
    )  # fmt: skip


def work_on(accelerator, network, layout, *, rate=450e9):
    return step_work(network, accelerator, storage=FP8, layout=layout, link=link(rate))


def faster(*, bandwidth=1.0, peak=1.0):
    plain = device()
    memory = replace(plain.memory, bytes_per_s=plain.memory.bytes_per_s * bandwidth)
    peaks = {name: value * peak for name, value in plain.peak_flop_per_s.items()}
    return replace(plain, memory=memory, peak_flop_per_s=peaks)


@given(networks, layouts, constants(), loads)
def test_never_above_the_memory_rate(network, layout, k, load):
    work = work_on(device(), network, layout)
    step_s = step_time_s(work, k, load)
    n = load.prefill_tokens + load.n_decodes * load.tokens_per_decode
    read = (
        work.matrices.quantized_bytes + work.matrices.base_bytes + work.matrices.head_bytes
        + n_touched(work.experts, n, k.expert_evenness) * work.experts.expert_bytes
    )  # fmt: skip
    assert step_s >= read / device().memory.bytes_per_s * (1 - 1e-9)


@given(networks, layouts, constants(), loads)
def test_never_above_the_peak(network, layout, k, load):
    work = work_on(device(), network, layout)
    n = (load.prefill_tokens + load.n_decodes) / layout.dp
    flop = n * (work.matrices.quantized_flop + work.matrices.base_flop)
    assert step_time_s(work, k, load) >= flop / 1979e12 * (1 - 1e-9)


@given(networks, layouts, constants(), loads)
def test_better_hardware_is_never_slower(network, layout, k, load):
    plain = step_time_s(work_on(device(), network, layout), k, load)
    for better in (faster(bandwidth=1.5), faster(peak=1.5)):
        assert step_time_s(work_on(better, network, layout), k, load) <= plain * (1 + 1e-9)
    wide = step_time_s(work_on(device(), network, layout, rate=900e9), k, load)
    assert wide <= plain * (1 + 1e-9)


@given(networks, layouts, constants(), loads, st.floats(1.0, 4.0))
def test_more_work_is_never_quicker(network, layout, k, load, factor):
    work = work_on(device(), network, layout)
    for name in ("n_decodes", "context_tokens", "prefill_tokens"):
        more = load._replace(**{name: getattr(load, name) * factor})
        assert step_time_s(work, k, more) >= step_time_s(work, k, load) * (1 - 1e-9)


@given(networks, constants(), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_a_step_is_a_time(network, k, second, byte):
    """Resize the second and the byte: the answer must resize with the second alone."""
    plain = device()
    resized = replace(
        plain,
        memory=replace(plain.memory, bytes_per_s=plain.memory.bytes_per_s * byte / second),
        peak_flop_per_s={name: v / second for name, v in plain.peak_flop_per_s.items()},
    )
    forms = FP8
    wide = {
        "base": replace(forms.base, element_bytes=forms.base.element_bytes * byte),
        "quantized": replace(forms.quantized, element_bytes=forms.quantized.element_bytes * byte),
        "cache": replace(forms.cache, element_bytes=forms.cache.element_bytes * byte),
    }
    load = StepLoad(512.0, 256.0, 1.0, 32.0, 900.0)
    bare = k._replace(host_s=0.0, host_sequence_s=0.0, operator_s=0.0, reduce_sync_s=0.0,
                      sample_s=0.0, activation_read_frac=1e30)  # fmt: skip
    one = step_work(network, plain, storage=forms, layout=ServingLayout(), link=link())
    two = step_work(network, resized, storage=replace(forms, **wide), layout=ServingLayout(),
                    link=link())  # fmt: skip
    assert step_time_s(two, bare, load) == pytest.approx(second * step_time_s(one, bare, load))


@settings(max_examples=60)
@given(networks, layouts, constants(), st.floats(1, 512), st.floats(1, 4000), st.floats(2, 4000))
def test_regimes_are_finite_and_positive_for_every_layout(
    network, layout, k, sequences, prompt, answer
):
    work = work_on(device(), network, layout)
    load = case(n_sequences=sequences, input_tokens=prompt, output_tokens=answer,
                requests_per_s=1.0, n_stages=float(layout.pp))  # fmt: skip
    for regime in REGIMES.values():
        served = regime(work, k, REGIME, load)
        assert all(np.isfinite(value) and value >= 0 for value in served)
        assert served.output_tokens_per_s > 0
