"""A dashboard for Grafana: each SLO beside its target, load beside the planned peak."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile
from gpuplan.render.commands.engine import kind_of
from gpuplan.render.monitoring.prometheus import quantile_of, selector
from gpuplan.render.text import json_file

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, PER_ROW = 8, 8, 3


def grafana_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """One dashboard for all pools."""
    found = [panel for one in deployed.pools for panel in _panels(one)]
    placed = [{**panel, "id": i + 1, "gridPos": _place(i)} for i, panel in enumerate(found)]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    yield json_file(
        "grafana-dashboard.json",
        {
            "title": f"gpuplan: {deployed.name}",
            "description": deployed.origin,
            "uid": f"gpuplan-{deployed.name}"[:40],
            "schemaVersion": 39,
            "time": {"from": "now-6h", "to": "now"},
            "refresh": "30s",
            "templating": {"list": [source]},
            "panels": placed,
        },
    )


def _place(i: int) -> dict[str, int]:
    row, column = divmod(i, PER_ROW)
    return {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT}


def _panels(one: DeployedPool) -> Iterator[dict[str, Any]]:
    metric = one.name.replace("-", "_")
    if one.served is not None:
        for target in one.promises:
            found = quantile_of(target)
            if found is not None:
                series = f"gpuplan:{metric}:{found[0]}_seconds:p{round(found[1] * 100)}"
                title = f"{one.pool.workload}: {target.what}"
                yield _panel(title, "s", {"measured": series, "SLO": f"{target.limit_s:g}"})
        peak = one.load.peak_requests_per_s if one.load else None
        lines = {"measured": f"gpuplan:{metric}:requests_per_s"}
        planned = {"planned peak": f"{peak:.6g}"} if peak else {}
        yield _panel(f"{one.pool.workload}: requests/s", "reqps", {**lines, **planned})
        kind = kind_of(one.served)
        if kind.waiting:
            waiting = {"waiting": f"sum({kind.waiting}{selector(one)})"}
            running = {"running": f"sum({kind.running}{selector(one)})"}
            yield _panel(f"{one.pool.workload}: requests", "short", {**waiting, **running})
    if not one.card.is_cpu:
        busy = {"SM active": f"gpuplan:{metric}:sm_active:avg"}
        yield _panel(f"{one.pool.workload}: SM active", "percentunit", busy)


def _panel(title: str, unit: str, series: dict[str, str]) -> dict[str, Any]:
    targets = [
        {"refId": chr(65 + i), "expr": expr, "legendFormat": name, "datasource": SOURCE}
        for i, (name, expr) in enumerate(series.items())
    ]
    limit = {"id": "custom.lineStyle", "value": {"fill": "dash"}}
    dashed = [
        {"matcher": {"id": "byName", "options": name}, "properties": [limit]}
        for name in ("SLO", "planned peak")
        if name in series
    ]
    return {
        "title": title,
        "type": "timeseries",
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": dashed},
        "targets": targets,
    }
