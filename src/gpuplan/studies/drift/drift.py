"""The figures of a plan beside those that were observed."""

from gpuplan.domain.plan.answer import ChosenPlan, PlannedLoad, SloResult
from gpuplan.domain.telemetry.replan import Drift, Observed


def drifts_of(
    plan: ChosenPlan, load: PlannedLoad, observed: Observed, *, tolerance_frac: float
) -> tuple[Drift, ...]:
    """Every figure that both sides know; the plan's own range widens what is allowed."""
    own = [target for target in plan.slo.promises if target.workload == load.workload]
    found = [_rate(load, observed, tolerance_frac)]
    found += [_latency(target, observed, tolerance_frac) for target in own]
    pool = next((each for each in plan.pools if each.workload == load.workload), None)
    if pool is not None and observed.n_replicas is not None and not pool.layout.role:
        found.append(
            _drift(
                "replicas",
                float(pool.n_replicas),
                float(observed.n_replicas),
                unit="",
                tolerance=0.0,
            )
        )
    return tuple(one for one in found if one is not None)


def _rate(load: PlannedLoad, observed: Observed, tolerance: float) -> Drift | None:
    if load.peak_requests_per_s is None or observed.peak_requests_per_s is None:
        return None
    return _drift(
        "requests at the peak",
        load.peak_requests_per_s,
        observed.peak_requests_per_s,
        unit=" a second",
        tolerance=tolerance,
    )


def _latency(target: SloResult, known: Observed, tolerance: float) -> Drift | None:
    metric = target.what.split(" ")[0]
    observed = {
        "ttft": known.ttft_p95_s,
        "tpot": known.tpot_p95_s,
        "itl": known.tpot_p95_s,
        "e2e": known.e2e_p95_s,
    }.get(metric)
    if observed is None or target.reached_s is None or "p95" not in target.what:
        return None
    reached = target.reached_s
    ratio = observed / reached.value if reached.value else 1.0
    is_beyond = observed > reached.high * (1 + tolerance) or observed > target.limit_s
    return Drift(
        what=target.what,
        planned=f"{_ms(reached.value)} ms ({_ms(reached.low)} … {_ms(reached.high)})",
        observed=f"{observed * 1e3:,.0f} ms",
        change_ratio=ratio,
        is_beyond=is_beyond,
    )


def _drift(what: str, planned: float, observed: float, *, unit: str, tolerance: float) -> Drift:
    ratio = observed / planned if planned else 1.0
    return Drift(
        what=what,
        planned=f"{planned:,.3g}{unit}",
        observed=f"{observed:,.3g}{unit}",
        change_ratio=ratio,
        is_beyond=not 1 / (1 + tolerance) - 1e-9 <= ratio <= 1 + tolerance + 1e-9,
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f}"
