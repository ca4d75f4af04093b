"""Tables of studies in their own columns, read as serving rows."""

from gpuplan.inputs.published import first_token_rows, phase_rows
from gpuplan.studies.measured.inference import serving_setup

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
