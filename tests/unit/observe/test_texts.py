"""Texts as tools print them, read into the vocabulary."""

import json
import math

import numpy as np
import pytest

from gpuplan.errors import InputError
from gpuplan.observe.read import read_text

OLD = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA H100",Hostname="n1"} 98\n'
NEW = (
    'DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="0",UUID="GPU-1",modelName="NVIDIA H100",hostname="n1"} 0.98\n'
)
KEPT = OLD.replace(" 98", " 0.98")


def read(text: str, name: str = ""):
    return read_text(text, source="test", name=name)


def only(telemetry, metric: str):
    (series,) = telemetry.of(metric)
    return series


def quirks(telemetry) -> dict[str, int]:
    return {quirk.what: quirk.n_cases for quirk in telemetry.quirks}


@pytest.mark.parametrize("text", [OLD, NEW, KEPT], ids=["percent", "ratio", "old name, ratio"])
def test_both_generations_say_the_same(text):
    telemetry = read(text)
    assert only(telemetry, "gpu_util_frac").value == pytest.approx([0.98])
    assert telemetry.subjects[0].node == "n1"
    assert telemetry.subjects[0].model == "NVIDIA H100"


def test_whole_numbers_under_the_old_name_are_percents():
    telemetry = read(OLD.replace(" 98", " 1"))
    assert only(telemetry, "gpu_util_frac").value == pytest.approx([0.01])


def test_memory_is_bytes_in_both_generations():
    old = read('DCGM_FI_DEV_FB_USED{gpu="0"} 1024\n')
    new = read('DCGM_FI_DEV_FB_USED_BYTES{gpu="0"} 1073741824\n')
    assert only(old, "memory_used_bytes").value == only(new, "memory_used_bytes").value


@pytest.mark.parametrize(
    "mark", ["9223372036854775794", "2147483632", "140737488355328", "4294967295"]
)
def test_marks_for_no_value_are_missing(mark):
    telemetry = read(f'DCGM_FI_DEV_MEMORY_TEMP{{gpu="0"}} {mark}\n')
    assert math.isnan(only(telemetry, "memory_temperature_c").value[0])
    assert quirks(telemetry) == {"a mark for 'no value'": 1}


def test_impossible_readings_are_missing():
    telemetry = read('DCGM_FI_DEV_POWER_USAGE{gpu="0"} 1e6\nDCGM_FI_DEV_POWER_USAGE{gpu="1"} 700\n')
    assert [series.is_given.all() for series in telemetry.of("power_w")] == [False, True]


def test_slices_are_subjects_of_their_own():
    line = 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0"%s} 0.5\n'
    telemetry = read(line % "" + line % ',GPU_I_PROFILE="1g.5gb",GPU_I_ID="13"')
    assert [subject.share for subject in telemetry.subjects] == ["", "1g.5gb 13"]


def test_one_bad_line_spoils_nothing():
    telemetry = read(OLD + "DCGM_FI_DEV_POWER_USAGE{gpu=\n" + "vllm:num_requests_waiting 3\n")
    assert only(telemetry, "requests_waiting_count").value == pytest.approx([3.0])
    assert quirks(telemetry)["not a sample"] == 1


def test_unknown_names_are_counted():
    assert quirks(read(OLD + "go_goroutines 7\n")) == {"names outside the vocabulary": 1}


def matrix(name: str, values: list[tuple[float, float]], **labels: str) -> dict:
    points = [[at_s, str(value)] for at_s, value in values]
    return {"metric": {"__name__": name, **labels}, "values": points}


def answer(*series: dict) -> str:
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}
    )


def test_counters_become_rates_and_resets_count_on():
    counts = [(0, 100), (10, 200), (20, 50), (30, 150)]
    telemetry = read(answer(matrix("vllm:generation_tokens_total", counts)))
    assert only(telemetry, "output_tokens_per_s").value == pytest.approx([10.0, 5.0, 10.0])
    assert quirks(telemetry) == {"a counter was reset": 1}


def test_hits_over_queries():
    telemetry = read(
        answer(
            matrix("vllm:prefix_cache_hits_total", [(0, 0), (10, 80), (20, 80)]),
            matrix("vllm:prefix_cache_queries_total", [(0, 0), (10, 100), (20, 100)]),
        )
    )
    hits = only(telemetry, "prefix_hit_frac").value
    assert hits[0] == pytest.approx(0.8)
    assert math.isnan(hits[1])  # nothing was asked


def test_histograms_are_what_came_between_two_samples():
    name = "vllm:time_to_first_token_seconds_bucket"
    telemetry = read(
        answer(
            matrix(name, [(0, 5), (10, 8)], le="0.1"),
            matrix(name, [(0, 9), (10, 20)], le="+Inf"),
            matrix("vllm:time_to_first_token_seconds_sum", [(0, 1.0), (10, 3.5)]),
        )
    )
    (histogram,) = telemetry.histograms
    assert histogram.count.tolist() == [[3.0, 8.0]]
    assert histogram.upper.tolist() == [0.1, math.inf]
    assert histogram.total.tolist() == [2.5]


def test_remote_read_counts_milliseconds():
    labels = [{"name": "__name__", "value": "DCGM_FI_DEV_GPU_UTIL"}, {"name": "gpu", "value": "0"}]
    samples = [{"timestamp": 1_700_000_000_000, "value": 50}]
    document = {"results": [{"timeseries": [{"labels": labels, "samples": samples}]}]}
    series = only(read(json.dumps(document)), "gpu_util_frac")
    assert (series.at_s[0], series.value[0]) == (1.7e9, 0.5)


