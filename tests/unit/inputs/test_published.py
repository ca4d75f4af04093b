"""Tables of studies in their own columns, read as serving and training rows."""

import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.published import first_token_rows, phase_rows, pod_rows, scaling_rows
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.validation.training import predicted_training

PHASES = {
    "model": "llama2-70b", "hardware": "a100-80gb", "tensor_parallel": "4", "prompt_size": "512",
    "batch_size": "2", "token_size": "128", "prompt_time_ms": "196.2", "token_time_ms": "54.9",
    "e2e_time_ms": "7169",
}  # fmt: skip
FIRST = {
    "framework": "TensorRT-LLM", "framework_version": "0.5.0", "model": "GPT-J 6B", "gpu": "H100",
    "precision": "FP8", "batch_size": "1", "tp": "1", "isl": "128", "first_token_latency_ms": "7",
    "model_norm": "GPT-J-6B", "gpu_norm": "H100 SXM",
}  # fmt: skip


def test_phases_are_one_batch_from_its_prompts_to_its_last_token():
    (row,) = phase_rows([PHASES])
    setup = serving_setup(row)
    assert (setup.load.regime, setup.layout.tp, setup.load.n_sequences) == ("static_batch", 4, 2.0)
    assert (setup.load.input_tokens, setup.load.output_tokens) == (512.0, 128.0)
    assert float(row["measured_e2e_s"]) == 7.169
    assert row["measured_ttft_mean_ms"] == "196.2"


def test_a_first_token_is_a_prompt_alone_under_the_name_that_is_unambiguous():
    (row,) = first_token_rows([FIRST])
    setup = serving_setup(row)
    assert setup.load.regime == "prefill"
    assert setup.accelerator.id == "h100-sxm"
    assert row["measured_ttft_mean_ms"] == "7"


def test_rows_without_a_whole_time_leave_it_empty():
    (row,) = phase_rows([{**PHASES, "e2e_time_ms": ""}])
    assert row["measured_e2e_s"] == ""


SCALING = {
    "framework": "NeMo-Megatron", "family": "GPT-3", "model": "5B", "n_gpus": "32",
    "gpus_per_node": "8", "gpu": "A100 80GB (DGX SuperPOD)", "tokens_per_s_per_gpu": "4014.1",
    "first_seen": "2022-01-28",
}  # fmt: skip
POD = {
    "framework": "MaxText", "model_params": "Llama 2 70B", "accelerator": "v5p-512",
    "n_chips": "256", "precision": "bf16", "seq_len": "4096", "mfu_pct": "65.4",
    "tokens_per_s_per_device": "692",
}  # fmt: skip


def test_scaling_tables_are_training_rows_without_batches():
    (row,) = scaling_rows([SCALING])
    assert (row["model"], row["accelerator"], row["n_accelerators"]) == (
        "GPT-3 5B",
        "A100 80GB",
        "32",
    )
    assert row["measured_tokens_per_s_per_accelerator"] == "4014.1"
    assert row["global_batch"] == row["seq_len"] == ""
    found = predicted_training(row)
    assert found.predicted["tokens_per_s_per_accelerator"].value > 1000


def test_slices_of_a_pod_are_chips_of_its_generation():
    (row,) = pod_rows([POD])
    assert (row["accelerator"], row["n_accelerators"], row["model"]) == (
        "TPU v5p",
        "256",
        "Llama 2 70B",
    )
    assert set(predicted_training(row).measured) == {"tokens_per_s_per_accelerator", "mfu_pct"}


def test_a_size_alone_is_no_network():
    (row,) = pod_rows([{**POD, "model_params": "128B"}])
    with pytest.raises(InputError, match="is a size, not a network"):
        predicted_training(row)
