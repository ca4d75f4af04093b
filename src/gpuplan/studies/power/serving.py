"""Power of serving, in: a deployment and its predicted rate; out: watts and joules per token."""

from dataclasses import replace
from math import exp, log, sqrt

from gpuplan.calibration.inference.eras import version_pair
from gpuplan.calibration.power import busy_frac, power_constants, power_estimate
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.power import Utilization
from gpuplan.domain.inference.performance import InferencePrediction, ServingSetup
from gpuplan.domain.model.layers import Experts
from gpuplan.domain.model.network import Model
from gpuplan.domain.provenance import Estimate
from gpuplan.performance.power import accelerator_power_w, limit_w, loaded_idle_w

# Share of the rate's own error that reaches the draw: the roots of the law halve it, saturation
# takes more.
RATE_ELASTICITY_FRAC = 0.4
# vLLM prepared its batches beside the accelerator only from 0.7 on.
OVERLAPPED_SINCE = (0, 7)
POWER_METRICS = ("power_w", "energy_j_per_output_token")
PICTURE_TASKS = ("image-chat", "video-chat")


def serving_power(
    setup: ServingSetup, prediction: InferencePrediction, *, note: str = ""
) -> dict[str, Estimate]:
    """Draw of all accelerators and energy per output token; empty where no limit is published."""
    rate, n_running = prediction.output_tokens_per_s, prediction.n_running
    if setup.load.regime == "poisson":
        each_per_s = rate.value / max(setup.load.output_tokens, 1.0) / setup.n_replicas
        n_running = min(n_running, each_per_s * prediction.e2e_mean_s.value)
    return power_at_rate(setup, rate, n_running, note=note)


def power_at_rate(
    setup: ServingSetup, rate: Estimate, n_running: float, *, note: str = ""
) -> dict[str, Estimate]:
    """As `serving_power`, for a rate of the whole deployment in output tokens per second."""
    # A prefill alone makes no output tokens: there is no rate to draw power at.
    if setup.accelerator.power.limit_w is None or rate.value <= 0:
        return {}
    work = serving_work(setup, note)
    watts = one_accelerator_w(setup, rate.value, n_running, work=work)
    each = power_estimate(watts, setup.accelerator, work)
    power = each.scaled(setup.layout.n_accelerators * setup.n_replicas)
    energy = power.scaled(1.0 / rate.value)
    # Energy is power over rate: a rate too high hides in both, against each other.
    return {
        "power_w": _with_rate(power, rate, RATE_ELASTICITY_FRAC),
        "energy_j_per_output_token": _with_rate(energy, rate, 1.0 - RATE_ELASTICITY_FRAC),
    }


def one_accelerator_w(
    setup: ServingSetup, output_tokens_per_s: float, n_running: float, *, work: str
) -> float:
    """Average draw of one accelerator at this rate of the whole deployment.

    Arrivals leave a replica empty at times, then it draws what it draws idle; the law holds while
    it works, for the batch that it then has.
    """
    is_open = setup.load.regime == "poisson"
    working = 1.0 - exp(-n_running) if is_open else 1.0
    rate, batch = output_tokens_per_s / setup.n_replicas / working, max(1.0, n_running / working)
    use = serving_utilization(setup, rate, batch)
    busy = busy_frac(
        work,
        step_s=batch / rate,
        n_accelerators=setup.layout.n_accelerators,
        asked_frac=use.asked_frac,
    )
    constants = power_constants(setup.accelerator, work)
    at_work = accelerator_power_w(setup.accelerator, replace(use, busy_frac=busy), constants)
    idle = idle_w(setup.accelerator)
    return idle + working * (at_work - idle)


def idle_w(accelerator: Accelerator) -> float:
    """Draw of one accelerator with a model in memory and nothing to do."""
    return loaded_idle_w(accelerator.power, limit_w(accelerator))


def serving_utilization(
    setup: ServingSetup, output_tokens_per_s: float, n_running: float
) -> Utilization:
    """Shares of one replica's accelerators that this rate takes."""
    model, load, card = setup.model, setup.load, setup.accelerator
    n = setup.layout.n_accelerators
    width = (setup.storage.quantized or setup.storage.base).stored_bytes
    steps_per_s = output_tokens_per_s / n_running
    prompt, answer = load.input_tokens, max(load.output_tokens, 1.0)
    cache_bytes = model.kv_bytes_per_token() * n_running * (prompt + answer / 2)
    active = min(model.n_params - model.n_embedding_params, model.n_active_params)
    flop_per_s = 2 * active * output_tokens_per_s * (1 + prompt / answer)
    peaks = card.peak_flop_per_s
    sixteen = peaks.get("bf16", peaks.get("fp16", max(peaks.values())))
    traffic = n * card.memory.bytes_per_s
    return Utilization(
        compute_frac=flop_per_s / n / sixteen,
        weight_memory_frac=steps_per_s * touched_params(model, n_running) * width / traffic,
        other_memory_frac=steps_per_s * cache_bytes / traffic,
        weight_bytes_per_param=width,
    )


def touched_params(model: Model, n_running: float) -> float:
    """Weights that one step of this batch reads: of experts, those that some token chose."""
    resident = model.n_params - model.n_embedding_params
    experts = [g.feed_forward for g in model.main.groups if isinstance(g.feed_forward, Experts)]
    if not experts:
        return float(resident)
    idle_frac = 1 - experts[0].n_active / experts[0].n_experts
    routed = (resident - min(resident, model.n_active_params)) / idle_frac
    return float(resident - routed * idle_frac**n_running)


def serving_work(setup: ServingSetup, note: str = "") -> str:
    """The kind of work whose constants hold: pictures and old engines leave the board waiting."""
    for kind in PICTURE_TASKS:
        if kind in note:
            return kind
    version = version_pair(setup.engine.name, setup.engine.version)
    is_old = setup.engine.name == "vllm" and version is not None and version < OVERLAPPED_SINCE
    # The studies of static batches drove old engines through their offline door.
    return "host-bound" if is_old and setup.load.regime != "static_batch" else "text"


def _with_rate(estimate: Estimate, rate: Estimate, share_frac: float) -> Estimate:
    """The range with the rate's own error added in quadrature."""

    def out(own: float, other: float) -> float:
        return sqrt(log(own) ** 2 + (share_frac * log(other)) ** 2)

    low = out(estimate.low / estimate.value, rate.low / rate.value)
    high = out(max(estimate.high / estimate.value, 1.0), rate.high / rate.value)
    return replace(estimate, low=estimate.value * exp(-low), high=estimate.value * exp(high))
