"""Every exporter's own words and units, one sample each, and the value in base units by hand."""

import math

import pytest

from gpuplan.observe.names import HISTOGRAMS
from gpuplan.observe.read import read_text

MIB = 2**20
# One line of the exporter, the metric it becomes, and its value in base units.
GAUGES = [
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "40", "memory_util_frac", 0.4),
    ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", "0.4", "memory_util_frac", 0.4),
    ("DCGM_FI_PROF_SM_ACTIVE", "0.25", "sm_active_frac", 0.25),
    ("DCGM_FI_PROF_SM_UTIL_RATIO", "0.25", "sm_active_frac", 0.25),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "0.5", "tensor_active_frac", 0.5),
    ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", "0.5", "tensor_active_frac", 0.5),
    ("DCGM_FI_DEV_POWER_USAGE", "650.5", "power_w", 650.5),
    ("DCGM_FI_DEV_BOARD_POWER_WATTS", "650.5", "power_w", 650.5),
    ("DCGM_FI_DEV_SM_CLOCK", "1980", "sm_clock_hz", 1.98e9),
    ("DCGM_FI_DEV_SM_CLOCK_HERTZ", "1.98e9", "sm_clock_hz", 1.98e9),
    ("DCGM_FI_DEV_FB_FREE", "10", "memory_free_bytes", 10 * MIB),
    ("DCGM_FI_DEV_FB_CAPACITY_BYTES", "8e10", "memory_total_bytes", 8e10),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", "4.5e10", "link_tx_bytes_per_s", 4.5e10),
    ("gpu_gfx_activity", "75", "gpu_util_frac", 0.75),
    ("gpu_used_vram", "4", "memory_used_bytes", 4 * MIB),
    ("gpu_clock", "2100", "sm_clock_hz", 2.1e9),
    ("xpum_engine_ratio", "0.75", "gpu_util_frac", 0.75),
    ("nvidia_smi_utilization_gpu_ratio", "0.75", "gpu_util_frac", 0.75),
    ("nvidia_gpu_duty_cycle", "75", "gpu_util_frac", 0.75),
    ("nvidia_gpu_power_usage_milliwatts", "250000", "power_w", 250.0),
    ("nv_gpu_utilization", "0.75", "gpu_util_frac", 0.75),
    ("nv_gpu_power_limit", "700", "power_limit_w", 700.0),
    ("ray_node_gpus_utilization", "75", "gpu_util_frac", 0.75),
    ("ray_node_gram_used", "3", "memory_used_bytes", 3 * MIB),
    ("vllm:num_requests_running", "12", "requests_running_count", 12.0),
    ("vllm:kv_cache_usage_perc", "0.9", "kv_cache_frac", 0.9),
    ("vllm:gpu_cache_usage_perc", "0.9", "kv_cache_frac", 0.9),
    ("vllm:avg_generation_throughput_toks_per_s", "1500", "output_tokens_per_s", 1500.0),
    ("sglang:num_queue_reqs", "7", "requests_waiting_count", 7.0),
    ("sglang:token_usage", "0.33", "kv_cache_frac", 0.33),
    ("sglang:cache_hit_rate", "0.6", "prefix_hit_frac", 0.6),
    ("sglang:gen_throughput", "900", "output_tokens_per_s", 900.0),
    ("tgi_queue_size", "5", "requests_waiting_count", 5.0),
    ("tgi_batch_current_size", "8", "requests_running_count", 8.0),
    ("trtllm_kv_cache_utilization", "0.4", "kv_cache_frac", 0.4),
    ("nv_inference_pending_request_count", "9", "requests_waiting_count", 9.0),
    ("num_requests_waiting", "3", "requests_waiting_count", 3.0),
    ("kube_deployment_status_replicas_available", "4", "replicas_count", 4.0),
    ("node_infiniband_rate_bytes_per_second", "5e10", "fabric_line_bytes_per_s", 5e10),
]
COUNTERS = [
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 7e6, "energy_j_per_s", 700.0),  # millijoules
    ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 7e3, "energy_j_per_s", 700.0),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 20, "pcie_replays_per_s", 2.0),
    ("vllm:prompt_tokens_total", 5000, "input_tokens_per_s", 500.0),
    ("vllm:num_preemptions_total", 5, "preemptions_per_s", 0.5),
    ("vllm:request_success_total", 40, "requests_per_s", 4.0),
    ("sglang:generation_tokens_total", 3000, "output_tokens_per_s", 300.0),
    ("tgi_request_failure", 1, "requests_failed_per_s", 0.1),
    ("nv_inference_request_success", 30, "requests_per_s", 3.0),
    ("ts_inference_requests_total", 30, "requests_per_s", 3.0),
    ("node_disk_io_time_seconds_total", 9, "disk_busy_frac", 0.9),
    ("node_network_receive_bytes_total", 1e10, "network_rx_bytes_per_s", 1e9),
    ("node_infiniband_port_data_transmitted_bytes_total", 5e10, "fabric_tx_bytes_per_s", 5e9),
]


def read(text: str):
    return read_text(text, source="test")


