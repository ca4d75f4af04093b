"""GuideLLM reports: statistics of what succeeded, strategies, and the first token taken out."""

import json

import pytest

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.errors import InputError


def stat(mean, p99=None):
    of = {"mean": mean, "median": mean, "percentiles": {"p50": mean, "p99": p99 or mean}}
    return {"successful": of, "errored": {"mean": 0.0}, "total": {"mean": -1.0}}


def benchmark(strategy, **changes):
    metrics = {
        "request_totals": {"successful": 300, "errored": 0, "incomplete": 0, "total": 300},
        "requests_per_second": stat(3.0), "request_latency": stat(8.2),
        "prompt_token_count": stat(1000.0), "output_token_count": stat(201.0),
        "time_to_first_token_ms": stat(200.0, 800.0), "inter_token_latency_ms": stat(40.0, 50.0),
        "time_per_output_token_ms": stat(40.8), "output_tokens_per_second": stat(600.0),
    }  # fmt: skip
    return {
        "type_": "generative_benchmark",
        "config": {"strategy": strategy, "backend": {"model": "Qwen/Qwen3-8B"}},
        "metrics": {**metrics, **changes},
        "warmup_duration": 5.0,
    }


def report(*benchmarks):
    document = {"metadata": {"version": 2}, "benchmarks": list(benchmarks)}
    return read_runs(json.dumps(document).encode(), "benchmarks.json")


def test_strategies_are_regimes():
    read = report(
        benchmark({"type_": "synchronous"}),
        benchmark({"type_": "concurrent", "streams": 32}),
        benchmark({"type_": "throughput", "max_concurrency": None}),
        benchmark({"type_": "poisson", "rate": 2.5}),
        benchmark({"type_": "constant", "rate": 4.0}),
    )
    found = [(row["regime"], row["batch"], row["request_rate_per_s"]) for row in read.rows]
    assert found == [
        ("fixed_concurrency", "1", ""), ("fixed_concurrency", "32", ""), ("max_load", "", ""),
        ("poisson", "", "2.5"), ("poisson", "", "4"),
    ]  # fmt: skip
    assert any("constant pace" in line for line in read.remarks)
    assert any("warmup" in line for line in read.remarks)


def test_figures_are_of_requests_that_succeeded():
    (row,) = report(benchmark({"type_": "concurrent", "streams": 8})).rows
    assert row["model"] == "Qwen/Qwen3-8B"
    assert float(row["measured_e2e_s"]) == 8.2
    assert float(row["measured_ttft_p99_ms"]) == 800
    assert float(row["measured_tpot_mean_ms"]) == 40


def test_first_token_is_taken_out_of_the_tools_time_per_token():
    some = benchmark({"type_": "concurrent", "streams": 8})
    del some["metrics"]["inter_token_latency_ms"]
    (row,) = report(some).rows
    # 201 tokens in 8200 ms, 200 of them after a first token at 200 ms.
    assert float(row["measured_tpot_mean_ms"]) == pytest.approx((40.8 * 201 - 200) / 200, rel=1e-5)
    assert float(row["measured_tpot_mean_ms"]) == pytest.approx(40.0, rel=1e-3)
    assert "taken out" in row["flag"]


def test_older_reports_keep_their_strategy_elsewhere():
    some = benchmark({})
    some["args"] = {"strategy": {"type_": "concurrent", "streams": 4}}
    del some["config"]
    (row,) = report(some).rows
    assert row["batch"] == "4"


def test_many_errors_refuse_the_run_unfinished_ones_are_told():
    totals = {"successful": 10, "errored": 90, "incomplete": 0}
    with pytest.raises(InputError, match="90 of 100"):
        report(benchmark({"type_": "synchronous"}, request_totals=totals))
    totals = {"successful": 100, "errored": 0, "incomplete": 7}
    read = report(benchmark({"type_": "synchronous"}, request_totals=totals))
    assert any("7 requests were still under way" in line for line in read.remarks)
