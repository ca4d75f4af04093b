"""Every recorded sample is read as its producer wrote it, and none raises a false alarm.

Three doors: telemetry, traces of requests, and none, for files that hold no record of anything
(catalogues, headings, commands, results of other tools). A new file must be given a line here.
"""

from fnmatch import fnmatch
from pathlib import Path

import pytest

from gpuplan import api
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError
from gpuplan.observe.read import read_telemetry
from gpuplan.pipeline.diagnose import diagnose
from shared_data import SHARED

TRACE, NOTHING = "requests", "no record"
# pattern, reader; the first that fits counts
TAKEN_BY = (
    ("acme/acme_utilization_cdfs.csv", "distributions"),
    ("alibaba_genai_2026/lora_request_trace*", "requests for pictures"),
    ("alibaba_genai_2026/*", "one metric by pod"),
    ("alibaba_gpu_2023/openb_node_list*", "machines"),
    ("alibaba_gpu_2023/openb_pod_list*", "pods"),
    ("alibaba_pai_2020/pai_machine_spec.tar.gz", "machines"),
    ("alibaba_spot_2026/node_info_df.csv", "machines"),
    ("amd_smi_csv/*", "amd-smi CSV"),
    ("azure_llm_2023/*", TRACE),
    ("azure_llm_2024_2025_meta/*requests_per_min*", "requests by the minute"),
    ("burstgpt_aggregates/*.json", "demand by the day"),
    ("dcgm_h100_fleet/*", "DCGM rows"),
    ("dynamo_agent_trace/*", TRACE),
    ("exposition_samples/*.prom", "Prometheus text"),
    ("h100_workload_telemetry/*_bmc.csv.gz", "board controller CSV"),
    ("h100_workload_telemetry/*_ib.csv.gz", "InfiniBand ports CSV"),
    ("h100_workload_telemetry/*_telemetry.csv.gz", "GPU telemetry CSV"),
    ("helios/Earth_gpu_number.csv", "accelerators by team"),
    ("helios/Earth_vc*", "cluster by the minute"),
    ("helios/Venus_cluster_throughput.csv", "cluster submissions"),
    ("inferencex_runs/*_export_aiperf.csv", "AIPerf export"),
    ("inferencex_runs/*server_metrics_export.csv", "AIPerf export"),
    ("inferencex_runs/*_export_console.txt", "AIPerf console"),
    ("inferencex_runs/*_export_aiperf.json", "AIPerf figures"),
    ("inferencex_runs/*dpafals", "AIPerf figures"),
    ("inferencex_runs/*profile_export.jsonl", "AIPerf requests"),
    ("inferencex_runs/*client_metrics.csv*", "requests of a load test"),
    ("inferencex_runs/*gpu_transfer*", "PCIe transfer CSV"),
    ("inferencex_runs/*server_metrics.csv*", "vLLM counters CSV"),
    ("inferencex_runs/*server.log", "vLLM log"),
    ("llm_lengths/*", TRACE),
    ("mit_supercloud/dcgm_per_job_sample.csv", "DCGM summary by job"),
    ("mooncake_fast25/*", TRACE),
    ("nvidia_smi_captures/linux*", "nvidia-smi capture"),
    ("nvidia_smi_logs/*", "nvidia-smi CSV"),
    ("philly/philly.csv", "job list"),
    ("philly/philly_node_sequence.csv", "active nodes"),
    ("ragpulse/0_trace.jsonl", TRACE),
    ("servegen/servegen_client_rates.parquet", "Parquet"),
    ("slurm_samples/*sacct*", "Slurm sacct"),
    ("slurm_samples/*scontrol*", "Slurm scontrol"),
    ("slurm_samples/*sdiag*", "Slurm sdiag"),
    ("slurm_samples/*seff*", "Slurm seff"),
    ("slurm_samples/*sinfo*", "Slurm sinfo"),
    ("slurm_samples/*squeue*", "Slurm squeue"),
    ("slurm_samples/*sshare*", "Slurm sshare"),
    ("spot_traces/*.json", "capacity that could be had"),
    ("stepfun_infinitehbd/*", "faults of nodes"),
    ("vidur_processed/*", TRACE),
    ("vidur_reference/trace*", TRACE),
    ("vllm_server_logs/detail_log*", "answers of a load test"),
    ("vllm_server_logs/gpu_log*", "GPU monitor log"),
    ("vllm_server_logs/vllm_log*", "vLLM log table"),
    ("xid/*dmesg*", "kernel log"),
    ("xid/fabricmanager.log", "fabric manager log"),
    # Words about data, not data.
    ("*.md", NOTHING),
    ("*.tsv", NOTHING),
    ("*.header", NOTHING),
    ("*/*cluster_summary.csv", NOTHING),
    ("*_command.txt", NOTHING),
    ("*workload_distribution_summary.txt", NOTHING),
    ("burstgpt_aggregates/burstgpt_formats.txt", NOTHING),
    ("dcgm_counters/*", NOTHING),
    ("exposition_samples/vllm_metric_families*", NOTHING),
    ("k8s_gpu/*", NOTHING),
    ("nvidia_smi_captures/fields.txt", NOTHING),
    ("servegen/servegen_client_pdfs.parquet", NOTHING),
    ("vidur_reference/vidur_metrics.csv", NOTHING),
    ("xid/nvidia_xid_catalog.csv", NOTHING),
)
# Alarms (faults, slow work) that the recording itself bears out; every other file raises none.
# Queues: half a minute windows of those runs have TTFT p95 above 2 s. Outages: all pools at zero at
# once, or a hole. Communication: two nodes with tensor parallelism over them.
ALARMS = {
    "dcgm_h100_fleet/*": {"missing_devices", "busy_in_name", "kernels_or_exchange"},
    "h100_workload_telemetry/t13_node0_telemetry*": {"communication_heavy"},
    "helios/Earth_vc*": {"telemetry_outage"},
    "philly/philly_node_sequence.csv": {"telemetry_outage"},
    "inferencex_runs/*conc8*server_metrics_export.csv": {"overload"},
    "inferencex_runs/multiturn_server_metrics.csv.gz": {"kv_thrash", "prefix_cache_lost"},
    "vllm_server_logs/vllm_log_scale300*": {"overload"},
    "vllm_server_logs/vllm_log_scale500*": {"slot_limited"},
    "vllm_server_logs/vllm_log_scale1000*": {"slot_limited"},
    "xid/dmesg-with-xid*": {"device_faults"},
    "xid/fabricmanager.log": {"link_errors"},
}
FOLDER = SHARED / "traces"
FILES = sorted(
    str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()
) if FOLDER.is_dir() else []  # fmt: skip


