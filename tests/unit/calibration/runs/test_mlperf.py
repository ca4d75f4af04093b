"""MLPerf LoadGen summaries: nanoseconds, scenarios, inferred tokens, invalid runs."""

import pytest

from gpuplan.calibration.runs.detect import read_runs
from gpuplan.errors import InputError

HEAD = """================================================
MLPerf Results Summary
================================================
SUT name : PySUT
"""
OFFLINE = (
    HEAD
    + """Scenario : Offline
Mode     : PerformanceOnly
Samples per second: 4.5
Tokens per second: 1320.0
Result is : VALID
  Min duration satisfied : Yes

================================================
Additional Stats
================================================
Mean latency (ns)               : 5463316299885
"""
)
SERVER = (
    HEAD
    + """Scenario : Server
Mode     : PerformanceOnly
Completed samples per second    : 74.96
Completed tokens per second: 22020.92
Result is : INVALID

Scheduled samples per second : 76.17
Mean latency (ns)               : 30000000000
Mean First Token latency (ns)               : 400000000
99.00 percentile first token latency (ns)   : 1800000000
Mean Time to Output Token (ns)               : 95000000
50.00 percentile time to output token (ns)   : 90000000
99.00 percentile time to output token (ns)   : 180000000
"""
)


def read(text):
    return read_runs(text.encode(), "mlperf_log_summary.txt")


def test_offline_counts_tokens_and_no_latency():
    (row,) = read(OFFLINE).rows
    assert row["regime"] == "MLPerf offline"
    assert "mlperf" in row["source"]
    assert float(row["measured_output_tokens_per_s"]) == 1320
    assert float(row["output_tokens"]) == pytest.approx(1320 / 4.5, rel=1e-5)
    assert row["measured_e2e_s"] == ""


def test_server_is_an_open_loop_in_milliseconds():
    found = read(SERVER)
    (row,) = found.rows
    assert (row["regime"], row["request_rate_per_s"]) == ("MLPerf server", "76.17")
    assert float(row["measured_ttft_mean_ms"]) == 400
    assert float(row["measured_ttft_p99_ms"]) == 1800
    assert float(row["measured_tpot_mean_ms"]) == 95
    assert float(row["measured_tpot_p50_ms"]) == 90
    assert float(row["measured_e2e_s"]) == 30
    assert any("INVALID" in line for line in found.remarks)


def test_inferred_tokens_are_told():
    found = read(OFFLINE.replace("Tokens per second:", "Tokens per second (inferred):"))
    assert found.rows[0]["measured_output_tokens_per_s"] == "1320"
    assert any("inferred" in line for line in found.remarks)


def test_runs_without_speed_are_refused():
    with pytest.raises(InputError, match="measures no speed"):
        read(OFFLINE.replace("PerformanceOnly", "AccuracyOnly"))
    with pytest.raises(InputError, match="without token latencies"):
        read(OFFLINE.replace("Tokens per second: 1320.0\n", ""))


def test_several_summaries_in_one_text():
    assert [row["regime"] for row in read(OFFLINE + SERVER).rows] == [
        "MLPerf offline", "MLPerf server",
    ]  # fmt: skip
