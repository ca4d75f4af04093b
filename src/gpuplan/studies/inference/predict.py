"""Predict: a deployment and its load -> throughput and latency with ranges."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import exp, hypot
from typing import NamedTuple

from gpuplan.calibration.inference.labels import cells_of, inference_labels
from gpuplan.calibration.inference.novelty import novelty, unknown
from gpuplan.calibration.inference.ranges import PUBLICATION
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.calibration.constants import InferenceCalibration, Spread
from gpuplan.domain.inference.performance import InferencePrediction, ServingSetup, StepBreakdown
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.performance.kernels.regimes import Served, mixed_load, serve_start_s
from gpuplan.performance.kernels.step import step_parts
from gpuplan.performance.serving.regimes import serve
from gpuplan.studies.inference.deployment import EvaluatedDeployment, constants_for

# The same node measured twice differs by this much [MLPerf]: no range is narrower.
LEAST_LOG = 0.03


def predict_inference(
    setup: ServingSetup,
    *,
    calibration: InferenceCalibration | None = None,
    benchmark: str = "",
    is_published_anew: bool = False,
) -> InferencePrediction:
    """Throughput and latency of the setup; the package's calibration unless another is given.

    What a publication never seen measured lies further off than what is kept aside of a known one.
    """
    known = calibration or inference_calibration()
    labels = inference_labels(setup, benchmark=benchmark)
    deployment = EvaluatedDeployment(setup, constants_for(known, labels))
    told = replica_forecast(deployment)
    served = told.served
    missing = unknown(known.known, labels, model=setup.model.name, version=setup.engine.version)
    kind = PUBLICATION if is_published_anew else novelty(missing)
    ranged = Ranged(setup, known, cells=cells_of(labels), kind=kind)
    rate = ranged.estimate("output_tokens_per_s", served.output_tokens_per_s * setup.n_replicas)
    whole = ranged.estimate("e2e_s", served.e2e_s)
    ttft = ranged.estimate("ttft_mean_ms", served.ttft_s)
    tpot = ranged.estimate("tpot_mean_ms", tpot_mean_s(setup, served))
    if setup.load.regime == "fixed_concurrency":
        rate, whole = _looped(rate, whole, ttft=ttft, tpot=tpot)
    return InferencePrediction(
        output_tokens_per_s=rate,
        ttft_mean_s=ttft,
        tpot_mean_s=tpot,
        tpot_p50_s=ranged.estimate("tpot_p50_ms", told.tpot_p50_s),
        e2e_mean_s=whole,
        ttft_p99_s=ranged.tail("ttft_p99_ms", served.ttft_s),
        tpot_p99_s=ranged.tail("tpot_p99_ms", served.tpot_s),
        n_running=float(served.n_running),
        fits=deployment.fits,
        decode=breakdown(deployment, n_running=float(served.n_running)),
        unknown_labels=missing,
        assumptions=told.assumptions,
    )


def _looped(
    rate: Estimate, whole: Estimate, *, ttft: Estimate, tpot: Estimate
) -> tuple[Estimate, Estimate]:
    """Throughput and end-to-end latency of a closed loop lie where its two latencies lie.

    Few suites publish them beside the latencies that they follow from (Little's law).
    """
    n_rest = (whole.value - ttft.value) / tpot.value
    low, high = ttft.low + n_rest * tpot.low, ttft.high + n_rest * tpot.high
    ratio = rate.value * whole.value
    return (
        replace(rate, low=ratio / high, high=ratio / low),
        replace(whole, low=low, high=high),
    )


class ReplicaForecast(NamedTuple):
    """What one replica gives, and what that rests on."""

    served: Served
    tpot_p50_s: float
    assumptions: tuple[Assumption, ...] = ()


def replica_forecast(of: EvaluatedDeployment) -> ReplicaForecast:
    """By the regime's formula; requests at a rate by a run of an engine."""
    setup, case = of.setup, of.case
    budget = float(setup.settings.max_batch_tokens)
    regime = setup.load.regime
    served = serve(regime, of.work, of.step, r=of.regime, case=case, batch_tokens=budget)
    formula = ReplicaForecast(served, float(served.tpot_s))
    if regime != "poisson" or case.requests_per_s <= 0.0:
        return formula
    # The simulator is loaded by those alone who ask at a rate.
    from gpuplan.studies.inference.open_loop import open_loop_run, run_assumptions  # noqa: PLC0415

    run = open_loop_run(of)
    said = run_assumptions(run, setup)
    if run is None:
        return formula._replace(assumptions=said)
    start_s = float(serve_start_s(of.work, of.step, of.regime, case, run.tpot_mean_s))
    first_s = start_s + run.wait_mean_s
    e2e_s = first_s + case.output_tokens * run.tpot_mean_s
    # What queues does not run: Little's law counts it, the engine's limits do not.
    n_running = min(run.n_running, of.most_running)
    served = Served(served.output_tokens_per_s, first_s, run.tpot_mean_s, e2e_s, n_running)
    return ReplicaForecast(served, run.tpot_p50_s, said)


def tpot_mean_s(setup: ServingSetup, served: Served) -> float:
    """Mean time per token; where a regime's own figure is the median, prompts are added."""
    if setup.load.regime == "fixed_max_batch":
        return float(served.n_running / served.output_tokens_per_s)
    return float(served.tpot_s)


@lru_cache(maxsize=4096)
def _spread(
    known: InferenceCalibration, kind: str, regime: str, *, metric: str, cells: tuple[str, ...]
) -> Spread:
    return known.spread(kind, regime, metric=metric, cells=cells)


class Ranged:
    """Attaches ranges: measurements outside the fit, as far from their predictions."""

    def __init__(
        self, setup: ServingSetup, known: InferenceCalibration, *, cells: tuple[str, ...], kind: str
    ) -> None:
        self._setup, self._known, self._cells, self._kind = setup, known, cells, kind

    def estimate(self, metric: str, value: float) -> Estimate:
        """The value with the spread of its cell."""
        regime = self._setup.load.regime
        spread = _spread(self._known, self._kind, regime, metric=metric, cells=self._cells)
        value = float(value)
        low, high = spread.log_low, spread.log_high
        if self._kind in ("source", PUBLICATION):
            # What is new errs as far as a publication left out, but not to the same side.
            half = hypot(0.5 * (high - low), 0.5 * (high + low))
            low, high = -half, half
        return Estimate(
            value=value,
            low=value * exp(min(low, -LEAST_LOG)),
            high=value * exp(max(high, LEAST_LOG)),
            tier="fitted" if self._kind in ("row", "model") else "estimated",
            sources=self._known.constants.sources,
        )

    def full_throughput(self, value: float) -> Estimate:
        """The fullest rate with its spread: at a given load throughput is the load itself."""
        full = replace(self._setup, load=replace(self._setup.load, regime="max_load"))
        ranged = Ranged(full, self._known, cells=self._cells, kind=self._kind)
        return ranged.estimate("output_tokens_per_s", value)

    def tail(self, metric: str, mean: float) -> Estimate:
        """A percentile from the mean, at the ratio that measurements show."""
        regime = self._setup.load.regime
        spread = _spread(self._known, self._kind, regime, metric=metric, cells=self._cells)
        return Estimate(
            value=float(mean) * exp(spread.log_mid),
            low=float(mean) * exp(spread.log_low),
            high=float(mean) * exp(spread.log_high),
            tier="estimated",
            sources=self._known.constants.sources,
        )


def breakdown(of: EvaluatedDeployment, *, n_running: float) -> StepBreakdown:
    """Where an iteration goes that only decodes what runs."""
    load = mixed_load(of.case, 0.0, n_running / of.case.n_stages)
    parts = step_parts(of.work, of.step, load)
    return StepBreakdown(
        matrices_s=float(parts.matrices_s),
        experts_s=float(parts.experts_s),
        attention_s=float(parts.attention_s),
        activations_s=float(parts.activations_s),
        operators_s=float(parts.operators_s),
        exchange_s=float(parts.exchange_s),
        host_s=float(parts.host_s),
    )


def metric_estimates(prediction: InferencePrediction) -> Mapping[str, Estimate]:
    """Estimates under the names and in the units of measured tables."""
    return {
        "output_tokens_per_s": prediction.output_tokens_per_s,
        "ttft_mean_ms": prediction.ttft_mean_s.scaled(1e3),
        "tpot_mean_ms": prediction.tpot_mean_s.scaled(1e3),
        "tpot_p50_ms": prediction.tpot_p50_s.scaled(1e3),
        "e2e_s": prediction.e2e_mean_s,
        "ttft_p99_ms": prediction.ttft_p99_s.scaled(1e3),
        "tpot_p99_ms": prediction.tpot_p99_s.scaled(1e3),
    }