def test_a_refused_query_is_an_error():
    with pytest.raises(InputError, match="too many samples"):
        read(
            '{"status": "error", "error": "too many samples"}'.replace(
                "{", '{"data": {"resultType": "matrix"}, ', 1
            )
        )


def test_the_documents_table_as_pasted():
    text = """
    Time (min) | GPU Utilization (%)
    -----------------------------
         0    |  20
         1    |  50
         2    |  90
         3    |  85
         4    |  95
    """
    series = only(read(text), "gpu_util_frac")
    assert series.at_s.tolist() == [0.0, 60.0, 120.0, 180.0, 240.0]
    assert series.mean() == pytest.approx(0.68)
    assert series.value.max() == pytest.approx(0.95)


SMI = """timestamp, power.draw [W], utilization.gpu [%], utilization.memory [%]
2024/03/31 16:48:55.963, 24.51 W, 0 %, 0 %
2024/03/31 16:48:56.063, 300.00 W, 97 %, 40 %
2024/03/31 16:48:56.163, 36"""


def test_smi_units_stand_in_brackets_and_a_torn_row_is_left_out():
    telemetry = read(SMI)
    assert only(telemetry, "power_w").value.tolist() == [24.51, 300.0]
    assert only(telemetry, "gpu_util_frac").value == pytest.approx([0.0, 0.97])
    assert quirks(telemetry) == {"a torn or empty row": 1}
    assert [assumption.what for assumption in telemetry.assumptions] == ["time zone"]


WIDE = """timestamp,phase,gpu,power_w,gpu_util_pct,sm_active,tensor_active,dram_active,fp16_active
100,init,0,70,0,0.0,0.0,0.0,0.0
101,steady,0,693,100,0,0,,0
102,steady,0,693,100,0.9,0.6,0.4,0.0
"""


def test_one_empty_profiling_cell_voids_the_sample():
    telemetry = read(WIDE)
    sm = only(telemetry, "sm_active_frac").value
    assert np.isnan(sm).tolist() == [False, True, False]
    assert only(telemetry, "gpu_util_frac").value.tolist() == [0.0, 1.0, 1.0]
    spans = [(span.label, span.begin_s, span.end_s) for span in telemetry.spans]
    assert spans == [("init", 100.0, 101.0), ("steady", 101.0, 102.0)]


def test_wide_tables_named_like_dcgm_know_their_generation():
    head = "timestamp,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE\n"
    percent = read(head + "1,0,98,650\n2,0,97,640\n")
    ratio = read(head + "1,0,0.98,650\n2,0,0.97,640\n")
    assert only(percent, "gpu_util_frac").value == pytest.approx(only(ratio, "gpu_util_frac").value)


def test_rows_out_of_order_are_put_in_order():
    telemetry = read("timestamp,gpu,gpu_util_frac\n20,0,0.2\n10,0,0.1\n20,0,0.3\n")
    assert only(telemetry, "gpu_util_frac").value.tolist() == [0.1, 0.3]
    assert set(quirks(telemetry)) == {"rows out of order of time", "two readings of one instant"}


def test_engine_lines_of_a_log():
    line = (
        "INFO 02-04 10:26:53 [loggers.py:1] Engine 000: Avg prompt throughput: 10.5 tokens/s, "
        "Avg generation throughput: 20.0 tokens/s, Running: 3 reqs, Waiting: 2 reqs, "
        "GPU KV cache usage: 45.0%, Prefix cache hit rate: 88.0%\n"
    )
    telemetry = read(line)
    assert only(telemetry, "kv_cache_frac").value == pytest.approx([0.45])
    assert only(telemetry, "requests_waiting_count").value == pytest.approx([2.0])


def test_faults_in_the_kernel_log():
    line = "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, Timeout\n"
    telemetry = read(line)
    assert only(telemetry, "xid_code").value.tolist() == [119.0]
    assert telemetry.is_dated


def test_slurm_jobs_without_their_steps():
    text = (
        "JobID|Account|State|Start|End|AllocTRES\n"
        "7|vision|RUNNING|2024-01-01T00:00:00|Unknown|cpu=8,gres/gpu=4,gres/gpu:h100=4\n"
        "7.batch|vision|RUNNING|2024-01-01T00:00:00|Unknown|cpu=8\n"
    )
    (job,) = read(text).allocations
    assert (job.n_accelerators, job.team, job.state, job.end_s) == (4.0, "vision", "running", None)


def test_kubernetes_pods_by_their_limits():
    pod = {
        "metadata": {"name": "p", "namespace": "nlp", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {
            "nodeName": "n",
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}],
        },
        "status": {"phase": "Running"},
    }
    document = {"apiVersion": "v1", "kind": "PodList", "items": [pod]}
    (job,) = read(json.dumps(document)).allocations
    assert (job.n_accelerators, job.team, job.nodes) == (2.0, "nlp", ("n",))


@pytest.mark.parametrize("text", ["", "hello\nworld", "a,b\n1,2\n", "{}", "[]"])
def test_what_is_no_telemetry_is_refused(text):
    with pytest.raises(InputError, match="not known"):
        read(text)


def test_a_gap_is_not_a_value():
    telemetry = read("timestamp,gpu,gpu_util_frac\n0,0,1.0\n1,0,1.0\n2,0,1.0\n1000,0,0.0\n")
    series = only(telemetry, "gpu_util_frac")
    assert series.weight_s.tolist() == [1.0, 1.0, 3.0, 1.0]
    assert series.mean() == pytest.approx(5 / 6)


def test_a_two_column_table_of_seconds_is_no_pasted_one():
    telemetry = read("timestamp,requests_per_s\n1700000000,4.5\n1700003600,5.5\n")
    assert only(telemetry, "requests_per_s").value.tolist() == [4.5, 5.5]
