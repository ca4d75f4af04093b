"""Job traces of every producer as columns of one kind; samples are made up, layouts are theirs."""

# ruff: noqa: E501
import gzip
import json
import re

import numpy as np
import polars as pl
import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.jobs.read import read_jobs
from shared_data import shared_file

PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,4,11804.0,6214e9
"""
HELIOS = """job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,vcA,x,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:10:00,2020-04-01 01:10:00,3600,600
2,u2,vcB,y,0,4,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:00:05,2020-04-01 00:01:05,60,0
3,u2,vcB,z,2,8,1,FAILED,2020-04-01 00:01:00,2020-04-01 00:01:30,2020-04-01 00:02:30,60,30
"""
ACME = """job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
a,u0,2,16,32,Pretrain,COMPLETED,2023-03-01 00:00:00+08:00,2023-03-01 00:00:07+08:00,2023-03-01 00:01:07+08:00,60,7,960
"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,1000,10
p1,6000,12288,1,460,V100M16|V100M32,LS,Running,100,1100,100
p2,6000,12288,2,1000,T4,BE,Succeeded,50,650,60
p3,6000,12288,0,0,,BE,Running,60,650,60
p4,6000,12288,1,1000,T4,BE,Pending,70,650,
"""
SPOT = """job_name,organization,gpu_model,cpu_num,gpu_num,worker_num,submit_time,duration,job_type
j0,7,A10,4,1,8,100,3600,HP
j1,9,H800,8,0.5,1,40,600,Spot
"""
SUPERCLOUD = """id_job,id_user,tres_req,tres_alloc,state,time_submit,time_start,time_end,timelimit,priority
1,77,"1=40,2=170000,4=1,5=40,1002=2","1=40,4=1,1002=2",3,1612000000,1612000100,1612003700,1440,5
2,77,"1=4,4=1,5=4","1=4,4=1",3,1612000000,1612000100,1612003700,1440,5
3,78,"1=40,1001=1","1=40,1001=1",7,1612000050,1612000060,1612000160,4294967295,9
"""
SACCT = """JobID|Account|User|AllocTRES|ReqTRES|Submit|Start|End|ElapsedRaw|State|Timelimit
10|nlp|ann|billing=8,cpu=8,gres/gpu:a100=8,gres/gpu=8,node=1||2024-05-01T10:00:00|2024-05-01T10:05:00|2024-05-01T11:05:00|3600|COMPLETED|1-00:00:00
10.batch|nlp|ann|cpu=8,gres/gpu=8||2024-05-01T10:05:00|2024-05-01T10:05:00|2024-05-01T11:05:00|3600|COMPLETED|
11|cv|bob|cpu=8,gres/gpu=2||2024-05-01T10:01:00|Unknown|Unknown|0|PENDING|02:00:00
12|cv|bob|cpu=8||2024-05-01T10:02:00|2024-05-01T10:02:00|2024-05-01T10:03:00|60|COMPLETED|30:00
13|cv|bob|cpu=8,gres/gpu=1||2024-05-01T09:59:00|2024-05-01T10:00:00|2024-05-01T10:00:30|30|NODE_FAIL|UNLIMITED
"""
PAI = "j1,worker,4,Terminated,1000.0,4600.0,600.0,29.3,50.0,V100\nj2,ps,1,Failed,500.0,600.0,600.0,29.3,100.0,T4\n"


def made(tmp_path, text, name="jobs.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_jobs(path)


def test_philly(tmp_path):
    jobs = made(tmp_path, PHILLY)
    assert jobs.arrive_s.tolist() == [0.0, 48 * 60 + 52.0]
    assert jobs.duration_s.tolist() == [2951.0, 66.0]
    assert jobs.n_accelerators.tolist() == [4, 1]
    assert [jobs.team_names[t] for t in jobs.team] == ["6214e9", "11cb48"]
    assert jobs.week_s == (6 * 60 + 13) * 60 + 3  # the 9th of October 2017 was a Monday


def test_helios(tmp_path):
    jobs = made(tmp_path, HELIOS)
    assert len(jobs) == 2
    assert jobs.team_names == ("vcA", "vcB")
    assert jobs.needs.n_cpus.tolist() == [64.0, 8.0]
    assert jobs.remarks == ("passed over jobs without GPUs: 1",)


def test_acme_with_time_zones(tmp_path):
    jobs = made(tmp_path, ACME)
    assert jobs.n_accelerators.tolist() == [16]
    assert jobs.week_s == (24 + 16) * 3600  # midnight of a Wednesday in China is Tuesday 16:00 UTC


def test_openb_shares_and_types(tmp_path):
    jobs = made(tmp_path, OPENB)
    assert jobs.arrive_s.tolist() == [0.0, 50.0, 100.0]
    assert jobs.needs.share_frac.tolist() == [1.0, 1.0, 0.46]
    assert jobs.needs.accelerator.tolist() == [-1, 0, -1]  # one of two types is any
    assert jobs.needs.accelerator_names == ("T4",)
    assert jobs.needs.ram_bytes[0] == 16 * 2**30
    assert jobs.needs.n_cpus.tolist() == [12.0, 6.0, 6.0]
    assert jobs.duration_s.tolist() == [990.0, 590.0, 1000.0]
    assert set(jobs.remarks) == {
        "passed over jobs without GPUs: 1",
        "passed over jobs that never ran: 1",
    }


def test_spot_counts_workers_and_fractions(tmp_path):
    jobs = made(tmp_path, SPOT)
    assert jobs.n_accelerators.tolist() == [1, 8]
    assert jobs.needs.share_frac.tolist() == [0.5, 1.0]
    assert [jobs.needs.accelerator_names[i] for i in jobs.needs.accelerator] == ["H800", "A10"]


def test_supercloud_lists_of_numbered_resources(tmp_path):
    jobs = made(tmp_path, SUPERCLOUD)
    assert jobs.n_accelerators.tolist() == [2, 1]
    assert jobs.terms.limit_s.tolist() == [86400.0, 100.0]  # unlimited: what it took
    assert jobs.terms.priority.tolist() == [5, 9]


def test_sacct_steps_limits_and_pending_jobs(tmp_path):
    jobs = made(tmp_path, SACCT, "sacct.txt")
    assert jobs.n_accelerators.tolist() == [1, 8, 2]
    assert jobs.duration_s.tolist() == [30.0, 3600.0, 7200.0]
    assert jobs.terms.limit_s.tolist() == [30.0, 86400.0, 7200.0]
    assert jobs.team_names == ("cv", "nlp")
    assert jobs.needs.accelerator_names == ("a100",)
    assert "not ended, taken to run to their time limit: 1" in jobs.remarks


def test_pai_without_a_header(tmp_path):
    jobs = made(tmp_path, PAI, "pai_task_table.csv")
    assert jobs.arrive_s.tolist() == [0.0, 500.0]
    assert jobs.n_accelerators.tolist() == [1, 2]  # four instances of half a GPU
    assert jobs.needs.accelerator_names == ("T4", "V100")


def test_plain_csv_with_extra_columns_any_order_and_semicolons(tmp_path):
    text = "colour;team;GPUs;Submit_s;Duration_s;priority\nred;a;2;10;5;3\nblue;b;1;0;7;1\n"
    jobs = made(tmp_path, text)
    assert jobs.arrive_s.tolist() == [0.0, 10.0]
    assert jobs.n_accelerators.tolist() == [1, 2]
    assert jobs.terms.priority.tolist() == [1, 3]


def test_packed_and_parquet_files_are_the_same(tmp_path):
    plain = made(tmp_path, HELIOS)
    (tmp_path / "jobs.csv.gz").write_bytes(gzip.compress(HELIOS.encode()))
    pl.read_csv(tmp_path / "jobs.csv").write_parquet(tmp_path / "jobs.parquet")
    for name in ("jobs.csv.gz", "jobs.parquet"):
        other = read_jobs(tmp_path / name)
        assert other.arrive_s.tolist() == plain.arrive_s.tolist()
        assert other.n_accelerators.tolist() == plain.n_accelerators.tolist()


def test_wrong_cells_are_named_by_line(tmp_path):
    text = "submit_s,duration_s,gpus\n0,5,1\nsoon,5,1\n3,long,1\n4,5,-2\n"
    with pytest.raises(InputError) as caught:
        made(tmp_path, text)
    shown = str(caught.value)
    assert "line 3, submit_s: 'soon' is no time" in shown or ":3" in shown
    assert "'long' is no number" in shown
    assert "'-2' is no number" in shown
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a,b\n1,2\n", "has columns a, b"),
        ("submit_s,duration_s,gpus\n0,5,0\n", "holds no job that ran on GPUs"),
        ('{"items": [{"kind": "Service"}]}', "items of kind Service"),
        ('{"a": 1}', "no items"),
        ("{", "is no list of jobs"),
        ('[{"kind": "Pod"}]', "a part is missing or of another kind"),
        ("[" * 100_000, "a part is missing or of another kind"),
    ],
)
def test_what_is_no_job_trace_is_refused(tmp_path, text, what):
    with pytest.raises(InputError, match=what):
        made(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_jobs(tmp_path / "none.csv")


def pod(name, *, gpus=None, labels=None, **status):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"nvidia.com/mig-1g.5gb": "1"}
    begin, end = status.get("begin"), status.get("end")
    done = {"terminated": {"finishedAt": end}} if end else {"running": {}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "creationTimestamp": "2024-05-06T00:00:00Z",
            "labels": labels or {},
        },
        "spec": {
            "priority": 7,
            "nodeSelector": {"nvidia.com/gpu.product": "A100"},
            "containers": [{"resources": {"limits": limits, "requests": {"cpu": "500m", "memory": "1Gi"}}}],
        },
        "status": {"phase": "Succeeded", "startTime": begin, "containerStatuses": [{"state": done}]},
    }  # fmt: skip


def test_pods_of_one_job_are_a_gang(tmp_path):
    labels = {"job-name": "train"}
    items = [
        pod("a", gpus=8, labels=labels, begin="2024-05-06T00:01:00Z", end="2024-05-06T01:00:00Z"),
        pod("b", gpus=8, labels=labels, begin="2024-05-06T00:02:00Z", end="2024-05-06T01:02:00Z"),
        pod("c", begin="2024-05-06T00:00:10Z", end="2024-05-06T00:01:10Z"),
        pod("d", gpus=1, begin="2024-05-06T00:00:10Z"),
    ]
    jobs = made(tmp_path, json.dumps({"kind": "List", "items": items}), "pods.json")
    assert jobs.n_accelerators.tolist() == [16, 1]
    assert jobs.duration_s.tolist() == [3600.0, 60.0]
    assert jobs.needs.profile_names == ("1g.5gb",)
    assert jobs.needs.profile.tolist() == [-1, 0]
    assert jobs.needs.n_cpus.tolist() == [1.0, 0.5]
    assert jobs.team_names == ("ml",)
    assert jobs.week_s == 0.0  # a Monday


def test_kueue_workloads(tmp_path):
    container = {"resources": {"requests": {"nvidia.com/gpu": 4, "cpu": 8}}}
    item = {
        "kind": "Workload",
        "metadata": {"creationTimestamp": "2024-05-06T00:00:00Z"},
        "spec": {
            "queueName": "team-a",
            "priority": 100,
            "podSets": [{"count": 3, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2024-05-06T00:00:30Z"},
                {"type": "Admitted", "status": "True", "lastTransitionTime": "2024-05-06T00:01:00Z"},
                {"type": "Finished", "status": "True", "lastTransitionTime": "2024-05-06T00:11:00Z"},
            ]
        },
    }  # fmt: skip
    jobs = made(tmp_path, json.dumps({"items": [item]}), "workloads.json")
    assert jobs.n_accelerators.tolist() == [12]
    assert jobs.duration_s.tolist() == [600.0]
    assert jobs.terms.priority.tolist() == [100]
    assert jobs.team_names == ("team-a",)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "n", "n_teams"),
    [("philly/philly.csv", 65_028, 13), ("alibaba_gpu_2023/openb_pod_list_default.csv", 6203, 4)],
)
def test_published_traces_are_read_whole(name, n, n_teams):
    path = shared_file(f"traces/{name}")
    jobs = read_jobs(path)
    assert (len(jobs), len(jobs.team_names)) == (n, n_teams)
    assert (np.diff(jobs.arrive_s) >= 0).all()


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("0,60,1e300", "jobs.csv:2: gpus: '1e300'"),
        ("nan,60,1\ninf,60,1", "jobs.csv:3: submit_s: 'inf'"),
        ("0,1e300,1", "jobs.csv:2: duration_s: '1e300'"),
    ],
)
def test_figures_beyond_any_cluster_are_named_by_line(tmp_path, row, what):
    path = tmp_path / "jobs.csv"
    path.write_text(f"submit_s,duration_s,gpus\n{row}\n")
    with pytest.raises(InputError, match=re.escape(what)):
        read_jobs(path)


def test_bytes_that_are_no_text_do_not_stop_the_other_jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"submit_s,duration_s,gpus,team\n0,60,1,a\xff\n5,60,2,b\n")
    assert read_jobs(path).n_accelerators.tolist() == [1, 2]


def test_a_quote_that_never_ends_is_wrong_input(tmp_path):
    path = tmp_path / "jobs.csv"
    rows = "".join(f"{n},60,1,team\n" for n in range(5000))
    path.write_text('submit_s,duration_s,gpus,team\n0,60,1,"open\n' + rows)
    with pytest.raises(InputError):
        read_jobs(path)


def test_phillys_own_log_is_read_by_attempts(tmp_path):
    """A job that was restarted runs as long as its attempts together, on its widest gang."""
    wide = [{"ip": ip, "gpus": ["gpu0", "gpu1"]} for ip in ("m1", "m2")]
    narrow = [{"ip": "m1", "gpus": ["gpu0"]}]
    log = [
        _logged("2017-10-07 00:50:00", "ee9e8c", ("01:00:00", "01:30:00", wide)),
        _logged("2017-10-07 01:10:00", "b436b2", ("01:20:00", "01:25:00", narrow)),
        _logged("2017-10-07 01:11:00", "b436b2", ("01:20:00", "None", [])),
    ]
    log[0]["attempts"].append(_attempt("02:00:00", "02:10:00", narrow))
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(log))
    jobs = read_jobs(path)
    assert jobs.arrive_s.tolist() == [0.0, 1200.0]
    assert jobs.duration_s.tolist() == [2400.0, 300.0]
    assert jobs.n_accelerators.tolist() == [4, 1]
    assert [jobs.team_names[t] for t in jobs.team] == ["ee9e8c", "b436b2"]
    assert jobs.remarks == ("passed over jobs without GPUs: 1",)


def _logged(submitted, team, attempt):
    known = {"status": "Pass", "jobid": "a", "user": "u", "vc": team}
    return {**known, "submitted_time": submitted, "attempts": [_attempt(*attempt)]}


def _attempt(start, end, detail):
    day = "2017-10-07 "
    times = {"start_time": day + start, "end_time": end if end == "None" else day + end}
    return {**times, "detail": detail}


def test_squeue_as_it_prints_with_blanks_and_resources_of_a_node(tmp_path):
    path = tmp_path / "squeue.txt"
    path.write_text(
        "  JOBID  USER ST         SUBMIT_TIME          START_TIME TIME_LIMIT   TRES_PER_NODE NODES\n"
        "    101 alice  R 2026-11-01T10:00:00 2026-11-01T10:05:00    1:00:00 gres/gpu:a100:4     2\n"
        "    102   bob PD 2026-11-01T10:10:00                 N/A    2:00:00 gres/gpu:a100:1     1\n"
    )
    jobs = read_jobs(path)
    assert jobs.n_accelerators.tolist() == [8, 1]
    assert jobs.duration_s.tolist() == [3600.0, 7200.0]
    assert jobs.team_names == ("alice", "bob")
