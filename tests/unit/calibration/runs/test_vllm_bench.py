"""`vllm bench serve` and SGLang's bench_serving: figures, units, loads and what is told."""

import json

import pytest

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.errors import InputError

RESULT = {
    "date": "20260301-101500", "backend": "vllm", "label": None,
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct", "num_prompts": 640,
    "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 64, "duration": 80.0,
    "completed": 640, "failed": 0, "total_input_tokens": 655360, "total_output_tokens": 163840,
    "request_throughput": 8.0, "output_throughput": 2048.0, "total_token_throughput": 10240.0,
    "mean_ttft_ms": 310.0, "median_ttft_ms": 250.0, "std_ttft_ms": 90.0, "p99_ttft_ms": 900.0,
    "mean_tpot_ms": 30.0, "median_tpot_ms": 29.5, "std_tpot_ms": 1.0, "p99_tpot_ms": 34.0,
    "mean_itl_ms": 29.9, "median_itl_ms": 25.0, "std_itl_ms": 8.0, "p99_itl_ms": 90.0,
    "mean_e2el_ms": 7960.0,
}  # fmt: skip

CONSOLE = """
INFO 03-01 10:15:00 [serve.py:1] Namespace(model='Qwen/Qwen3-8B', random_input_len=512)
Traffic request rate: inf
Burstiness factor: 1.0 (Poisson process)
Maximum request concurrency: 16
100%|##########| 160/160 [00:40<00:00,  4.00it/s]
============ Serving Benchmark Result ============
Successful requests:                     160
Benchmark duration (s):                  40.00
Total input tokens:                      81920
Total generated tokens:                  20480
Request throughput (req/s):              4.00
Output token throughput (tok/s):         512.00
Total Token throughput (tok/s):          2560.00
---------------Time to First Token----------------
Mean TTFT (ms):                          120.00
Median TTFT (ms):                        100.00
P99 TTFT (ms):                           300.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          30.50
Median TPOT (ms):                        30.00
P99 TPOT (ms):                           33.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           30.40
==================================================
Traffic request rate: 2.0
Maximum request concurrency: None
============ Serving Benchmark Result ============
Successful requests:                     100
Failed requests:                         4
Total input tokens:                      51200
Total generated tokens:                  12800
Output token throughput (tok/s):         250.00
Mean TTFT (ms):                          80.00
Mean TPOT (ms):                          12.00
==================================================
"""


def rows(document):
    return read_runs(json.dumps(document).encode(), "run.json")


def test_result_file_is_read_in_our_units():
    read = rows(RESULT)
    (row,) = read.rows
    assert row["regime"] == "fixed_concurrency"
    assert row["batch"] == "64"
    assert row["engine"] == "vLLM"
    assert float(row["input_tokens"]) == 1024
    assert float(row["output_tokens"]) == 256
    assert float(row["measured_output_tokens_per_s"]) == 2048
    assert float(row["measured_ttft_mean_ms"]) == 310
    assert float(row["measured_tpot_mean_ms"]) == 30
    assert float(row["measured_tpot_p50_ms"]) == 29.5
    assert float(row["measured_e2e_s"]) == pytest.approx(7.96)
    assert "(tokens - 1)" in row["flag"]
    assert read.remarks == ()


def test_open_loop_has_its_rate():
    (row,) = rows({**RESULT, "request_rate": 8.0, "max_concurrency": None}).rows
    assert (row["regime"], row["request_rate_per_s"], row["batch"]) == ("poisson", "8", "")


def test_open_loop_that_keeps_up_has_no_throughput_of_its_own():
    kept_up = {**RESULT, "request_rate": 10.0, "max_concurrency": None}  # 64 s of arrivals, 80 s
    found = rows(kept_up)
    assert found.rows[0]["measured_output_tokens_per_s"] == ""
    assert found.rows[0]["measured_tpot_mean_ms"] == "30"
    assert any("kept up" in line for line in found.remarks)
    flooded = rows({**kept_up, "request_rate": 40.0})  # 16 s of arrivals, 80 s
    assert flooded.rows[0]["measured_output_tokens_per_s"] == "2048"


