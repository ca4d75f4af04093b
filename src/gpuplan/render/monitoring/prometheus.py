"""Recording and alert rules for Prometheus, with the plan's own limits."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.answer import SloResult
from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile, ServedModel
from gpuplan.render.commands.engine import EngineKind, kind_of
from gpuplan.render.reasons import head, reasons
from gpuplan.render.text import yaml_file, yaml_text

WINDOW = "5m"
# Activity of a board: as a share by NVIDIA's DCGM exporter, in per cent by AMD's.
ACTIVITY = {
    "nvidia": ("sm_active", "DCGM_FI_PROF_SM_ACTIVE"),
    "amd": ("gfx_activity", "gpu_gfx_activity"),
}
HISTOGRAMS = {"ttft": "ttft", "tpot": "tpot"}


def prometheus_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """Rules of every served pool, and of the GPUs of all others."""
    groups = [group for one in deployed.pools if (group := _group(one))["rules"]]
    notes = [*head(deployed), *(line for one in deployed.pools for line in reasons(one))]
    if groups:
        yield yaml_file("gpuplan.rules.yml", yaml_text({"groups": groups}, notes))


def _group(one: DeployedPool) -> dict[str, Any]:
    rules = list(_gpu_rules(one))
    if one.served is not None:
        rules += [*_latency_rules(one, one.served), *_load_rules(one, one.served)]
    return {"name": f"gpuplan-{one.name}", "interval": "30s", "rules": rules}


def selector(one: DeployedPool) -> str:
    """Series of the pool's own pods."""
    return f'{{app_kubernetes_io_name="{one.name}"}}'


def _gpu_rules(one: DeployedPool) -> Iterator[dict[str, Any]]:
    """Mean activity of the pool's boards, where their vendor's exporter tells it by pod."""
    if one.card.is_cpu or one.card.vendor.lower() not in ACTIVITY:
        return
    what, series = ACTIVITY[one.card.vendor.lower()]
    pods = f'{{pod=~"{one.name}-.*"}}'
    expr = f"avg({series}{pods})" + (" / 100" if what == "gfx_activity" else "")
    yield {"record": f"gpuplan:{_metric(one)}:{what}:avg", "expr": expr}


def _metric(one: DeployedPool) -> str:
    return one.name.replace("-", "_")


def quantile_of(target: SloResult) -> tuple[str, float] | None:
    """Which latency a target is about, and its quantile; None: no histogram reports it."""
    what, _, quantile = target.what.partition(" p")
    name = HISTOGRAMS.get(what.lower())
    return None if name is None or not quantile.isdigit() else (name, int(quantile) / 100)


def _latency_rules(one: DeployedPool, served: ServedModel) -> Iterator[dict[str, Any]]:
    kind = kind_of(served)
    for target in one.promises:
        found = quantile_of(target)
        if found is None:
            continue
        name, quantile = found
        record = f"gpuplan:{_metric(one)}:{name}_seconds:p{round(quantile * 100)}"
        yield {"record": record, "expr": _quantile(one, _histogram(kind, name), quantile)}
        yield {
            "alert": f"{one.name}-{name}-slo",
            "expr": f"{record} > {target.limit_s:g}",
            "for": "10m",
            "labels": {"severity": "page", "pool": one.name},
            "annotations": {
                "summary": f"{one.pool.workload}: {target.what} is above its SLO of "
                f"{target.limit_s * 1e3:g} ms; the plan predicted {_predicted(target)} ms"
            },
        }


def _histogram(kind: EngineKind, name: str) -> str:
    return kind.ttft if name == "ttft" else kind.tpot


def _predicted(target: SloResult) -> str:
    return "no" if target.reached_s is None else f"{target.reached_s.value * 1e3:.0f}"


def _quantile(one: DeployedPool, histogram: str, quantile: float) -> str:
    rate = f"sum by (le) (rate({histogram}_bucket{selector(one)}[{WINDOW}]))"
    return f"histogram_quantile({quantile:g}, {rate})"


def _load_rules(one: DeployedPool, served: ServedModel) -> Iterator[dict[str, Any]]:
    kind, peak = kind_of(served), one.load.peak_requests_per_s if one.load else None
    rate = f"gpuplan:{_metric(one)}:requests_per_s"
    yield {"record": rate, "expr": f"sum(rate({kind.ttft}_count{selector(one)}[{WINDOW}]))"}
    if peak:
        yield {
            "alert": f"{one.name}-past-planned-peak",
            "expr": f"{rate} > {peak:.6g}",
            "for": "15m",
            "labels": {"severity": "ticket", "pool": one.name},
            "annotations": {
                "summary": f"{one.pool.workload} carries more than the {peak:.3g} requests/s that "
                "it was planned for: gpuplan replan"
            },
        }
