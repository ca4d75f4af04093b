"""Draw of one replica over its load, in: a prepared candidate and its peak; out: LoadPower."""

from gpuplan.domain.plan.sizing import LoadPower
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.inference.deployment import EvaluatedDeployment
from gpuplan.studies.power.serving import idle_w, power_at_rate

LOADS = (0.1, 0.25, 0.5, 0.75)  # of the load at the peak, beside idle and the peak itself


def power_by_load(
    p: EvaluatedDeployment, per_s: float, peak_w: Estimate | None
) -> LoadPower | None:
    """Watts of one replica's accelerators, idle and at shares of so many requests a second."""
    if peak_w is None:
        return None
    n = p.spread.n_accelerators
    found = [(0.0, n * idle_w(p.setup.accelerator))]
    found += [(share, _watts(p, share * per_s, peak_w)) for share in LOADS]
    return rising(peak_w, [*found, (1.0, peak_w.value)])


def _watts(p: EvaluatedDeployment, per_s: float, peak_w: Estimate) -> float:
    """Draw at this rate, with as many in flight as it keeps there."""
    tokens = per_s * p.setup.load.output_tokens
    rate = Estimate(value=tokens, low=tokens, high=tokens, tier=peak_w.tier)
    found = replica_power(p, rate, p.n_running(per_s))
    assert found is not None
    return found.value


def replica_power(p: EvaluatedDeployment, rate: Estimate, n_running: float) -> Estimate | None:
    """Draw of one replica at its output tokens per second; None where no limit is published.

    Assumption: engines that prefill and engines that decode draw, together, what as many engines
    draw that do both.
    """
    n = p.spread.n_roles
    each = power_at_rate(p.setup, rate.scaled(1.0 / n), n_running / n).get("power_w")
    return each and each.scaled(n)


def rising(peak_w: Estimate, points: list[tuple[float, float]]) -> LoadPower:
    """The points with a draw that never falls as the load grows."""
    watts, most = [], 0.0
    for _, each in points:
        most = max(most, each)
        watts.append(most)
    return LoadPower(peak_w, tuple(share for share, _ in points), tuple(watts))
