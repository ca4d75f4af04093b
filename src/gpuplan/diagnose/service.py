"""Service and work from engines: backlog and replicas, targets and error budget, energy."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuplan.diagnose.features import DeviceView, EngineView, window_means
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.telemetry.diagnosis import DeviceFacts, ModelFacts, Verdict
from gpuplan.domain.telemetry.digest import quantile, summed
from gpuplan.domain.telemetry.figures import Backlog, ServiceFigures, SloState, TokenFlow, WorkDone
from gpuplan.domain.telemetry.observation import Series, Telemetry

WINDOW_S = 30.0
WRITTEN, RUNNING = "output_tokens_per_s", "requests_running_count"
WAITING = "requests_waiting_count"
N_STEPS = 96
LEAST_USE = 0.05  # below it a capacity would be guessed from nothing
GROWS = 1e-3  # requests/s: less is no growth
DRAIN = 1.1  # of the growth, so that the queue does not only stop growing
BUDGET = 0.01  # of requests that may miss their target: p99


def service_of(
    telemetry: Telemetry,
    devices: Sequence[DeviceView],
    engines: Sequence[EngineView],
    *,
    ttft_limit_s: float | None,
    model: ModelFacts | None,
) -> ServiceFigures:
    """Everything that engines say of demand, targets and work."""
    backlog = _backlog(engines)
    return ServiceFigures(
        backlog=backlog,
        slo=_slo(telemetry, backlog, ttft_limit_s),
        work=_work(devices, engines, model),
        flow=_flow(telemetry, engines),
    )


def _backlog(engines: Sequence[EngineView]) -> Backlog | None:
    queues = [one.series["requests_waiting_count"] for one in engines if _has(one, WAITING)]
    waiting, growth = 0.0, 0.0
    for queue in queues:
        at_s, depth = window_means(queue, WINDOW_S)
        waiting += float(queue.value[queue.is_given][-1])
        growth += float(np.polyfit(at_s - at_s[0], depth, 1)[0]) if len(depth) >= 3 else 0.0
    if not queues or (waiting <= 1.0 and growth <= GROWS):
        return None
    rates = [rate for one in engines if (rate := one.mean("requests_per_s"))]
    served = sum(rates) if rates else None
    each = served / len(rates) if served else None
    growth = max(growth, 0.0)
    spare = None if each is None else each - growth
    return Backlog(
        n_waiting_requests=round(waiting),
        growth_requests_per_s=growth,
        served_requests_per_s=served,
        deficit_frac=None if not served else growth / (served + growth),
        n_replicas_more=None if each is None else max(1, math.ceil(DRAIN * growth / each)),
        replica_requests_per_s=each,
        clear_s=waiting / spare if spare is not None and spare > 0 else None,
    )


def with_replicas(verdict: Verdict, backlog: Backlog | None) -> Verdict:
    """The verdict with the number of replicas that this queue takes, and what they bring."""
    if backlog is None or backlog.n_replicas_more is None or not backlog.served_requests_per_s:
        return verdict
    n, each = backlog.n_replicas_more, backlog.replica_requests_per_s or 0.0
    gain = n * each / backlog.served_requests_per_s
    clear = "" if backlog.clear_s is None else f" in {backlog.clear_s / 60:.2g} minutes with one"
    actions = tuple(
        replace(
            action,
            what=f"add {n} replica{'s' if n > 1 else ''}",
            effect=f"{n * each:.3g} requests/s more: the queue drains{clear}",
            gain_low_frac=gain,
            gain_high_frac=gain,
            n_replicas=n,
        )
        if action.what == "add replicas"
        else action
        for action in verdict.actions
    )
    return replace(verdict, actions=actions)


def _slo(
    telemetry: Telemetry, backlog: Backlog | None, ttft_limit_s: float | None
) -> SloState | None:
    found = [one for one in telemetry.histograms if one.metric == "ttft_s"]
    if ttft_limit_s is None or not found:
        return None
    upper, count = summed(found)
    whole = float(count.sum())
    if not whole:
        return None
    attained = float(count[upper <= ttft_limit_s * (1 + 1e-9)].sum()) / whole
    return SloState(
        limit_s=ttft_limit_s,
        attainment_frac=attained,
        burn_rate_ratio=(1.0 - attained) / BUDGET,
        binding_phase=_phase(telemetry, backlog),
    )


def _phase(telemetry: Telemetry, backlog: Backlog | None) -> str:
    """Where most of the time to the first token goes: in the queue, or in prefill."""
    medians = {}
    for metric in ("wait_s", "ttft_s"):
        histograms = [one for one in telemetry.histograms if one.metric == metric]
        medians[metric] = quantile(*summed(histograms), 0.5) if histograms else None
    wait, ttft = medians["wait_s"], medians["ttft_s"]
    if wait is not None and ttft is not None:
        return "queue" if wait > 0.5 * ttft else "prefill"
    return "queue" if backlog is not None else "prefill"


def _flow(telemetry: Telemetry, engines: Sequence[EngineView]) -> TokenFlow | None:
    """Throughput against demand and capacity, in as many steps as a picture is wide."""
    written = [one.series["output_tokens_per_s"] for one in engines if _has(one, WRITTEN)]
    if not written:
        return None
    begin = min(float(one.at_s[0]) for one in written)
    end = max(float(one.at_s[-1]) for one in written)
    edges = np.linspace(begin, end, N_STEPS + 1)
    throughput = _total(written, edges)
    running = _total([one.series[RUNNING] for one in engines if _has(one, RUNNING)], edges)
    waiting = _total([one.series[WAITING] for one in engines if _has(one, WAITING)], edges)
    busy = [one for one in telemetry.of("gpu_util_frac") if one.is_given.any()]
    use = _total(busy, edges) / len(busy) if busy else np.ones(N_STEPS)
    return TokenFlow(
        at_s=floats(edges[:-1]),
        throughput_tokens_per_s=floats(throughput),
        demand_tokens_per_s=floats(throughput * (1.0 + waiting / np.maximum(running, 1.0))),
        capacity_tokens_per_s=floats(throughput / np.maximum(use, LEAST_USE)),
    )


def _has(engine: EngineView, metric: str) -> bool:
    series = engine.series.get(metric)
    return series is not None and bool(series.is_given.any())


def _total(series: Sequence[Series], edges: Floats) -> Floats:
    """Sum over all series at each step; a step without samples has its neighbour's."""
    middle = (edges[:-1] + edges[1:]) / 2
    total = np.zeros(len(middle))
    for one in series:
        total += np.interp(middle, one.at_s[one.is_given], one.value[one.is_given])
    return floats(total)