def telemetry_of(path: Path) -> Telemetry | None:
    """What the first door makes of it, or None."""
    try:
        return read_telemetry(path)
    except InputError:
        return None


def reader_without_series(path: Path) -> str:
    """Whether the second door opens."""
    try:
        api.read_trace(path)
    except InputError:
        return NOTHING
    return TRACE


def alarms(telemetry: Telemetry) -> set[str]:
    """Causes that ask somebody to act at once."""
    found = diagnose(telemetry, DiagnoseRequest())
    return {verdict.cause for verdict in found.verdicts if verdict.severity in ("fault", "slow")}


@pytest.mark.parametrize("name", FILES or ["none"])
def test_the_reader_of(name):
    if name == "none":
        pytest.skip("recorded traces lie outside the repository; set GPUPLAN_SHARED_DATA")
    expected = next((kind for pattern, kind in TAKEN_BY if fnmatch(name, pattern)), None)
    assert expected is not None, f"{name} has no line here"
    telemetry = telemetry_of(FOLDER / name)
    assert (reader_without_series(FOLDER / name) if telemetry is None else telemetry.format) == (
        expected
    )
    if telemetry is not None:
        assert alarms(telemetry) == next(
            (causes for pattern, causes in ALARMS.items() if fnmatch(name, pattern)), set()
        )
