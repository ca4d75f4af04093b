"""Physical limits of the training step: nothing beats its peak, more hardware is never slower."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.models import device
from fakes.training import calibrated, fabric, perfect, setup
from gpuplan.calibration.training.models import Dimensions, model_from
from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.performance.kernels.columns import stacked
from gpuplan.performance.training.basis import step_basis
from gpuplan.performance.training.step import step_parts, training_step

H100 = device()
models = st.builds(
    lambda n, h, v: model_from(
        "gpt", Dimensions(n_layers=8 * n, hidden=1024 * h, n_heads=8 * h, n_vocab=v), source="test"
    ),
    st.integers(1, 12),
    st.integers(1, 16),
    st.sampled_from([32000, 51200, 128256]),
)
layouts = st.builds(
    lambda tp, pp, dp, cp, sharding: ParallelLayout(
        tp=tp, pp=pp, dp=dp, cp=cp, sharding=sharding, has_sequence_parallel=tp > 1
    ),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 8, 64]),
    st.sampled_from([1, 2]),
    st.sampled_from(["none", "zero1", "zero3"]),
)
jobs = st.builds(
    lambda b, s, m, again, compute: setup(
        micro_batch=b, sequence_tokens=s, n_micro_batches=m, recompute=again, compute=compute
    ),
    st.integers(1, 8),
    st.sampled_from([512, 2048, 8192, 32768]),
    st.integers(1, 64),
    st.sampled_from(["none", "selective", "full"]),
    st.sampled_from(["bf16", "fp8"]),
)


def seconds(model, job, layout, *, on=H100, links=None, constants=None):
    found = training_step(model, on, job, layout, links or fabric(), constants or CALIBRATED)
    return found.step_s


CALIBRATED = calibrated(H100)


@settings(max_examples=150, deadline=None)
@given(model=models, job=jobs, layout=layouts)
def test_never_above_the_dense_peak(model, job, layout):
    found = training_step(model, H100, job, layout, fabric(), CALIBRATED)
    assert 0 < found.mfu_frac <= found.hfu_frac < 1
    assert all(part >= -1e-12 for _, part in found.parts_s)


@settings(max_examples=100, deadline=None)
@given(model=models, job=jobs, layout=layouts, factor=st.floats(1.0, 8.0))
def test_faster_hardware_is_never_slower(model, job, layout, factor):
    base = seconds(model, job, layout)
    memory = replace(H100.memory, bytes_per_s=factor * H100.memory.bytes_per_s)
    peaks = {name: factor * peak for name, peak in H100.peak_flop_per_s.items()}
    assert seconds(model, job, layout, on=replace(H100, memory=memory)) <= base * (1 + 1e-9)
    assert seconds(model, job, layout, on=replace(H100, peak_flop_per_s=peaks)) <= base * (1 + 1e-9)
    links = fabric(outside_bytes_per_s=factor * 50e9)
    assert seconds(model, job, layout, links=links) <= base * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(model=models, job=jobs, layout=layouts)
def test_more_work_takes_longer(model, job, layout):
    base = seconds(model, job, layout)
    assert seconds(model, replace(job, n_micro_batches=job.n_micro_batches + 1), layout) > base
    assert seconds(model, replace(job, sequence_tokens=2 * job.sequence_tokens), layout) > base


@settings(max_examples=60, deadline=None)
@given(model=models, job=jobs, layout=layouts, second=st.floats(1e-2, 1e2))
def test_step_time_is_a_time(model, job, layout, second):
    """Every rate by the second: a slower clock resizes the answer."""
    quiet = perfect(operand_ratio=1.0, hidden_passes_ratio=9.0, logit_bytes=16.0)
    peaks = {name: peak / second for name, peak in H100.peak_flop_per_s.items()}
    memory = replace(H100.memory, bytes_per_s=H100.memory.bytes_per_s / second)
    slow = replace(H100, peak_flop_per_s=peaks, memory=memory)
    alone = replace(layout, tp=1, pp=1, cp=1, dp=1)
    resized = seconds(model, job, alone, on=slow, constants=quiet)
    assert resized == pytest.approx(second * seconds(model, job, alone, constants=quiet))


@settings(max_examples=20, deadline=None)
@given(cases=st.lists(st.tuples(models, jobs, layouts), min_size=2, max_size=6))
def test_columns_equal_single_steps(cases):
    bases = [step_basis(m, H100, job, layout=at, fabric=fabric()) for m, job, at in cases]
    columns = sum(step_parts(stacked(bases), CALIBRATED))
    single = [sum(step_parts(basis, CALIBRATED)) for basis in bases]
    assert columns == pytest.approx(single, rel=1e-12)


@pytest.mark.parametrize("precision", ["bf16", "fp8", "fp4"])
def test_every_decoder_of_the_catalog_trains_below_its_peak(precision):
    job = setup(sequence_tokens=4096, compute=precision)
    layout = ParallelLayout(dp=16, sharding="zero3")
    found = [find_model(name) for name in models_in_catalog()]
    decoders = [one for one in found if one.kind in ("decoder", "vision-language")]
    assert len(decoders) > 100
    for one in decoders:
        step = training_step(one, H100, job, layout, fabric(), CALIBRATED)
        assert 0 < step.mfu_frac <= step.hfu_frac < 1, one.name
