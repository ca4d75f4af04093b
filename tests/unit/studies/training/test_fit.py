"""Training jobs in memory: states by hand, suggestions that hold, pipelines, hybrid sharding."""

import pytest

from gpuplan.api.verbs import training_run
from gpuplan.domain.requests.requests import StepSchedule, TrainingRequest
from gpuplan.errors import InputError
from gpuplan.studies.training.fit import training_fit
from gpuplan.studies.training.predict import predict_run, with_usual

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"


def test_training_states_take_sixteen_bytes_and_more():
    """8.03 G parameters x 16 bytes over 8 ranks of FSDP, before activations."""
    request = TrainingRequest(task="full", sequence_tokens=2048)
    found = training_fit(LLAMA_8B, "8xh100-sxm", request)
    assert found.job.layout.dp == 8
    states = found.memory.weights_bytes + found.memory.optimizer_bytes
    assert states == pytest.approx(12 * 8.03e9 / 8, rel=0.02)
    assert found.peak.low < found.peak.value < found.peak.high


def test_a_job_that_does_not_fit_is_told_what_would():
    request = TrainingRequest(task="full", sequence_tokens=8192, micro_batch=4)
    found = training_fit(LLAMA_8B, "h100-sxm", request)
    assert not found.fits
    assert found.suggestions
    sharded = [s for s in found.suggestions if "sharded" in s.change]
    assert sharded
    assert all(s.headroom_bytes >= 0 for s in found.suggestions)


def test_ranks_must_be_whole_groups():
    with pytest.raises(InputError, match="groups of 2"):
        training_fit(LLAMA_8B, "3xh100-sxm", TrainingRequest(task="full", tp=2))


def test_a_pipeline_is_full_unless_the_batch_says_otherwise():
    """The first of 8 stages holds 8 micro-batches; with a batch of two per rank only two."""

    def activations(**asked):
        request = TrainingRequest(task="pretrain", tp=8, pp=8, sharding="zero1")
        schedule = StepSchedule(**asked)
        found = training_fit(LLAMA_70B, "64xh100-sxm", request, schedule=schedule)
        return found.memory.activations_bytes

    assert activations(global_batch=2) == pytest.approx(activations() / 4, rel=0.2)
    assert activations(global_batch=64) == pytest.approx(activations())


def test_hybrid_sharding_keeps_one_copy_in_every_server():
    request = TrainingRequest(task="full", sharding="hsdp")
    found = training_fit(LLAMA_8B, "64xh100-sxm", request)
    whole = training_fit(LLAMA_8B, "8xh100-sxm", TrainingRequest(task="full", sharding="zero3"))
    assert found.job.layout.n_shards == 8
    assert found.memory.optimizer_bytes == pytest.approx(whole.memory.optimizer_bytes)


@pytest.mark.parametrize(
    ("task", "asked"),
    [
        ("pretrain", {"tp": 4, "pp": 2, "vp": 5, "sharding": "zero1", "framework": "megatron"}),
        ("pretrain", {"tp": 2, "sharding": "zero3", "recompute": "full", "framework": "megatron"}),
        ("full", {"sharding": "hsdp", "recompute": "selective"}),
        ("lora", {"sharding": "zero3", "lora_rank": 64}),
        ("qlora", {"sharding": "none"}),
    ],
)
def test_a_predicted_run_and_a_fit_see_the_same_memory(task, asked):
    """Same words, same bytes: predict-training and fit-training."""
    words = {"task": task, "micro_batch": 2, "global_batch": 64, **asked}
    run = training_run(LLAMA_70B, "h100-sxm", devices=64, seq_len=2048, **words)
    schedule = StepSchedule(global_batch=words.pop("global_batch"), vp=words.pop("vp", 1))
    request = TrainingRequest(sequence_tokens=2048, **words)
    fitted = training_fit(LLAMA_70B, "64xh100-sxm", request, schedule=schedule)
    predicted = predict_run(run).fit
    assert predicted.job.layout == fitted.job.layout
    assert predicted.job.setup == fitted.job.setup
    assert predicted.memory == fitted.memory


def test_what_a_task_is_usually_done_with_is_told():
    columns, assumed = with_usual({"model": LLAMA_8B, "accelerator": "h100-sxm", "task": "lora"})
    assert (columns["framework"], columns["recompute"]) == ("transformers", "full")
    assert {note.what for note in assumed} == {"framework", "activation recomputation"}
    tpu, _ = with_usual({"model": LLAMA_8B, "accelerator": "tpu-v5p", "task": "pretrain"})
    assert tpu["framework"] == "maxtext"


def test_networks_that_say_no_rate_are_refused_and_defaults_told():
    far = {"model": LLAMA_8B, "accelerator": "h100-sxm", "n_accelerators": "64"}
    _, assumed = with_usual(far)
    assert "network between servers" in {note.what for note in assumed}
    _, stated = with_usual({**far, "fabric": "3200 Gbit/s per node"})
    assert "network between servers" not in {note.what for note in stated}
    with pytest.raises(InputError, match="fabric"):
        with_usual({**far, "fabric": "fast"})
    with pytest.raises(InputError, match="task"):
        with_usual({**far, "task": "dream"})
