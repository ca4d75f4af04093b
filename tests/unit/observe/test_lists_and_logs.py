"""Lists of schedulers and inventories, logs of engines and kernels: each in its own format."""

import json

import pytest

from gpuplan.observe.read import read_text
from gpuplan.observe.schedulers import n_gpus


def read(text, name: str = ""):
    return read_text(text if isinstance(text, str) else json.dumps(text), source="x", name=name)


def quirks(telemetry) -> dict[str, int]:
    return {quirk.what: quirk.n_cases for quirk in telemetry.quirks}


def values(telemetry) -> dict[str, float]:
    return {one.metric: float(one.value[0]) for one in telemetry.series}


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("billing=8,cpu=8,gres/gpu=4,mem=1G", 4), ("cpu=8,gres/gpu:h100=2", 2),
        ("gres/gpu=4,gres/gpu:h100=4", 4), ("gpu:a100:8(S:0-1)", 8), ("gpu:2", 2), ("cpu=8", 0),
        ("", 0), ("gres/gpu:nvidia_h100_80gb_hbm3_1g.10gb=3", 3),
    ],
)  # fmt: skip
def test_accelerators_of_a_list_of_resources(text, n):
    assert n_gpus(text) == n


def test_sacct_of_all_states_and_times():
    text = (
        "JobID|Account|State|Submit|Start|End|ReqTRES|AllocTRES|NodeList\n"
        "1|a|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:10:00|2024-01-01T01:10:00"
        "|gres/gpu=8|gres/gpu=8|n[1-2]\n"
        "2|b|CANCELLED by 1000|2024-01-01T00:00:00|Unknown|Unknown|gres/gpu=2||\n"
        "3|torn\n"
    )
    telemetry = read(text)
    first, second = telemetry.allocations
    assert (first.begin_s - first.submit_s, first.end_s - first.begin_s) == (600.0, 3600.0)
    assert (first.n_accelerators, first.nodes) == (8.0, ("n[1-2]",))
    assert (second.state, second.n_accelerators, second.begin_s) == ("cancelled", 2.0, None)
    assert quirks(telemetry) == {"a torn or empty row": 1}


def test_sinfo_counts_what_is_there_and_what_is_in_use():
    line = "batch*|up|node-{}|gpu:h100:8(S:0-1)|gpu:h100:{}(IDX:0-3)|mixed\n"
    telemetry = read(line.format(1, 4) + line.format(2, 0))
    assert [one.node for one in telemetry.subjects] == ["node-1", "node-2"]
    assert [one.value[0] for one in telemetry.of("total_count")] == [8.0, 8.0]
    assert [one.value[0] for one in telemetry.of("allocated_count")] == [4.0, 0.0]


def test_squeue_tells_who_runs_and_who_waits():
    line = "{}|team|p|name|user|{}|0:00|1|gres/gpu:{}\n"
    telemetry = read(line.format(1, "RUNNING", 4) + line.format(2, "PENDING", 8))
    jobs = [(one.job, one.team, one.state, one.n_accelerators) for one in telemetry.allocations]
    assert jobs == [("1", "team", "running", 4.0), ("2", "team", "pending", 8.0)]


def pod(name: str, *limits: dict[str, str], phase: str = "Running") -> dict:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": "2023-11-14T22:13:20Z"},
        "spec": {"containers": [{"resources": {"limits": limit}} for limit in limits]},
        "status": {"phase": phase, "startTime": "2023-11-14T22:14:20Z"},
    }


def test_containers_of_a_pod_add_up_and_slices_count():
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            pod("two", {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1", "cpu": "4"}),
            pod("slices", {"nvidia.com/mig-1g.10gb": "3"}, phase="Pending"),
            pod("amd", {"amd.com/gpu": "8"}),
            pod("web", {"cpu": "1"}),
            {"kind": "Service", "metadata": {"name": "s"}},
        ],
    }
    telemetry = read(document)
    jobs = {one.job: (one.n_accelerators, one.state) for one in telemetry.allocations}
    assert jobs == {"two": (2.0, "running"), "slices": (3.0, "pending"), "amd": (8.0, "running")}
    assert telemetry.allocations[0].begin_s - telemetry.allocations[0].submit_s == 60.0
    assert quirks(telemetry) == {"pods without accelerators": 1, "another kind of object": 1}


def test_nodes_hand_out_what_is_allocatable():
    node = {
        "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100"}},
        "status": {"allocatable": {"nvidia.com/gpu": "7"}, "capacity": {"nvidia.com/gpu": "8"}},
    }
    telemetry = read({"apiVersion": "v1", "kind": "NodeList", "items": [node]})
    assert values(telemetry) == {"total_count": 7.0}
    assert (telemetry.subjects[0].node, telemetry.subjects[0].model) == ("n1", "NVIDIA-H100")


LINE = (
    "(APIServer pid=7) \x1b[32mINFO\x1b[0m 02-04 10:26:{}3 [loggers.py:1] Engine 00{}: "
    "Avg prompt throughput: {} tokens/s, Avg generation throughput: 20.0 tokens/s, "
    "Running: 3 reqs, Waiting: 2 reqs, GPU KV cache usage: 45.0%\n"
)


def test_engine_lines_by_engine_and_time_without_colours():
    telemetry = read(
        LINE.format(1, 0, 10.0) + "noise\n" + LINE.format(2, 0, 30.0) + LINE.format(2, 1, 7)
    )
    assert [one.service for one in telemetry.subjects] == ["engine 000", "engine 001"]
    first, second = telemetry.of("input_tokens_per_s")
    assert (first.value.tolist(), second.value.tolist()) == ([10.0, 30.0], [7.0])
    assert first.at_s[1] - first.at_s[0] == 10.0
    assert telemetry.of("prefix_hit_frac") == ()
    assert [one.what for one in telemetry.assumptions] == ["year of the log"]


