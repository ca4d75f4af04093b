"""Seven days of DCGM and kube-state-metrics from 128 GPUs of six teams, as Prometheus has it.

    python examples/clusters/telemetry-week.py week.json
    gpuplan diagnose week.json --on H100 --usd-per-h 2 --reclaim reclaim.yaml

By hand, at $2 per GPU-hour, 730 h a month, 168 hourly samples:

| team | GPUs | nodes | does |
|---|---|---|---|
| search | 32 | 0–3 | 80 % busy |
| speech | 24 | 4–6 | 80 % busy, but the 8 of node 6 idle all week: 8 × 2 × 730 = $11,680/month |
| research | 24 | 7–9 | 90 % busy |
| vision | 16 | 10, 11 | 80 % busy, 4 of node 10 idle 96 of 167 h: 4 × 2 × 730 × 96/167 = $3,357 |
| ads | 12 | 12, 13 | 8 % busy in 5 GiB each: candidates for MIG |
| platform | 8 | 14, 15 | 80 % busy |

Nodes 12 to 15 have 2 + 2 + 4 + 4 = 12 free GPUs and no whole node: one 8-GPU slot is fragmented.
Reclaim: 12 GPUs, $15,037/month of idle time, with owner and window; the patch is a dry run.
"""

import json
import sys
from pathlib import Path

N_HOURS, HELD_GIB, MEMORY_GIB = 168, 40, 80
BEGIN_S = 1_760_000_400
# Team, first node, GPUs of each node.
ALLOCATED = (
    ("search", 0, (8, 8, 8, 8)),
    ("speech", 4, (8, 8, 8)),
    ("research", 7, (8, 8, 8)),
    ("vision", 10, (8, 8)),
    ("ads", 12, (6, 6)),
    ("platform", 14, (4, 4)),
)
BUSY = {"research": 0.9, "ads": 0.08}
SMALL, N_NODES = "ads", 16


def level(team: str, node: int, gpu: int, hour: int) -> float:
    """How busy a GPU is in an hour."""
    if team == "speech" and node == 6:
        return 0.0
    if team == "vision" and node == 10 and gpu < 4 and hour < 4 * 24:
        return 0.0
    return BUSY.get(team, 0.8)


def series(name: str, values: list[float], labels: dict[str, str]) -> dict:
    """One line of a range query."""
    points = [[BEGIN_S + 3600 * i, f"{v:g}"] for i, v in enumerate(values)]
    return {"metric": {"__name__": name, **labels}, "values": points}


def of_gpu(team: str, node: int, gpu: int) -> list[dict]:
    """What DCGM's exporter says of one GPU; of a free one no pod is named."""
    host, labels = f"node-{node:02}", {"gpu": str(gpu), "modelName": "NVIDIA H100 80GB HBM3"}
    labels |= {"Hostname": host, "UUID": f"GPU-{host}-{gpu}"}
    if team:
        labels |= {"namespace": team, "pod": f"{team}-{host}-0"}
    busy = [level(team, node, gpu, h) if team else 0.0 for h in range(N_HOURS)]
    held = 0.0 if not team else 5.0 if team == SMALL else HELD_GIB
    return [
        series("DCGM_FI_DEV_GPU_UTIL", [100 * b for b in busy], labels),
        series("DCGM_FI_PROF_SM_ACTIVE", [0.75 * b for b in busy], labels),
        series("DCGM_FI_DEV_POWER_USAGE", [90 + 500 * b for b in busy], labels),
        series("DCGM_FI_DEV_FB_USED", [1024 * held] * N_HOURS, labels),
        series("DCGM_FI_DEV_FB_FREE", [1024 * (MEMORY_GIB - held)] * N_HOURS, labels),
    ]


def of_pod(team: str, node: int, gpus: int) -> list[dict]:
    """What kube-state-metrics says of a pod and its node."""
    labels = {"namespace": team, "pod": f"{team}-node-{node:02}-0", "node": f"node-{node:02}"}
    labels |= {"resource": "nvidia_com_gpu", "unit": "integer"}
    return [series("kube_pod_container_resource_requests", [gpus] * N_HOURS, labels)]


def week() -> dict:
    """All of it as one answer of Prometheus."""
    found = []
    for team, first, sizes in ALLOCATED:
        for k, gpus in enumerate(sizes):
            found += of_pod(team, first + k, gpus)
            for gpu in range(8):
                found += of_gpu(team if gpu < gpus else "", first + k, gpu)
    for node in range(N_NODES):
        labels = {"node": f"node-{node:02}", "resource": "nvidia_com_gpu", "unit": "integer"}
        found.append(series("kube_node_status_allocatable", [8] * N_HOURS, labels))
    return {"status": "success", "data": {"resultType": "matrix", "result": found}}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(week()), encoding="utf-8")
