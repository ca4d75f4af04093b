"""What was left out, the most telling first: near misses, then the dear, then the forbidden."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import inf

from gpuplan.domain.plan.answer import Rejected
from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.sizing import NotSized, Sizing
from gpuplan.studies.market.offers import Market, rates_for

# The later a test fails, the nearer the candidate came.
ORDER = (
    "slo", "deadline", "accelerators", "e2e", "tpot", "ttft", "context", "memory", "cost", "price",
    "island", "layout", "precision", "software", "policy",
)  # fmt: skip


def rejected_of(sizing: Sizing, market: Market) -> list[Rejected]:
    """Every candidate that was left out; those that policy forbids by accelerator."""
    found = [
        *_unpriced(sizing, market),
        *(_rejected(sizing, r) for r in nearest_first(sizing.rejected) if r.constraint != "policy"),
        *(_skipped(sizing, s) for s in sizing.skipped),
        *_forbidden(sizing),
    ]
    return sorted(found, key=lambda each: ORDER.index(each.constraint))


def nearest_first(rejected: Iterable[Rejection]) -> list[Rejection]:
    """Those that miss by least first; where no distance is told the order stays."""
    return sorted(rejected, key=lambda r: inf if r.gap_ratio is None else r.gap_ratio)


def _unpriced(sizing: Sizing, market: Market) -> Iterator[Rejected]:
    """Fleets that would do, and that nobody sells at a price that counts."""
    fleets = [fleet.candidate for fleet in sizing.sized]
    runs = [job.candidate for job in sizing.jobs]
    # Runs that were made fleets of stand in both.
    for candidate in dict.fromkeys(fleets + runs):
        if next(rates_for(market.ways, candidate), None) is None:
            refused = [r for r in market.refused if r.node.accelerator == candidate.accelerator]
            why = f": {refused[0].what}" if refused else " among the offers"
            yield Rejected(
                candidate=candidate.name,
                workload=sizing.workload,
                constraint="price",
                reason=f"would do, but there is no price{why}",
                relaxation="give a price under prices.offers",
            )


def _rejected(sizing: Sizing, found: Rejection) -> Rejected:
    return Rejected(
        candidate=found.candidate.name,
        workload=sizing.workload,
        constraint=found.constraint,
        reason=found.reason,
        relaxation=found.relaxation,
    )


def _skipped(sizing: Sizing, found: NotSized) -> Rejected:
    is_unpriced = found.cost_least_usd_per_h is None
    return Rejected(
        candidate=found.candidate.name,
        workload=sizing.workload,
        constraint="price" if is_unpriced else "cost",
        reason=found.why,
        relaxation="give a price under prices.offers" if is_unpriced else "a lower price",
    )


def _forbidden(sizing: Sizing) -> Iterator[Rejected]:
    ruled_out = [r for r in sizing.rejected if r.constraint == "policy"]

    def key(found: Rejection) -> tuple[str, str]:
        return str(found.candidate.accelerator), found.reason

    for (accelerator, reason), group in groupby(sorted(ruled_out, key=key), key=key):
        same = list(group)
        yield Rejected(
            candidate=same[0].candidate.name if len(same) == 1 else f"{accelerator}, any layout",
            workload=sizing.workload,
            constraint="policy",
            reason=reason,
            relaxation=same[0].relaxation,
        )
