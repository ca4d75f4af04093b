"""What the next 10,000 USD a month buy best: more replicas, a commitment, faster code.

Only what the models can price is compared: each way by what one per cent more load costs. Faster
networks between replicas of a service gain nothing that is modelled, so they are not offered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpuplan.domain.columns import floats
from gpuplan.domain.plan.answer import Alternative
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile, Sized
from gpuplan.studies.explanation.alternatives import RESERVED
from gpuplan.studies.planning.curves import cost_usd_per_month

SUM_USD = 10_000.0
MOST_STEPS = 256
CODE_RATIO = 1.1  # the same work with a tenth more done by every replica


class SpendOption(NamedTuple):
    """One use of money: more load for so much a month."""

    more_frac: float  # of today's peak
    usd_per_month: float
    text: str

    @property
    def usd_per_percent(self) -> float:
        """USD a month of one per cent more load."""
        return self.usd_per_month / (100.0 * self.more_frac)


def next_spend(
    sized: Sized,
    curves: Sequence[FleetCurve],
    demand: DemandProfile,
    *,
    others: Sequence[Alternative] = (),
) -> Iterator[str]:
    """Uses of money in rising order of what a per cent costs, then what is worth knowing."""
    tried = (more_replicas(curves[0], demand), faster_code(curves[0], demand))
    options = [option for option in tried if option is not None]
    for option in sorted(options, key=lambda option: option.usd_per_percent):
        yield option.text
    if not options:
        yield f"${SUM_USD:,.0f}/month more does not pay for the next replica"
    yield from _committed(others, demand)
    yield from _precisions(curves, demand)


def _replicas(n: int) -> str:
    return f"{n} more replica{'s' if n != 1 else ''}"


def more_replicas(curve: FleetCurve, demand: DemandProfile) -> SpendOption | None:
    """As many replicas more as the sum pays for."""
    peak = demand.peak_of(0, 0)
    if peak <= 0:
        return None
    base = cost_usd_per_month(curve, demand)
    first = int(curve.n_replicas(floats([peak]))[0]) - curve.n_spare
    best: SpendOption | None = None
    for n in range(max(1, first), first + MOST_STEPS):
        ratio = n * curve.n_load_per_replica / peak * (1 - 1e-12)
        if ratio <= 1 + 1e-9:
            continue
        extra = cost_usd_per_month(curve, demand, factor=ratio) - base
        if extra > SUM_USD:
            break
        what = _replicas(n - first) if n > first else "the capacity already paid for"
        text = (
            f"{what} of {curve.candidate.accelerator} (${extra:,.0f}/month) carry "
            f"{ratio - 1:.0%} more load"
        )
        best = SpendOption(ratio - 1, extra, text)
    return best and best._replace(text=f"{best.text}: ${best.usd_per_percent:,.0f} per 1 %")


def faster_code(curve: FleetCurve, demand: DemandProfile) -> SpendOption | None:
    """A tenth more from every replica: worth what the same load costs in replicas, or saves."""
    base = cost_usd_per_month(curve, demand)
    more = cost_usd_per_month(curve, demand, factor=CODE_RATIO) - base
    faster = replace(curve, n_load_per_replica=CODE_RATIO * curve.n_load_per_replica)
    saved = base - cost_usd_per_month(faster, demand)
    worth = max(more, saved)
    if worth <= 0:
        return None
    text = (
        f"code with {CODE_RATIO - 1:.0%} more throughput per replica is worth ${worth:,.0f}/month "
        f"(${more:,.0f} of replicas not bought, or ${saved:,.0f} released): at most "
        f"${worth / (100 * (CODE_RATIO - 1)):,.0f} per 1 %"
    )
    return SpendOption(CODE_RATIO - 1, worth, text)


def _committed(others: Sequence[Alternative], demand: DemandProfile) -> Iterator[str]:
    for other in others:
        if other.kind == RESERVED and other.remark.startswith(f"{demand.workload}:"):
            yield (
                f"a committed-use discount needs no more nodes and frees "
                f"${-other.extra_usd_per_month:,.0f}/month: {other.remark.split(': ', 1)[1]}"
            )


def _precisions(curves: Sequence[FleetCurve], demand: DemandProfile) -> Iterator[str]:
    """Other precisions that the user allows, on the chosen accelerator."""
    chosen = curves[0]
    now = cost_usd_per_month(chosen, demand)
    shown = {chosen.candidate.precision}
    for curve in curves[1:]:
        precision = curve.candidate.precision
        if curve.kind == chosen.kind and precision not in shown:
            shown.add(precision)
            extra = cost_usd_per_month(curve, demand) - now
            yield f"{precision} instead of {chosen.candidate.precision}: ${extra:+,.0f}/month"