def test_faults_of_one_second_are_all_kept():
    line = "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): {}, pid=1\n"
    telemetry = read(line.format(79) + line.format(119) + "NVRM: Xid without a time\n")
    (series,) = telemetry.of("xid_code")
    assert series.value.tolist() == [79.0, 119.0]
    assert telemetry.subjects[0].device == "0000:9b:00"
    assert quirks(telemetry) == {"a fault without a time": 1}


def test_a_kernel_log_without_faults_says_so():
    telemetry = read("".join(f"[    {k}.5] usb 1-1: new device\n" for k in range(5)))
    assert telemetry.series == ()
    assert list(quirks(telemetry)) == ["messages of the kernel"]


def test_the_fabric_managers_errors():
    text = (
        "[Feb 23 2025 16:24:18] [INFO] [tid 12] started\n"
        "[Feb 23 2025 16:25:18] [ERROR] [tid 12] detected NVSwitch non-fatal error 12028 on "
        "fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61\n"
    )
    telemetry = read(text)
    assert values(telemetry) == {"switch_fault_code": 12028.0}
    assert telemetry.subjects[0].device == "00000000:86:00.0"


def test_machines_pods_and_quotas():
    machines = read("sn,model,gpu\na,A100,8\nb,T4,2\nc,T4,\n")
    assert [one.value[0] for one in machines.of("total_count")] == [8.0, 2.0]
    assert quirks(machines) == {"a torn or empty row": 1}
    head = "name,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    half, two = read(head + "p,1,500,LS,Running,10,90,20\nq,2,1000,BE,Pending,10,90,\n").allocations
    assert (half.n_accelerators, half.begin_s, half.end_s) == (0.5, 20.0, 90.0)
    assert (two.n_accelerators, two.state, two.begin_s) == (2.0, "pending", None)
    quotas = read("date,vcA,vcB,total\n2023-03-01,8,16,24\n2023-03-02,8,24,32\n")
    assert [one.team for one in quotas.subjects] == ["vcA", "vcB"]
    assert quotas.series[1].value.tolist() == [16.0, 24.0]
    assert quotas.series[1].at_s[1] - quotas.series[1].at_s[0] == 86400.0


def test_spot_capacity_demand_and_faults():
    spot = read({"metadata": {"gap_seconds": 300}, "data": [[4, 0, 2], [1, 1, 1]]})
    assert [one.value.tolist() for one in spot.series] == [[4, 0, 2], [1, 1, 1]]
    assert spot.series[0].at_s.tolist() == [0.0, 300.0, 600.0]
    demand = read({"daily": [{"d": 1, "req": 86400}], "week1_min": [{"t": 2, "tps": 50}]})
    assert values(demand) == {"requests_per_s": 1.0, "output_tokens_per_s": 50.0}
    assert [one.at_s[0] for one in demand.series] == [86400.0, 120.0]

    def event(node, day, kind):
        return {"node_id": node, "event_time": day, "event_type": kind,
                "fault_type": {"Class": "GPU"}}  # fmt: skip

    faults = read(
        [event("a", 1, "fault_start"), event("a", 3, "fault_end"), event("b", 2, "fault_start"),
         event("c", 4, "fault_end")]
    )  # fmt: skip
    spans = [(one.begin_s / 86400, one.end_s / 86400, one.label) for one in faults.spans]
    assert spans == [(1.0, 3.0, "GPU"), (2.0, 4.0, "GPU")]
    assert quirks(faults) == {"an end without a begin": 1, "a fault without an end": 1}


def test_one_metric_by_pod_is_told_by_the_files_name():
    text = "timestamp_anon,container_ip,value\n60,p1,50\n120,p1,70\n60,,10\n60,p2,\n"
    telemetry = read(text, name="pod_gpu_duty_cycle_raw.csv")
    assert telemetry.series[0].value == pytest.approx([0.5, 0.7])
    assert quirks(telemetry) == {"a torn or empty row": 1, "rows without a pod": 1}
    (waits,) = read(text.replace(",50", ",250"), name="queue_rt.csv").series[:1]
    assert waits.value[0] == pytest.approx(0.25)  # milliseconds


def test_jobs_and_distributions():
    (job,) = read("timestamp,duration,num_gpus,cluster\n100,50,4,east\n").allocations
    assert (job.begin_s, job.end_s, job.n_accelerators, job.team) == (100.0, 150.0, 4.0, "east")
    text = "source,metric,x,cdf_pct\ns,GPU_UTIL_pct,10,50\ns,GPU_UTIL_pct,90,100\ns,FAN,1,5\n"
    telemetry = read(text)
    assert telemetry.series[0].value == pytest.approx([0.1, 0.9])
    assert telemetry.sampling == "mean"
    assert quirks(telemetry)["a distribution of something else"] == 1


def test_requests_of_a_load_test_without_its_warm_up():
    def line(start_ns: int, phase: str, ttft_ms: float) -> str:
        about = {"request_start_ns": start_ns, "benchmark_phase": phase}
        metrics = {"time_to_first_token": {"value": ttft_ms, "unit": "ms"}}
        return json.dumps({"metadata": about, "metrics": metrics}) + "\n"

    telemetry = read(
        line(10**18, "warmup", 900.0) + line(10**18 + 10**9, "profiling", 250.0) + "{torn\n"
    )
    (series,) = telemetry.series
    assert (series.metric, series.value.tolist()) == ("ttft_mean_s", [0.25])
    assert series.at_s == pytest.approx([1e9 + 1.0])
    assert quirks(telemetry) == {"requests of the warm-up": 1, "a torn or empty row": 1}
