"""Kinds of work as the plain ones they consist of, by hand arithmetic."""

import pytest

from gpuplan.domain.scenario.workload import Batch, Generic, Serving, Training
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import scenario_from_dict


def read(*works):
    return scenario_from_dict({"version": 1, "name": "s", "workloads": list(works)})


RL = {
    "name": "rl",
    "kind": "reinforcement_learning",
    "model": "Qwen/Qwen3-8B",
    "training": {"tokens": 9.0e8, "deadline_days": 7, "epochs": 2},
    "rollout": {"input_tokens": 500, "output_tokens": 4000, "samples_per_prompt": 8},
}
OTHER = {"name": "x", "kind": "generic", "work": {"accelerators": 8}}


def test_reinforcement_learning_is_training_and_rollouts():
    found = read(RL, OTHER)
    assert [work.name for work in found.workloads] == ["rl training", "x", "rl rollout"]
    training, _, rollout = (work.work for work in found.workloads)
    assert isinstance(training, Training)
    assert (training.n_tokens, training.n_epochs, training.method) == (9e8, 2, "full")
    assert isinstance(rollout, Batch)
    assert rollout.n_docs == pytest.approx(2 * 9e8 / 4500)  # every token is prompt or sample
    assert rollout.deadline_s == training.deadline_s == 7 * 86400
    assert rollout.request.prefix_hit_frac.mid == pytest.approx(7 / 8)


@pytest.mark.parametrize("key", ["tokens", "deadline_days"])
def test_rollouts_need_tokens_and_a_deadline(key):
    training = {name: value for name, value in RL["training"].items() if name != key}
    with pytest.raises(InputError, match=key):
        read({**RL, "training": training})


def test_a_group_size_that_is_not_given_is_an_assumption():
    rollout = {"input_tokens": 500, "output_tokens": 4000}
    found = read({**RL, "rollout": rollout})
    notes = [one for one in found.assumptions if "samples_per_prompt" in one.change]
    assert notes[0].value == "8"


def test_speech_is_written_as_fast_as_it_is_heard():
    work = {"name": "v", "kind": "text_to_speech", "model": "meta-llama/Llama-3.2-3B"}
    work |= {"demand": {"requests_per_s": 3}, "audio_s": 10, "ttft_p95_ms": 500}
    (voice,) = read(work | {"audio_tokens_per_s": 50}).workloads
    assert isinstance(voice.work, Serving)
    assert voice.work.request.output.mean_tokens == pytest.approx(500)
    limits = {limit.metric: limit.limit_s for limit in voice.work.slo.limits}
    assert limits["tpot"] == pytest.approx(1 / 50)
    assert limits["ttft"] == pytest.approx(0.5)


def test_a_recommender_reads_rows_of_embeddings():
    work = {"samples_per_s": 1e6, "lookups_per_sample": 800, "embedding_dim": 128}
    work["dense_gflop_per_sample"] = 0.01
    (ranking,) = read({"name": "r", "kind": "recommender", "work": work}).workloads
    assert isinstance(ranking.work, Generic)
    assert ranking.work.sample_activation_bytes == pytest.approx(800 * 128 * 2)
    assert ranking.work.flop_per_sample == pytest.approx(1e7)
    assert ranking.work.samples_per_s == 1e6


def test_classical_learning_counts_operations_and_rows():
    work = {"samples_per_s": 2e4, "operations_per_sample": 5e4, "sample_kb": 4, "training": True}
    (trees,) = read({"name": "t", "kind": "classical_ml", "work": work}).workloads
    assert isinstance(trees.work, Generic)
    assert trees.work.flop_per_sample == pytest.approx(5e4)
    assert trees.work.sample_activation_bytes == pytest.approx(4000)
    assert trees.work.is_training


def test_names_of_parts_are_still_unique():
    with pytest.raises(InputError, match="rl rollout"):
        read(RL, {**OTHER, "name": "rl rollout"})
