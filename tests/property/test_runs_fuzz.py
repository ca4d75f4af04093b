"""Whatever bytes come in: rows in our columns, or an InputError that says what to mend."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.calibration.runs.fields import COLUMNS, MEASURED, number
from gpuplan.errors import InputError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from([
    "output_throughput", "total_output_tokens", "completed", "failed", "max_concurrency",
    "request_rate", "mean_ttft_ms", "mean_tpot_ms", "model_id", "backend", "num_prompts",
    "benchmarks", "metrics", "strategy", "config", "request_totals", "successful", "mean",
    "time_to_first_token", "avg", "unit", "input_config", "loadgen", "concurrency",
    "request_count", "theoretical_prefix_cache_hit", "avg_ts", "n_gen", "n_prompt", "n_depth",
    "gpu_info", "model_filename", "kind", "rows", "error_summary", "warmup_metrics",
])  # fmt: skip
DOCUMENTS = st.recursive(
    VALUES | st.just("gpuplan-user-calibration"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=8),
    max_leaves=25,
)
LINES = st.sampled_from([
    "============ Serving Benchmark Result ============", "Successful requests:   10",
    "Maximum request concurrency: 4", "Traffic request rate: inf", "Mean TTFT (ms):  nan",
    "Output token throughput (tok/s): 1e400", "Total generated tokens: -4", "=" * 50,
    "MLPerf Results Summary", "Scenario : Offline", "Scenario : Server", "Mode : PerformanceOnly",
    "Tokens per second: 12", "Samples per second: 0", "Mean latency (ns) : 1e9",
    "Metric,avg,min,max", "Time To First Token (ms),\"1,2\",3", "Metric,Value",
    "| model | size | test | t/s |", "| a | 1 | pp512 | 3 ± 1 |", "| a | 1 | tg 0 | x |",
    "n_prompt,n_gen,avg_ts,gpu_info", "0,128,12.5,GPU", "512,0,,", "\"unclosed",
    "model,accelerator,regime,measured_e2e_s", "a,b,c,1", "a,b,c,1,2,3", ",,,",
])  # fmt: skip


def check(content: bytes) -> None:
    problems = []
    try:
        found = read_runs(content, "some/where")
    except InputError as error:
        problems = error.problems
    assert all(p.where and p.what and p.fix for p in problems)
    if problems:
        return
    assert found.rows
    for row in found.rows:
        assert tuple(row) == COLUMNS
        measured = [row[f"measured_{name}"] for name in MEASURED]
        assert all(text == "" or number(text) is not None for text in measured)
        assert all(text.isprintable() for text in row.values())


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_bytes(content):
    check(content)


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_text(text):
    check(text.encode("utf-8", "surrogatepass"))


@given(DOCUMENTS | st.lists(DOCUMENTS, max_size=3))
@settings(max_examples=400, deadline=None)
def test_json(document):
    check(json.dumps(document).encode())


@pytest.mark.parametrize("figure", ["nan", "inf", "-1", "1e400", "0", "12..5"])
def test_figures_that_are_none(figure):
    lines = [
        "=== Serving Benchmark Result ===",
        "Successful requests: 10",
        f"Mean TTFT (ms): {figure}",
        "Output token throughput (tok/s): 100",
        "Total generated tokens: 1000",
    ]
    (row,) = read_runs("\n".join(lines).encode(), "x").rows
    assert row["measured_ttft_mean_ms"] == ""


@given(st.lists(LINES | st.text(max_size=30), max_size=25))
@settings(max_examples=400, deadline=None)
def test_lines(lines):
    check("\n".join(lines).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("text", ['{"a": ' + "9" * 5000 + "}", '{"output_throughput": 1e999}'])
def test_numbers_beyond_all_bounds(text):
    check(text.encode())