def test_flood_is_max_load_without_the_backlog_in_its_latencies():
    read = rows({**RESULT, "max_concurrency": None})
    (row,) = read.rows
    assert row["regime"] == "max_load"
    assert row["measured_output_tokens_per_s"] == "2048"
    assert row["measured_ttft_mean_ms"] == row["measured_e2e_s"] == ""
    assert any("backlog" in line for line in read.remarks)


def test_one_wave_is_a_static_batch():
    small = {**RESULT, "num_prompts": 64, "completed": 64}
    (row,) = rows(small).rows
    assert (row["regime"], row["batch"], row["measured_ttft_mean_ms"]) == ("static_batch", "64", "")


def test_few_failures_are_told_many_refuse_the_run():
    assert any("20 of 640" in line for line in rows({**RESULT, "completed": 620}).remarks)
    with pytest.raises(InputError, match="300 of 640 requests failed"):
        rows({**RESULT, "completed": 340, "failed": 300})


def test_only_chunk_latencies_are_told():
    read = rows({**RESULT, "mean_tpot_ms": 0.0})
    assert read.rows[0]["measured_tpot_mean_ms"] == "29.9"
    assert "chunks" in read.rows[0]["flag"]
    assert any("ITL" in line for line in read.remarks)


def test_time_per_token_that_does_not_follow_is_told():
    read = rows({**RESULT, "mean_tpot_ms": 60.0})
    assert any("per token" in line for line in read.remarks)


def test_appended_results_are_lines():
    lines = "\n".join(json.dumps({**RESULT, "max_concurrency": n}) for n in (8, 16, 32))
    read = read_runs(lines.encode(), "runs.json")
    assert [row["batch"] for row in read.rows] == ["8", "16", "32"]
    assert len({row["id"] for row in read.rows}) == 3


def test_unsaid_engine_is_left_to_the_user():
    read = rows({**RESULT, "backend": "openai-chat"})
    assert read.rows[0]["engine"] == ""
    assert any("engine not stated" in line for line in read.remarks)


def test_console_blocks_have_the_load_printed_before_them():
    read = read_runs(CONSOLE.encode(), "log.txt")
    closed, opened = read.rows
    assert (closed["regime"], closed["batch"]) == ("fixed_concurrency", "16")
    assert closed["model"] == "Qwen/Qwen3-8B"
    assert closed["measured_tpot_mean_ms"] == "30.5"
    assert (opened["regime"], opened["request_rate_per_s"]) == ("poisson", "2")
    assert any("4 of 104 requests failed" in line for line in read.remarks)


def test_console_without_load_asks_for_it():
    text = CONSOLE.split("requests:", 1)[1]
    read = read_runs(f"=== Serving Benchmark Result ===\nSuccessful requests:{text}".encode(), "x")
    assert read.rows[0]["regime"] == ""
    assert any("--concurrency" in line for line in read.remarks)


def test_short_run_before_the_same_load_is_its_warm_up():
    head, block = CONSOLE.split("Traffic request rate: inf", 1)
    block = "Traffic request rate: inf" + block.split("Traffic request rate: 2.0")[0]
    text = head + block.replace("160\n", "32\n") + head + block
    found = read_runs(text.encode(), "x")
    assert len(found.rows) == 1
    assert float(found.rows[0]["input_tokens"]) == 512
    assert any("warm-up" in line for line in found.remarks)


def test_arguments_name_the_engine():
    text = CONSOLE.replace("Namespace(", "Namespace(backend='vllm', ")
    assert read_runs(text.encode(), "x").rows[0]["engine"] == "vLLM"


def test_sglang_names_itself():
    text = CONSOLE.replace("Successful requests:", "Backend:   sglang\nSuccessful requests:")
    assert {row["engine"] for row in read_runs(text.encode(), "x").rows} == {"SGLang"}
