"""AIPerf and GenAI-Perf exports: units from the file, loads, prefix hits, and real exports."""

import json

import pytest

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.errors import InputError
from shared_data import shared_file

EXPORT = {
    "schema_version": "1.2",
    "request_throughput": {"unit": "requests/sec", "avg": 4.0},
    "request_latency": {"unit": "ms", "avg": 5200.0, "p50": 5100.0, "p99": 6000.0},
    "request_count": {"unit": "requests", "avg": 400.0},
    "time_to_first_token": {"unit": "ms", "avg": 200.0, "p50": 180.0, "p99": 700.0},
    "inter_token_latency": {"unit": "ms", "avg": 25.0, "p50": 24.0, "p99": 31.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 800.0},
    "output_sequence_length": {"unit": "tokens", "avg": 201.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1000.0},
    "input_config": {
        "endpoint": {"model_names": ["Qwen/Qwen3-8B"]},
        "loadgen": {"concurrency": 20},
    },
    "error_summary": [],
}
TABLE = """Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ms),"1,146.31",249.48,"3,485.23","3,457.97",1,1,1,640.07,1
Request Latency (ms),"6,406.20",1,1,"9,436.13",1,1,1,1,1
Inter Token Latency (ms),30.35,27.59,35.60,35.23,33.88,32.53,31.05,30.13,29.04
Output Sequence Length (tokens),174.45,164.00,187.00,186.22,183.10,180.10,177.00,174.00,171.75
Input Sequence Length (tokens),"3,000.05",1,1,1,1,1,1,1,1

Metric,Value
Output Token Throughput (per sec),261.25
Request Throughput (per sec),1.50
Request Count (count),40.00
"""


def read(document):
    return read_runs(json.dumps(document).encode(), "profile_export_aiperf.json")


def test_export_is_read():
    (row,) = read(EXPORT).rows
    assert (row["regime"], row["batch"]) == ("fixed_concurrency", "20")
    assert row["model"] == "Qwen/Qwen3-8B"
    assert float(row["measured_ttft_mean_ms"]) == 200
    assert float(row["measured_tpot_p99_ms"]) == 31
    assert float(row["measured_e2e_s"]) == pytest.approx(5.2)


@pytest.mark.parametrize(("unit", "value"), [("ns", 25e6), ("us", 25e3), ("s", 0.025), ("ms", 25)])
def test_units_are_those_of_the_file(unit, value):
    (row,) = read({**EXPORT, "inter_token_latency": {"unit": unit, "avg": value}}).rows
    assert float(row["measured_tpot_mean_ms"]) == pytest.approx(25)


def test_genai_perf_holds_its_load_elsewhere():
    config = {"model_names": ["m"], "perf_analyzer": {"stimulus": {"concurrency": 5}}}
    (row,) = read({**EXPORT, "input_config": config}).rows
    assert row["batch"] == "5"


def test_table_is_read_with_thousands_and_asks_for_the_load():
    found = read_runs(TABLE.encode(), "profile_export_genai_perf.csv")
    (row,) = found.rows
    assert float(row["measured_ttft_mean_ms"]) == pytest.approx(1146.31)
    assert float(row["measured_e2e_s"]) == pytest.approx(6.4062)
    assert float(row["measured_output_tokens_per_s"]) == 261.25
    assert float(row["input_tokens"]) == pytest.approx(3000.05)
    assert row["regime"] == ""
    assert any("--concurrency" in line for line in found.remarks)


def test_prefix_hits_leave_only_decoding():
    found = read({**EXPORT, "theoretical_prefix_cache_hit": {"unit": "%", "avg": 60.0}})
    (row,) = found.rows
    assert row["measured_tpot_mean_ms"] == "25"
    assert row["measured_output_tokens_per_s"] == row["measured_ttft_mean_ms"] == ""
    assert any("prefix cache" in line for line in found.remarks)


def test_warm_up_and_cancelled_runs_are_told():
    told = read({
        **EXPORT, "was_cancelled": True, "warmup_metrics": {"request_count": {"avg": 12.0}},
        "error_request_count": {"avg": 4.0},
    }).remarks  # fmt: skip
    assert any("cancelled" in line for line in told)
    assert any("12 warm-up" in line for line in told)
    assert any("4 of 404 requests failed" in line for line in told)


def test_single_requests_are_refused_with_the_right_file_named():
    line = json.dumps({"metadata": {"x": 1}, "metrics": {"request_latency": {"value": 3}}})
    with pytest.raises(InputError, match=r"profile_export_aiperf\.json"):
        read_runs(f"{line}\n{line}".encode(), "profile_export.jsonl")


@pytest.mark.parametrize("users", [1, 8])
def test_real_export_agrees_with_its_table(users):
    folder = "traces/inferencex_runs/aiperf_kimik27_mi355x"
    name = f"{folder}/conc{users}_kvnone__profile_export_aiperf"
    whole = read_runs(shared_file(f"{name}.json").read_bytes(), "a.json")
    table = read_runs(shared_file(f"{name}.csv").read_bytes(), "a.csv")
    (row,), (other,) = whole.rows, table.rows
    assert row["model"] == "amd/Kimi-K2.7-Code-MXFP4"
    assert row["batch"] == str(users)
    assert float(row["measured_tpot_mean_ms"]) == pytest.approx(
        float(other["measured_tpot_mean_ms"]), rel=1e-2
    )
    assert any("prefix cache" in line for line in whole.remarks)
    assert row["measured_ttft_mean_ms"] == ""