def _work(
    devices: Sequence[DeviceView], engines: Sequence[EngineView], model: ModelFacts | None
) -> WorkDone | None:
    written = sum(one.mean("output_tokens_per_s") or 0.0 for one in engines)
    read = sum(one.mean("input_tokens_per_s") or 0.0 for one in engines)
    if written <= 0:
        return None
    watts = [stat.mean for one in devices if (stat := one.whole.get("power_w")) is not None]
    is_known = bool(watts) and len(watts) == len(devices)
    mfu, mbu = _model_level(devices, engines, model, tokens_per_s=written + read)
    return WorkDone(
        output_tokens_per_s=written,
        input_tokens_per_s=read,
        j_per_output_token=sum(watts) / written if is_known else None,
        mfu_frac=mfu,
        mbu_frac=mbu,
    )


def _model_level(
    devices: Sequence[DeviceView],
    engines: Sequence[EngineView],
    model: ModelFacts | None,
    *,
    tokens_per_s: float,
) -> tuple[float | None, float | None]:
    """MFU by two operations for each parameter and token; MBU by reading weights each iteration."""
    flop_per_s = _sum([one.facts for one in devices], "flop_per_s")
    bytes_per_s = _sum([one.facts for one in devices], "memory_bytes_per_s")
    if model is None or not flop_per_s or not bytes_per_s:
        return None, None
    mfu = 2.0 * model.n_active_params * tokens_per_s / flop_per_s
    iterations = [
        (one.mean("output_tokens_per_s") or 0.0) / running
        for one in engines
        if (running := one.mean("requests_running_count"))
    ]
    mbu = sum(iterations) * model.weights_bytes / bytes_per_s if iterations else None
    return mfu, mbu


def _sum(facts: Sequence[DeviceFacts], name: str) -> float | None:
    values = [getattr(one, name) for one in facts]
    return None if not values or any(value is None for value in values) else sum(values)
