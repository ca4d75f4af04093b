"""Recorded telemetry, read as its producers wrote it."""

import pytest

from gpuplan.observe.read import read_telemetry
from shared_data import shared_file

# file, format, subjects, series
RECORDED = {
    "dcgm_h100_fleet/dcgm_metrics_20250718_134233.csv": ("DCGM rows", 127, 1016),
    "exposition_samples/vllm.datadog_fixture.prom": ("Prometheus text", 1, 5),
    "exposition_samples/tgi.datadog_fixture.prom": ("Prometheus text", 1, 2),
    "exposition_samples/dcgm_exporter.nvidia_doc_a100_mig.prom": ("Prometheus text", 2, 9),
    "exposition_samples/amd_device_metrics_exporter.source_comment.prom": ("Prometheus text", 1, 1),
    "h100_workload_telemetry/t13_node0_ib.csv.gz": ("InfiniBand ports CSV", 1, 2),
    "h100_workload_telemetry/t13_node0_bmc.csv.gz": ("board controller CSV", 1, 1),
    "amd_smi_csv/gpu_metrics_mi3xx_first_rows.csv": ("amd-smi CSV", 2, 14),
    "vllm_server_logs/vllm_log_scale1000_prompt500.csv": ("vLLM log table", 1, 5),
    "vllm_server_logs/gpu_log_scale1000_prompt500.json": ("GPU monitor log", 1, 4),
    "inferencex_runs/raw_samples/tp1_bs64_offloadoff__server.log": ("vLLM log", 1, 6),
    "mit_supercloud/dcgm_per_job_sample.csv": ("DCGM summary by job", 15, 90),
    "slurm_samples/meta_gcm_sinfo-output-for-structured.txt": ("Slurm sinfo", 10, 20),
    "alibaba_genai_2026/queue_size_raw_anon.csv.gz": ("one metric by pod", 1, 1),
    "nvidia_smi_captures/linux-x86_64__nvidia-l40s__595.80.txt": ("nvidia-smi capture", 1, 12),
    "xid/dmesg-with-xid-119.log": ("kernel log", 1, 1),
}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_recorded_file_is_read(name):
    telemetry = read_telemetry(shared_file(f"traces/{name}"))
    found = (telemetry.format, len(telemetry.subjects), len(telemetry.series))
    assert found == RECORDED[name]


def test_percent_comes_from_the_schema_even_below_one():
    path = shared_file("traces/vllm_server_logs/vllm_log_scale1000_prompt500.csv")
    (cache,) = read_telemetry(path).of("kv_cache_frac")
    assert cache.value[1] == pytest.approx(0.00645, rel=1e-3)
    assert 0.4 < cache.value.max() < 0.5


def test_torn_last_line_is_told():
    name = "traces/nvidia_smi_logs/llama2-7b__2024-03-28__11-15-46__nvidia-smi.csv"
    telemetry = read_telemetry(shared_file(name))
    assert [(quirk.what, quirk.n_cases) for quirk in telemetry.quirks] == [
        ("a torn or empty row", 1)
    ]


def test_power_agrees_with_the_energy_counter():
    telemetry = read_telemetry(shared_file("traces/h100_workload_telemetry/t3_telemetry.csv.gz"))
    for subject in range(8):
        power, energy = telemetry.one("power_w", subject), telemetry.one("energy_j_per_s", subject)
        assert power.mean() == pytest.approx(energy.mean(), rel=0.005)