@pytest.mark.parametrize(("name", "text", "metric", "value"), GAUGES, ids=[g[0] for g in GAUGES])
def test_a_gauge_in_base_units(name, text, metric, value):
    telemetry = read(f'# TYPE {name} gauge\n{name}{{gpu="0"}} {text}\n')
    assert telemetry.metrics == (metric,)
    assert telemetry.series[0].value == pytest.approx([value])
    assert telemetry.quirks == ()


@pytest.mark.parametrize(("name", "rise", "metric", "rate"), COUNTERS, ids=[c[0] for c in COUNTERS])
def test_a_counter_becomes_a_rate(name, rise, metric, rate):
    first = f'{name}{{gpu="0"}} 1000 1700000000000\n'
    later = f'{name}{{gpu="0"}} {1000 + rise} 1700000010000\n'
    (series,) = read(first + later).series
    assert series.metric == metric
    assert series.value == pytest.approx([rate])
    assert series.at_s == pytest.approx([1.7e9])


@pytest.mark.parametrize(("name", "rise", "metric", "rate"), COUNTERS, ids=[c[0] for c in COUNTERS])
def test_a_counter_read_once_has_no_rate(name, rise, metric, rate):
    telemetry = read(f"{name} {rise}\n")
    assert telemetry.series == ()
    assert [quirk.what for quirk in telemetry.quirks] == ["a counter read once has no rate"]


@pytest.mark.parametrize("name", sorted(HISTOGRAMS))
def test_every_histogram_is_read(name):
    (found,) = read(
        f'{name}_bucket{{le="1"}} 3\n{name}_bucket{{le="+Inf"}} 4\n{name}_sum 5\n{name}_count 4\n'
    ).histograms
    assert found.metric == HISTOGRAMS[name]
    assert found.upper.tolist() == [1.0, math.inf]
    assert found.count.tolist() == [[3.0, 1.0]]
    assert found.total.tolist() == [5.0]


def test_openmetrics_exemplars_seconds_and_the_end_mark():
    text = (
        "# TYPE vllm:time_to_first_token_seconds histogram\n"
        'vllm:time_to_first_token_seconds_bucket{le="0.5"} 8 1.7e+09 # {trace_id="a b"} 0.31\n'
        'vllm:time_to_first_token_seconds_bucket{le="+Inf"} 9 1.7e+09 # {trace_id="c"} 3.5 1.6e9\n'
        "# EOF\n"
    )
    telemetry = read(text)
    (found,) = telemetry.histograms
    assert found.at_s.tolist() == [1.7e9]
    assert found.count.tolist() == [[8.0, 1.0]]
    assert "not a sample" not in {quirk.what for quirk in telemetry.quirks}


@pytest.mark.parametrize(
    ("stamp", "at_s"),
    [("", 0.0), (" 1700000000000", 1.7e9), (" 1700000000.5", 1700000000.5), (" 1.7e+09", 1.7e9)],
    ids=["none", "milliseconds", "seconds", "exponent"],
)
def test_times_of_samples(stamp, at_s):
    (series,) = read(f"vllm:num_requests_running 1{stamp}\n").series
    assert series.at_s.tolist() == [at_s]


def test_labels_may_hold_braces_commas_and_quotes():
    (subject,) = read(
        'vllm:num_requests_running{model_name="a}b, \\"c\\"\\\\d",pod="p"} 1\n'
    ).subjects
    assert (subject.service, subject.job) == ('a}b, "c"\\d', "p")


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_values_that_are_no_numbers_are_not_given(value):
    (series,) = read(f'DCGM_FI_PROF_SM_ACTIVE{{gpu="0"}} {value}\n').series
    assert not series.is_given.any()


@pytest.mark.parametrize(
    ("labels", "node", "device", "team", "job"),
    [
        ('gpu="1",Hostname="a"', "a", "1", "", ""),
        ('gpu="1",hostname="a",instance="10.0.0.1:9400"', "a", "1", "", ""),
        ('gpu="1",instance="10.0.0.1:9400"', "10.0.0.1", "1", "", ""),
        ('gpu="1",namespace="mon",exported_namespace="nlp",pod="x",exported_pod="p"',
         "", "1", "nlp", "p"),
        ('gpu_id="2",node="b",namespace="cv",pod="q"', "b", "2", "cv", "q"),
    ],
)  # fmt: skip
def test_who_a_sample_is_about(labels, node, device, team, job):
    (one,) = read(f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 100\n").subjects
    assert (one.node, one.device, one.team, one.job) == (node, device, team, job)


def test_ports_of_one_node_add_up_and_engines_behind_one_address_do_not():
    name = "node_infiniband_port_data_received_bytes_total"
    text = "".join(
        f'{name}{{instance="n1",device="mlx5_{port}"}} {count} {at}\n'
        for at, count in ((1700000000000, 0), (1700000010000, 2e10))
        for port in (0, 1)
    )
    (fabric,) = read(text).series
    assert fabric.value == pytest.approx([4e9])
    engines = read("".join(f'vllm:num_requests_running{{engine="{k}"}} {k}\n' for k in (0, 1)))
    assert [one.value[0] for one in engines.series] == [0.0, 1.0]
