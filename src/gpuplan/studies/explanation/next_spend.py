"""What the next 10,000 USD a month buy best: more of the same, a commitment, code, storage.

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
from gpuplan.studies.planning.curves import cost_usd_per_month

SUM_USD = 10_000.0
MOST_STEPS = 256
CODE_RATIO = 1.1  # the same work with a tenth more done by every replica


class Way(NamedTuple):
    """One use of money: more load for so much a month."""

    more_frac: float  # of today's peak
    usd_per_month: float
    text: str

    @property
    def usd_per_percent(self) -> float:
        """Of one per cent more load."""
        return self.usd_per_month / (100.0 * self.more_frac)


def next_spend(
    sized: Sized, curves: Sequence[FleetCurve], demand: DemandProfile,
    *, others: Sequence[Alternative] = (),
) -> Iterator[str]:  # fmt: skip
    """Ways in rising order of what a per cent costs, then what is worth knowing besides."""
    curve = curves[0]
    ways = [way for way in (more_of_the_same(curve, demand), faster_code(curve, demand)) if way]
    for way in sorted(ways, key=lambda way: way.usd_per_percent):
        yield way.text
    if not ways:
        yield "$10,000 a month more do not pay for the next replica"
    yield from _committed(others, demand)
    yield from _precisions(curves, demand)
    if sized.n_slow_end is not None and sized.n_slow_end > sized.n_serving:
        more = sized.n_slow_end - sized.n_serving
        yield (
            f"{more} more replica{'s' if more > 1 else ''} would keep the promises even if the "
            "model is as slow as the slow end of its range; measuring one replica costs less"
        )


def more_of_the_same(curve: FleetCurve, demand: DemandProfile) -> Way | None:
    """As many replicas more as the sum pays for."""
    peak = demand.peak_of(0, 0)
    if peak <= 0:
        return None
    base = cost_usd_per_month(curve, demand)
    first = int(curve.n_replicas(floats([peak]))[0]) - curve.n_spare
    best: Way | None = None
    for n in range(max(1, first), first + MOST_STEPS):
        ratio = n * curve.n_load_per_replica / peak * (1 - 1e-12)
        if ratio <= 1 + 1e-9:
            continue
        extra = cost_usd_per_month(curve, demand, factor=ratio) - base
        if extra > SUM_USD:
            break
        more = f"{n - first} more replica{'s' if n - first != 1 else ''}"
        what = more if n > first else "what is paid for already"
        text = (
            f"{what} of {curve.candidate.accelerator} (${extra:,.0f} a month) carry "
            f"{ratio - 1:.0%} more load"
        )
        best = Way(ratio - 1, extra, text)
    return best and best._replace(text=f"{best.text}: ${best.usd_per_percent:,.0f} per 1 %")


def faster_code(curve: FleetCurve, demand: DemandProfile) -> Way | None:
    """A tenth more from every replica: worth what the same load costs in replicas, or saves."""
    base = cost_usd_per_month(curve, demand)
    more = cost_usd_per_month(curve, demand, factor=CODE_RATIO) - base
    faster = replace(curve, n_load_per_replica=CODE_RATIO * curve.n_load_per_replica)
    saved = base - cost_usd_per_month(faster, demand)
    worth = max(more, saved)
    if worth <= 0:
        return None
    text = (
        f"code that does {CODE_RATIO - 1:.0%} more on the same replicas is worth ${worth:,.0f} a "
        f"month (${more:,.0f} of replicas not bought, or ${saved:,.0f} given back): "
        f"${worth / (100 * (CODE_RATIO - 1)):,.0f} per 1 % at most"
    )
    return Way(CODE_RATIO - 1, worth, text)


def _committed(others: Sequence[Alternative], demand: DemandProfile) -> Iterator[str]:
    for other in others:
        if other.kind == "commit" and other.remark.startswith(f"{demand.workload}:"):
            yield (
                f"a commitment costs nothing more and frees ${-other.extra_usd_per_month:,.0f} a "
                f"month: {other.remark.split(': ', 1)[1]}"
            )


def _precisions(curves: Sequence[FleetCurve], demand: DemandProfile) -> Iterator[str]:
    """Other precisions that the user allows, on the chosen accelerator."""
    chosen = curves[0]
    now = cost_usd_per_month(chosen, demand)
    told = {chosen.candidate.precision}
    for curve in curves[1:]:
        precision = curve.candidate.precision
        if curve.kind == chosen.kind and precision not in told:
            told.add(precision)
            extra = cost_usd_per_month(curve, demand) - now
            yield f"{precision} instead of {chosen.candidate.precision}: ${extra:+,.0f} a month"
