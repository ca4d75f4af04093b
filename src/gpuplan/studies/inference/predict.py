"""Predict: a deployment and its load -> throughput and latency with ranges."""

from collections.abc import Mapping
from dataclasses import replace
from math import exp
from typing import NamedTuple

from gpuplan.calibration.inference.labels import inference_labels, range_kind, range_regime
from gpuplan.calibration.inference.novelty import configuration, novelty_of
from gpuplan.calibration.inference.own import conditions_of, own_figures
from gpuplan.calibration.inference.site import own_factor
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.calibration.constants import (
    AT_LIMIT,
    HERE,
    LEAST_LOG,
    InferenceCalibration,
    Labels,
    Novelty,
    range_keys,
)
from gpuplan.domain.inference.performance import (
    InferencePrediction,
    Regime,
    ServingSetup,
    StepBreakdown,
)
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.performance.kernels.regimes import (
    Served,
    mixed_load,
    paced_loop,
    serve_start_s,
)
from gpuplan.performance.kernels.step import step_parts
from gpuplan.performance.serving.regimes import BALANCING, serve
from gpuplan.studies.inference.deployment import EvaluatedDeployment, constants_for

# What is estimated rather than fitted: nothing like it was measured.
FAR = ("new accelerator", "new engine")
LOOP: Regime = "fixed_concurrency"
# What errs as the steps of its regime do: few suites publish it beside them (Little's law).
FOLLOWING: Mapping[str, tuple[str, ...]] = {
    LOOP: ("output_tokens_per_s", "e2e_s", "tpot_p50_ms"),
    AT_LIMIT: ("e2e_s", "tpot_p50_ms"),
}


def predict_inference(
    setup: ServingSetup,
    *,
    calibration: InferenceCalibration | None = None,
    benchmark: str = "",
) -> InferencePrediction:
    """Throughput and latency of the setup; the package's calibration unless another is given."""
    known = calibration or inference_calibration()
    labels = inference_labels(setup, benchmark=benchmark)
    deployment = EvaluatedDeployment(setup, constants_for(known, labels))
    notes = replica_forecast(deployment)
    served = notes.served
    ranged = Ranged(setup, known, labels)
    rate, whole, ttft, tpot = _estimates(deployment, ranged, served)
    return InferencePrediction(
        output_tokens_per_s=rate,
        ttft_mean_s=ttft,
        tpot_mean_s=tpot,
        tpot_p50_s=ranged.estimate("tpot_p50_ms", notes.tpot_p50_s),
        e2e_mean_s=whole,
        ttft_p99_s=ranged.tail("ttft_p99_ms", served.ttft_s),
        tpot_p99_s=ranged.tail("tpot_p99_ms", served.tpot_s),
        n_running=float(served.n_running),
        fits=deployment.fits,
        decode=breakdown(deployment, n_running=float(served.n_running)),
        novelty=ranged.novelty,
        assumptions=notes.assumptions,
    )


def _estimates(
    of: EvaluatedDeployment, ranged: "Ranged", served: Served
) -> tuple[Estimate, Estimate, Estimate, Estimate]:
    """Throughput, end-to-end latency, TTFT and TPOT with their ranges."""
    setup = of.setup
    rate = ranged.estimate("output_tokens_per_s", served.output_tokens_per_s * setup.n_replicas)
    whole = ranged.estimate("e2e_s", served.e2e_s)
    ttft = ranged.estimate("ttft_mean_ms", served.ttft_s)
    tpot = ranged.estimate("tpot_mean_ms", tpot_mean_s(setup, served))
    if setup.load.regime == "poisson" and ranged.regime == LOOP:
        ttft, tpot = _queued(of, ttft, tpot, half=ranged.half("tpot_mean_ms"))
        _, whole = _looped(rate, whole, ttft=ttft, tpot=tpot)
    if setup.load.regime == LOOP:
        rate, whole = _looped(rate, whole, ttft=ttft, tpot=tpot)
    return rate, whole, ttft, tpot


def _queued(
    of: EvaluatedDeployment, ttft: Estimate, tpot: Estimate, *, half: float
) -> tuple[Estimate, Estimate]:
    """Latencies at a rate lie where steps as slow or as quick as they may be put them.

    Slower steps are a slower clock: more requests per step. So queues enter the range.
    """
    setup = of.setup
    for slow in (exp(-half), exp(half)):
        rate = (setup.load.requests_per_s or 0.0) * slow
        load = replace(setup.load, requests_per_s=rate)
        run = EvaluatedDeployment(replace(setup, load=load), (of.step, of.regime))
        served = replica_forecast(run).served
        ttft = _reaching(ttft, float(served.ttft_s) * slow)
        tpot = _reaching(tpot, float(served.tpot_s) * slow)
    return ttft, tpot


def _reaching(estimate: Estimate, value: float) -> Estimate:
    return replace(estimate, low=min(estimate.low, value), high=max(estimate.high, value))


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
    """By the regime's formula; requests at a rate, and some closed loops, by a run."""
    setup, case = of.setup, of.case
    budget = float(setup.settings.max_batch_tokens)
    regime = setup.load.regime
    served = serve(regime, of.work, of.step, r=of.regime, case=case, batch_tokens=budget)
    formula = ReplicaForecast(served, float(served.tpot_s))
    if is_loop_run(setup):
        return _run_loop(of, formula)
    if regime != "poisson" or case.requests_per_s <= 0.0:
        return formula
    return _run_at_rate(of, formula)


