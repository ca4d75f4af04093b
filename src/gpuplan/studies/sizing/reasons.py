"""What runs of a fleet say, in words: what fewer would violate, why no fleet will do."""

from gpuplan.domain.plan.candidate import Rejection
from gpuplan.studies.sizing.simulator import FleetSimulator, SimulatedRun

USUAL_BAND = (0.70, 0.90)
N_IDLE, IDLE_FRAC = 16, 0.05  # replicas that have nearly nothing to do, and how much that is


def band_text(safe_frac: float, n: int) -> str:
    """The utilization up to which the SLOs are met, beside the usual one."""
    low, high = USUAL_BAND
    what = f"{n} replica{'s' if n > 1 else ''}"
    if safe_frac < low:
        return (
            f"the usual {low:.0%} to {high:.0%} are too much for {what}: above {safe_frac:.0%} "
            "the SLOs are violated"
        )
    if safe_frac > high:
        return f"{what} may run up to {safe_frac:.0%}, above the usual {low:.0%} to {high:.0%}"
    return f"safe up to {safe_frac:.0%} with {what}, within the usual {low:.0%} to {high:.0%}"


def violations_text(run: SimulatedRun) -> str:
    """The SLOs that a run violates, and its mean time per token."""
    broken = [
        f"{limit.metric} {limit.statistic} would be {_beyond(each.bound_s, limit.limit_s)}"
        for limit, each in run.latencies
        if each.bound_s > limit.limit_s
    ]
    if run.n_refused:
        return f"{run.n_refused} requests exceed the whole KV cache of a replica"
    if not broken:
        return "requests arrive faster than they are served"
    return f"{', '.join(broken)} (a token every {_time(run.tpot_mean_s)} on average)"


def _beyond(reached_s: float, limit_s: float) -> str:
    """Both with as many digits as tell them apart."""
    pairs = ((_time(reached_s, n), _time(limit_s, n)) for n in range(4))
    reached, limit = next((pair for pair in pairs if pair[0] != pair[1]), ("more", _time(limit_s)))
    return f"{reached}, not {limit}"


def _time(seconds: float, n_digits: int = 0) -> str:
    return f"{seconds * 1e3:.{n_digits}f} ms" if seconds < 10 else f"{seconds:.{n_digits}f} s"


def no_fleet(simulator: FleetSimulator) -> Rejection:
    """Why no number of replicas meets the SLOs."""
    idle = simulator.run(simulator.capacity_per_s() * IDLE_FRAC * N_IDLE, N_IDLE)
    reason = f"no number of replicas meets the SLOs: even nearly idle, {violations_text(idle)}"
    if idle.meets_slo:
        reason = (
            "an SLO lies so near to the latency of an idle replica that no reasonable number of "
            "replicas is sure to meet it"
        )
    return Rejection(
        candidate=simulator.candidate,
        constraint="slo",
        reason=reason,
        relaxation="loosen that SLO, shorten the prompts or use smaller prefill chunks",
    )
