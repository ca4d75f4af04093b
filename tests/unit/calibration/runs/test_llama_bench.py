"""llama-bench: the same tests from csv, json, jsonl and md; what stays on the host is left out."""

import csv
import io
import json

import pytest

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.errors import InputError

TEST = {
    "build_commit": "8cf427ff", "build_number": 5163, "cpu_info": "a CPU",
    "gpu_info": "NVIDIA GeForce RTX 4090", "backends": "CUDA",
    "model_filename": "models/Meta-Llama-3-8B-Instruct-Q4_K_M.gguf",
    "model_type": "llama 8B Q4_K - Medium", "type_k": "f16", "type_v": "f16", "n_gpu_layers": 99,
    "split_mode": "layer", "no_kv_offload": False, "n_prompt": 512, "n_gen": 0, "n_depth": 0,
    "avg_ns": 72135640, "stddev_ns": 1, "avg_ts": 8000.0, "stddev_ts": 1.0,
}  # fmt: skip
PROMPT, ANSWER = TEST, {**TEST, "n_prompt": 0, "n_gen": 128, "avg_ts": 125.0}
BOTH = {**TEST, "n_gen": 128, "avg_ts": 640.0}
MARKDOWN = """ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
| model                  |       size |     params | backend | ngl |            test |              t/s |
| ---------------------- | ---------: | ---------: | ------- | --: | --------------: | ---------------: |
| llama 8B Q4_K - Medium |   4.58 GiB |     8.03 B | CUDA    |  99 |           pp512 |  8000.00 ± 93.24 |
| llama 8B Q4_K - Medium |   4.58 GiB |     8.03 B | CUDA    |  99 |          tg 128 |    125.00 ± 0.59 |
| llama 8B Q4_K - Medium |   4.58 GiB |     8.03 B | CUDA    |  99 |    tg128 @ d512 |    120.00 ± 0.59 |
| llama 8B Q4_K - Medium |   4.58 GiB |     8.03 B | CUDA    |  99 |   pp512 @ d512 |   6000.00 ± 0.59 |
| llama 8B Q4_K - Medium |   4.58 GiB |     8.03 B | CUDA    |  99 |     pp512+tg128 |    640.00 ± 0.59 |

build: 8cf427ff (5163)
"""  # noqa: E501


def as_csv(*tests):
    text = io.StringIO()
    table = csv.DictWriter(text, list(tests[0]), quoting=csv.QUOTE_ALL)
    table.writeheader()
    table.writerows(tests)
    return text.getvalue().encode()


def forms():
    tests = (PROMPT, ANSWER, BOTH)
    return {
        "json": json.dumps(tests).encode(),
        "jsonl": "\n".join(json.dumps(test) for test in tests).encode(),
        "csv": as_csv(*tests),
        "md": "\n".join(
            line for line in MARKDOWN.splitlines() if "@" not in line
        ).encode(),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "md"])
def test_all_forms_say_the_same(form):
    prompt, answer, both = read_runs(forms()[form], "x").rows
    assert prompt["regime"] == "prefill"
    assert float(prompt["measured_ttft_mean_ms"]) == pytest.approx(64.0)
    assert answer["regime"] == "static_batch"
    assert float(answer["measured_tpot_mean_ms"]) == pytest.approx(8.0)
    assert (answer["input_tokens"], answer["output_tokens"]) == ("1", "128")
    assert float(both["measured_e2e_s"]) == pytest.approx(1.0)
    assert float(both["measured_output_tokens_per_s"]) == pytest.approx(128.0)
    for row in (prompt, answer, both):
        assert row["engine"] == "llama.cpp"
        assert row["engine_version"] == "b5163"
        assert row["precision"] == "q4_k_m"
        assert row["accelerator"] == "NVIDIA GeForce RTX 4090"
        assert row["batch"] == "1"
    expected = "" if form == "md" else "Meta-Llama-3-8B-Instruct"
    assert prompt["model"] == expected


def test_depth_is_context_for_answers_and_refused_for_prompts():
    read = read_runs(MARKDOWN.encode(), "x.md")
    deep = [row for row in read.rows if row["input_tokens"] == "512" and row["regime"] != "prefill"]
    assert float(deep[0]["measured_tpot_mean_ms"]) == pytest.approx(1e3 / 120)
    assert any("filled KV cache" in line for line in read.remarks)
    assert len(read.rows) == 4


@pytest.mark.parametrize(
    "change",
    [{"n_gpu_layers": 0}, {"no_kv_offload": True}, {"n_cpu_moe": 8}, {"backends": "CPU"}],
)
def test_work_on_the_host_has_no_prediction(change):
    with pytest.raises(InputError, match="rejected"):
        read_runs(json.dumps([{**ANSWER, **change}]).encode(), "x")


def test_two_devices_deal_layers():
    two = {**ANSWER, "gpu_info": "NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 4090"}
    (row,) = read_runs(json.dumps([two]).encode(), "x").rows
    assert (row["n_accelerators"], row["tp"], row["pp"]) == ("2", "1", "2")


@pytest.mark.parametrize(
    ("name", "precision", "model"),
    [
        ("Qwen2.5-7B-Instruct-Q8_0.gguf", "q8_0", "Qwen2.5-7B-Instruct"),
        ("gpt-oss-20b-mxfp4.gguf", "mxfp4", "gpt-oss-20b"),
        ("Llama-3.3-70B-Instruct-Q4_K_M-00001-of-00002.gguf", "q4_k_m", "Llama-3.3-70B-Instruct"),
        ("tiny-F16.gguf", "fp16", "tiny"),
    ],
)
def test_names_of_files_say_model_and_precision(name, precision, model):
    (row,) = read_runs(
        json.dumps([{**ANSWER, "model_filename": name, "model_type": ""}]).encode(), "x"
    ).rows
    assert (row["precision"], row["model"]) == (precision, model)
