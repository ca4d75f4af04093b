"""Slurm's printed reports, exports of load tests, hosts' counters: figures by hand."""

import pytest

from gpuplan.observe.read import read_text

SEFF = """Job ID: 101
Cluster: east
User/Group: ann/lab
State: COMPLETED (exit code 0)
Cores: 8
CPU Utilized: 00:00:16
CPU Efficiency: 40.00% of 00:00:40 core-walltime
Job Wall-clock time: 00:00:05
Memory Utilized: 2.00 GB (estimated maximum)
Memory Efficiency: 12.50% of 16.00 GB (16.00 GB/node)
"""
SDIAG = """*******************************************************
sdiag output at Tue Sep 17 02:01:26 2024 (1726538486)
Data since      Tue Sep 17 00:21:26 2024 (1726532486)
*******************************************************
Jobs submitted: 60
Jobs failed:    30
Jobs pending:   11
Jobs running:   12
"""
SACCT = (
    "56|train|normal|lab|8|billing=8,cpu=8,gres/gpu=4,mem=500M,node=1|00:12:34|1||||9K|COMPLETED"
    "|0:0|2024-10-20T22:00:00|2024-10-20T22:12:34|c1|0.9M|0.9M\n"
    "56.batch|batch||lab|8|cpu=8,mem=500M,node=1|00:12:34|1||||9K|COMPLETED"
    "|0:0|2024-10-20T22:00:00|2024-10-20T22:12:34|c1|0.9M|0.9M\n"
    "57|torn\n"
)
SERVER = """# AIPerf Server Metrics Export (CSV)
# schema_version: 1.0
Endpoint,Type,Metric,Unit,avg,min,max,model_name
h:1,gauge,vllm:kv_cache_usage_perc,ratio,0.25,0.0,0.5,m
h:1,gauge,process_open_fds,,49.5,48,52,

Endpoint,Type,Metric,Unit,total,rate,model_name
h:1,counter,vllm:generation_tokens,tokens,6000,60.0,m

Endpoint,Type,Metric,Unit,count,sum,model_name,buckets
h:1,histogram,vllm:time_to_first_token_seconds,seconds,10,4.0,m,0.1=2;0.5=8;+Inf=10
"""
FIGURES = """Metric,avg,min,max,sum
Time to First Token (ms),250.0,100.0,900.0,2500.0
Inter Token Latency (ms),20.0,10.0,40.0,200.0

Metric,Value
Request Throughput (requests/sec),1.5
"""


def read(text: str):
    return read_text(text, source="test")


def value(telemetry, metric: str) -> float:
    (series,) = telemetry.of(metric)
    return float(series.value[0])


def test_seff_tells_use_of_cores_and_memory():
    found = read(SEFF)
    assert found.format == "Slurm seff"
    assert value(found, "cpu_util_frac") == pytest.approx(0.4)
    assert value(found, "host_memory_util_frac") == pytest.approx(0.125)
    assert value(found, "host_memory_used_bytes") == 2 * 2**30
    assert [(job.job, job.team, job.state) for job in found.allocations] == [
        ("101", "ann", "completed")
    ]


def test_sdiag_tells_queues_and_rates_since_its_counters_began():
    found = read(SDIAG)
    assert value(found, "jobs_pending_count") == 11
    assert value(found, "jobs_running_count") == 12
    assert value(found, "jobs_submitted_per_s") == pytest.approx(60 / 6000)
    assert value(found, "jobs_failed_per_s") == pytest.approx(30 / 6000)


def test_sacct_without_a_heading_is_told_by_its_cells():
    found = read(SACCT)
    (job,) = found.allocations
    assert (job.job, job.team, job.n_accelerators, job.state) == ("56", "lab", 4.0, "completed")
    assert job.end_s - job.begin_s == 12 * 60 + 34
    assert job.nodes == ("c1",)
    assert {quirk.what: quirk.n_cases for quirk in found.quirks} == {
        "a list without its heading": 1, "steps of a job": 1, "a torn or empty row": 1,
    }  # fmt: skip


def test_processes_of_jobs_and_shares_of_accounts():
    pids = "PID      JOBID    STEPID   LOCALID GLOBALID\n3771 14 batch 0 0\n3772 14 batch - -\n"
    assert [job.job for job in read(pids).allocations] == ["14"]
    share = read("lab|ann|10|0.5|900|0.2|0.4|1.25|2.0||cpu=0,mem=0\n")
    assert value(share, "share_used_ratio") == pytest.approx(0.4)


def test_what_a_load_test_scraped():
    found = read(SERVER)
    assert value(found, "kv_cache_frac") == pytest.approx(0.25)
    assert value(found, "output_tokens_per_s") == pytest.approx(60.0)
    (waits,) = found.histograms
    assert waits.metric == "ttft_s"
    assert waits.count[-1].tolist() == [2.0, 6.0, 2.0]


def test_a_load_tests_own_figures_are_in_seconds():
    found = read(FIGURES)
    assert value(found, "ttft_mean_s") == pytest.approx(0.25)
    assert value(found, "tpot_mean_s") == pytest.approx(0.02)
    assert value(found, "requests_per_s") == pytest.approx(1.5)


def cpu(at_ms: int, **modes: float) -> str:
    return "".join(
        f'node_cpu_seconds_total{{instance="n1",cpu="{core}",mode="{mode}"}} {spent} {at_ms}\n'
        for core in (0, 1)
        for mode, spent in modes.items()
    )


def test_idle_counters_become_use_of_the_processors():
    start = 1_700_000_000_000
    found = read(
        "# TYPE node_cpu_seconds_total counter\n"
        + cpu(start, idle=100, user=50, iowait=10)
        + cpu(start + 10_000, idle=102, user=57, iowait=11)
    )
    assert value(found, "cpu_util_frac") == pytest.approx(0.7)
    assert value(found, "cpu_iowait_frac") == pytest.approx(0.1)


def test_a_restarted_node_counts_from_zero():
    start = 1_700_000_000_000
    found = read(
        "# TYPE node_cpu_seconds_total counter\n"
        + cpu(start, idle=1000, user=500)
        + cpu(start + 10_000, idle=6, user=4)
    )
    assert value(found, "cpu_util_frac") == pytest.approx(0.4)
    assert any(quirk.what == "a counter began anew" for quirk in found.quirks)


def test_available_memory_becomes_used_memory():
    found = read(
        "# TYPE node_memory_MemTotal_bytes gauge\n"
        'node_memory_MemTotal_bytes{instance="n1"} 1000\n'
        'node_memory_MemAvailable_bytes{instance="n1"} 250\n'
    )
    assert value(found, "host_memory_used_bytes") == 750
    assert value(found, "host_memory_total_bytes") == 1000


def test_capacity_and_faults():
    spot = read('{"metadata": {"gap_seconds": 60}, "data": [0, 1, 1]}')
    (series,) = spot.series
    assert series.at_s.tolist() == [0.0, 60.0, 120.0]
    faults = read(
        '[{"node_id": "a", "event_time": 1.0, "event_type": "fault_start",'
        ' "fault_type": {"Class": "GPU"}},'
        ' {"node_id": "a", "event_time": 1.5, "event_type": "fault_end"},'
        ' {"node_id": "b", "event_time": 2.0, "event_type": "fault_start"}]'
    )
    first, second = faults.spans
    assert (first.label, first.end_s - first.begin_s) == ("GPU", 43200.0)
    assert second.end_s == second.begin_s == 2 * 86400.0