def is_loop_run(setup: ServingSetup) -> bool:
    """A closed loop that no formula of one batch knows: which of several batches, or of the pieces
    of a prompt longer than an iteration, a request meets decides how long it waits.

    The simulator does not keep data-parallel ranks even, as engines do that hold prompts back.
    """
    load, layout = setup.load, setup.layout
    if load.regime != LOOP or (layout.dp > 1 and setup.engine.name in BALANCING):
        return False
    fresh_tokens = load.input_tokens * (1.0 - load.cached_input_frac)
    return layout.n_engines > 1 or fresh_tokens > setup.settings.max_batch_tokens


def _run_loop(of: EvaluatedDeployment, formula: ReplicaForecast) -> ReplicaForecast:
    # The simulator is loaded by those alone whose load is run.
    from gpuplan.studies.inference.closed_loop import closed_loop_run  # noqa: PLC0415
    from gpuplan.studies.inference.open_loop import not_run  # noqa: PLC0415

    run = closed_loop_run(of)
    if run is None:
        return formula._replace(assumptions=(not_run("--concurrency"),))
    early = of.regime.first_wave_frac
    first_s = early * run.first_s + (1.0 - early) * run.later_s
    served = paced_loop(of.case, first_s, run.tpot_s, formula.served.n_running)
    return ReplicaForecast(served, run.tpot_s)


def _run_at_rate(of: EvaluatedDeployment, formula: ReplicaForecast) -> ReplicaForecast:
    from gpuplan.studies.inference.open_loop import open_loop_run, run_assumptions  # noqa: PLC0415

    run, case = open_loop_run(of), of.case
    stated = run_assumptions(run, of.setup)
    if run is None:
        return formula._replace(assumptions=stated)
    start_s = float(serve_start_s(of.work, of.step, of.regime, case, run.tpot_mean_s))
    first_s = start_s + run.wait_mean_s
    e2e_s = first_s + case.output_tokens * run.tpot_mean_s
    # What queues does not run: Little's law counts it, the engine's limits do not.
    n_running = min(run.n_running, of.most_running)
    rate = formula.served.output_tokens_per_s
    served = Served(rate, first_s, run.tpot_mean_s, e2e_s, n_running)
    return ReplicaForecast(served, run.tpot_p50_s, stated)


def tpot_mean_s(setup: ServingSetup, served: Served) -> float:
    """Mean time per token; where a regime's own figure is the median, prompts are added."""
    if setup.load.regime == "fixed_max_batch":
        return float(served.n_running / served.output_tokens_per_s)
    return float(served.tpot_s)


class Ranged:
    """Attaches ranges: as far from predictions as sites never seen lay."""

    def __init__(self, setup: ServingSetup, known: InferenceCalibration, labels: Labels) -> None:
        self._setup, self._known, self._labels = setup, known, labels
        name, regime = setup.model.name, setup.load.regime
        self._new = novelty_of(known.known, labels, model=name, regime=regime)
        self._here = configuration(labels, name)
        is_here = any(run.configuration == self._here for run in known.own)
        self.novelty = Novelty(HERE) if is_here else self._new

    @property
    def regime(self) -> str:
        """The regime that its ranges are learned in."""
        return range_regime(self._labels, self._setup.load)

    def half(self, metric: str) -> float:
        """The half-width of a metric's range in logs."""
        kind, regime, rule = range_kind(self._labels), self.regime, self._known.ranges
        if metric in FOLLOWING.get(regime, ()):
            metric = "tpot_mean_ms"
        half = rule.half(range_keys(metric, regime, kind=kind, novelty=self._new.kind))
        if self.novelty.kind != HERE:
            return half
        runs = own_figures(self._known.own, self._here, metric)
        ratio = own_factor(rule, runs, metric, at=conditions_of(self._setup))
        return max(LEAST_LOG, ratio * half)

    def estimate(self, metric: str, value: float) -> Estimate:
        """The value with the range of its cell and novelty."""
        half, value = self.half(metric), float(value)
        return Estimate(
            value=value,
            low=value * exp(-half),
            high=value * exp(half),
            tier="estimated" if self.novelty.kind in FAR else "fitted",
            sources=self._known.constants.sources,
        )

    def step_time(self) -> Estimate:
        """The time of a step over the predicted one: what TPOT at a known concurrency shows."""
        loop = replace(self._setup, load=replace(self._setup.load, regime=LOOP))
        return Ranged(loop, self._known, self._labels).estimate("tpot_mean_ms", 1.0)

    def tail(self, metric: str, mean: float) -> Estimate:
        """A percentile from the mean, at the ratio that measurements show."""
        # The tail of a queue is not that of a loop, where users never come all at once.
        regime = AT_LIMIT if self.regime == AT_LIMIT else self._setup.load.regime
        middle = self._known.ranges.middle(metric, regime)
        found = self.estimate(metric, float(mean) * exp(middle))
        return replace(found, tier="estimated")


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
