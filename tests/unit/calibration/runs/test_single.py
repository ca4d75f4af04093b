"""InferenceX results, SGLang's single batches and `vllm bench latency`: cells, units, loads."""

import json

import pytest

from gpuplan.calibration.runs.detect import is_output, read_runs

SUMMED = {
    "hw": "b200-trt", "tp": 8, "ep": 4, "conc": 64, "dp_attention": "false", "isl": 1024,
    "osl": 512, "model": "deepseek-ai/DeepSeek-R1-0528", "framework": "dynamo-sglang",
    "image": "lmsysorg/sglang:v0.5.5-cu129", "precision": "fp8", "tput_per_gpu": 450.0,
    "output_tput_per_gpu": 150.0, "mean_ttft": 0.25, "p99_ttft": 0.75, "mean_tpot": 0.0125,
    "median_tpot": 0.012, "p99_tpot": 0.02, "mean_e2el": 6.6,
}  # fmt: skip
BATCH = {
    "run_name": "default", "batch_size": 16, "input_len": 1024, "output_len": 32, "latency": 2.0,
    "ttft": 0.5, "input_throughput": 32768.0, "output_throughput": 341.3,
}  # fmt: skip


def read(*documents: dict[str, object]) -> tuple[dict[str, str], ...]:
    text = "\n".join(json.dumps(document) for document in documents)
    assert is_output(text)
    return tuple(dict(row) for row in read_runs(text.encode(), "runs.json").rows)


def test_a_summed_closed_loop_has_all_its_conditions_and_figures_in_our_units() -> None:
    (row,) = read(SUMMED)
    assert (row["accelerator"], row["n_accelerators"], row["tp"]) == ("b200", "8", "8")
    assert (row["engine"], row["engine_version"], row["precision"]) == ("SGLang", "0.5.5", "fp8")
    assert (row["regime"], row["batch"]) == ("fixed_concurrency", "64")
    assert row["layout_note"] == "attention_dp=1 moe_tp=2 moe_ep=4"
    assert (row["measured_ttft_mean_ms"], row["measured_tpot_mean_ms"]) == ("250", "12.5")
    assert row["measured_output_tokens_per_s"] == "1200"  # 150 of each of 8
    assert row["measured_e2e_s"] == "6.6"
    assert "inferencex" in row["source"]  # lengths are drawn as that suite draws them


def test_data_parallel_attention_is_a_rank_for_each_accelerator() -> None:
    (row,) = read({**SUMMED, "dp_attention": True, "ep": 8})
    assert row["layout_note"] == "attention_dp=8 moe_tp=1 moe_ep=8"


def test_separate_prefill_and_decode_replicas_are_told_and_not_read() -> None:
    text = "\n".join(json.dumps(d) for d in (SUMMED, {**SUMMED, "disagg": True}))
    found = read_runs(text.encode(), "runs.json")
    assert len(found.rows) == 1
    assert any("prefill and decode" in remark for remark in found.remarks)


def test_a_single_batch_counts_its_prompts_in_the_rate() -> None:
    (row,) = read(BATCH)
    assert (row["regime"], row["batch"], row["engine"]) == ("static_batch", "16", "SGLang")
    assert (row["input_tokens"], row["output_tokens"]) == ("1024", "32")
    assert row["measured_output_tokens_per_s"] == "256"  # 16 x 32 in 2 s, not in the 1.5 of decode
    assert (row["measured_ttft_mean_ms"], row["measured_e2e_s"]) == ("500", "2")


def test_the_other_tool_of_sglang_names_its_times_otherwise() -> None:
    (row,) = read({
        "run_name": "d", "batch_size": 2, "input_len": 64, "output_len": 9,
        "prefill_latency": 0.02, "median_decode_latency": 0.01, "total_latency": 0.1,
    })  # fmt: skip
    assert row["measured_tpot_mean_ms"] == "10"
    assert row["measured_ttft_mean_ms"] == "20"
    assert row["measured_e2e_s"] == "0.1"


def test_a_latency_run_states_neither_batch_nor_lengths() -> None:
    (row,) = read({"avg_latency": 1.5, "latencies": [1.5], "percentiles": {"50": 1.5}})
    assert (row["engine"], row["regime"], row["measured_e2e_s"]) == ("vLLM", "static_batch", "1.5")
    assert not row["batch"] + row["input_tokens"] + row["output_tokens"] + row["model"]


@pytest.mark.parametrize("text", ["model,accelerator,regime\na,b,c\n", "gpu;model\na;b\n"])
def test_a_table_is_no_output_of_a_tool(text: str) -> None:
    assert not is_output(text)
