"""Layouts of training jobs: the shortest step that fits, against every layout tried one by one."""

from dataclasses import replace
from itertools import product

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.requests.requests import TrainingRun
from gpuplan.domain.scenario.workload import Layout
from gpuplan.studies.measured.names import named_model
from gpuplan.studies.training.predict import predict_run
from gpuplan.studies.training.search import LayoutSearch
from gpuplan.studies.training.shapes import ServerKind, TrainingTask

CARDS = read_catalog().accelerators
FAST, SLOW = "3200 Gbit/s InfiniBand per node", "100 Gbit/s TCP per node"


def search(name="Llama-3.1-8B", card="h100-sxm", task="pretrain", *, fabric=FAST, n=8, **rest):
    given = {"sequence_tokens": 4096, "batch_samples": 256.0, **rest}
    model = named_model(name)
    job = TrainingTask(
        model=model, columns=(("model", name),), task=task, precision="bf16", **given
    )
    return LayoutSearch(job, ServerKind(accelerator=CARDS[card], n_per_node=n, fabric=fabric))


def predicted(found, trial):
    return predict_run(TrainingRun(columns=tuple(found.columns(trial).items())))


@pytest.mark.parametrize("n", [8, 16, 64])
@pytest.mark.parametrize(
    ("name", "card", "task"),
    [
        ("Llama-3.1-8B", "h100-sxm", "pretrain"),
        ("Llama-3.1-70B", "h200-sxm", "pretrain"),
        ("Mixtral-8x7B-v0.1", "h100-sxm", "pretrain"),
        ("Llama-3.1-8B", "a100-sxm-80gb", "full"),
        ("Llama-3.1-70B", "h100-sxm", "lora"),
        ("Llama-3.1-8B", "rtx-4090", "qlora"),
        ("Llama-3.1-8B", "tpu-v5p", "pretrain"),
    ],
)
def test_a_step_and_its_memory_are_those_of_the_verbs(name, card, task, n):
    found = search(name, card, task)
    trial = found.best(n)
    if trial is None:
        assert found.missing_bytes(n) > 0
        return
    run = predicted(found, trial)
    assert run.forecast.step_s.value == pytest.approx(trial.step_s, rel=1e-9)
    assert run.forecast.step.n_accelerators == n
    assert run.fit.fits
    assert run.fit.job.layout == trial.layout


def every_step(found, n):
    """All plain layouts of Megatron, one by one through the public verb."""
    base = found.columns(found.best(n))
    for tp, pp, micro, recompute, sharding in product(
        (1, 2, 4, 8), (1, 2, 4), (1, 2, 4), ("none", "full"), ("zero1", "zero3", "hsdp")
    ):
        dp, left = divmod(n, tp * pp)
        if left or (pp > 1 and sharding != "zero1"):
            continue
        n_micro = max(1, round(256 / dp / micro))
        words = {
            "tp": tp, "pp": pp, "vp": 1, "cp": 1, "micro_batch": micro, "recompute": recompute,
            "sharding": sharding, "global_batch": dp * micro * n_micro,
        }  # fmt: skip
        columns = {**base, **{key: str(value) for key, value in words.items()}}
        run = predict_run(TrainingRun(columns=tuple(columns.items())))
        if run.fit.memory.total_bytes <= run.fit.job.accelerator.memory.visible_bytes:
            yield run.forecast.step_s.value / (dp * micro * n_micro)


@pytest.mark.parametrize(
    ("name", "n", "fabric"),
    [
        ("Llama-3.1-8B", 16, FAST),
        ("Llama-3.1-8B", 64, SLOW),
        ("Llama-3.1-70B", 64, FAST),
        ("Llama-3.1-70B", 128, SLOW),
    ],
)
def test_the_best_is_near_the_best_of_all(name, n, fabric):
    found = search(name, fabric=fabric)
    assert found.best(n).s_per_sample <= 1.03 * min(every_step(found, n))


def test_no_layout_beats_the_bound():
    found = search()
    for n in (8, 64, 256):
        assert found.best(n).s_per_sample * n >= found.ideal_s_per_sample()


def test_a_slower_network_is_never_faster():
    steps = [
        search("Llama-3.1-70B", fabric=f"{gbit} Gbit/s InfiniBand per node").best(64).s_per_sample
        for gbit in (10, 100, 400, 3200)
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.2 * steps[-1]


def test_what_is_asked_for_is_kept():
    asked = Layout(n_tensor=4, n_pipeline=2, sharding="zero1", recompute="full")
    trial = search(requested=asked).best(64)
    assert (trial.layout.tp, trial.layout.pp, trial.layout.sharding) == (4, 2, "zero1")
    assert trial.setup.execution.recompute == "full"
    hybrid = search("Llama-3.1-8B", task="full", requested=Layout(sharding="hsdp")).best(64)
    assert hybrid.layout.n_shards == 8
    assert search(requested=Layout(n_tensor=3)).best(64) is None


def test_ranks_are_no_more_than_samples():
    trial = search(batch_samples=16.0).best(64)
    assert trial.layout.dp <= 16
    assert trial.n_samples == pytest.approx(16, rel=0.13)


def test_experts_are_spread_and_long_sequences_split():
    moe = search("Mixtral-8x7B-v0.1").best(64)
    assert moe.layout.ep > 1
    long = search("Llama-3.1-8B", sequence_tokens=131_072, batch_samples=32.0).best(128)
    assert long.layout.cp > 1


def test_resizing_keeps_the_layout():
    found = search("Llama-3.1-70B")
    trial = found.best(64)
    more = found.resized(trial, 128)[-1]
    assert replace(more.layout, dp=trial.layout.dp) == trial.layout
    assert more.layout.dp == 2 * trial.layout.dp
    assert found.resized(trial, 65) == ()


def test_a_layout_that_may_not_fit_is_left_to_where_nothing_else_does():
    found = search("Llama-3.1-8B", "h100-sxm", "full", n=8)
    for n in (8, 16):
        for trial in found.layouts(n):
            assert found.fit_probability_frac(trial) >= 0.9
    sure, fast = found.layouts(8)[0], found.layouts(8)[-1]
    assert found.fit_probability_frac(sure) >= found.fit_probability_frac(fast)
    assert sure.s_per_sample >= fast.s_per_sample


def test_what_does_not_fit_says_by_how_much():
    found = search("Llama-3.1-70B", "rtx-4090", "full", n=1)
    assert found.best(1) is None
    assert found.missing_bytes(1) > 100e9
