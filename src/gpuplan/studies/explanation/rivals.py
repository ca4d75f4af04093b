"""The priciest, the cheapest by the hour, the biggest: what became of each, and why."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.plan.answer import WhyNot
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.studies.explanation.rejected import ORDER
from gpuplan.studies.market.offers import Market
from gpuplan.units import GIB, HOURS_PER_MONTH


class Priced(NamedTuple):
    """A fleet that does the work."""

    fleet: str
    usd_per_month: float


class Rival(NamedTuple):
    """An accelerator that can be paid for and is not forbidden."""

    kind: str
    usd_per_h: float  # of one accelerator, at its cheapest
    memory_bytes: float
    fleet: str
    usd_per_month: float | None  # None: it cannot do the work
    why: str


def rival_answers(
    sizing: Sizing, market: Market, catalog: Catalog, *, fleets: Mapping[str, Priced], chosen: str
) -> Iterator[WhyNot]:
    """Answers to the three questions that everyone asks; none where there is no rival."""
    found = [*_rivals(sizing, market, catalog, fleets)]
    if len(found) < 2:
        return
    asked = (
        ("the priciest accelerator", max(found, key=lambda r: (r.usd_per_h, r.kind))),
        ("the cheapest by the hour", min(found, key=lambda r: (r.usd_per_h, r.kind))),
        ("the biggest by memory", max(found, key=lambda r: (r.memory_bytes, r.kind))),
    )
    now = fleets[chosen].usd_per_month
    for question, rival in asked:
        is_chosen = rival.kind == chosen
        extra = None if is_chosen or rival.usd_per_month is None else rival.usd_per_month - now
        yield WhyNot(
            question=f"{question}, for {sizing.workload}",
            fleet=rival.fleet,
            answer="it is the one chosen" if is_chosen else rival.why,
            extra_usd_per_month=extra,
        )


def _rivals(
    sizing: Sizing, market: Market, catalog: Catalog, fleets: Mapping[str, Priced]
) -> Iterator[Rival]:
    prices: dict[str, float] = {}
    for rate in market.rates:
        each = rate.price_usd_per_h.mid / max(1, rate.node.n_accelerators)
        kind = rate.node.accelerator
        prices[kind] = min(each, prices.get(kind, each))
    for kind, usd_per_h in prices.items():
        card = catalog.accelerators.get(AcceleratorId(kind))
        state = _state(sizing, kind, fleets.get(kind), usd_per_h)
        if card is not None and state is not None:
            # A processor's memory is the host's: it is no big accelerator.
            memory = 0.0 if card.is_cpu else card.memory.marketed_bytes
            size = "" if card.is_cpu else f"{memory / GIB:.0f} GiB; "
            yield state._replace(memory_bytes=memory, why=f"{size}{state.why}")


def _state(sizing: Sizing, kind: str, priced: Priced | None, usd_per_h: float) -> Rival | None:
    """Sized, bounded or rejected; None where policy forbids it or it was never proposed."""
    each = f"${usd_per_h:,.2f} an hour each"
    if priced is not None:
        why = f"{each}; {priced.fleet} would do the same work"
        return Rival(kind, usd_per_h, 0.0, priced.fleet, priced.usd_per_month, why)
    bounds = [
        (skipped.cost_least_usd_per_h, skipped)
        for skipped in sizing.skipped
        if skipped.candidate.accelerator == kind and skipped.cost_least_usd_per_h is not None
    ]
    if bounds:
        least, skipped = min(bounds, key=lambda pair: pair[0])
        n = skipped.candidate.n_accelerators_for(skipped.n_replicas_least)
        why = (
            f"{each}; {n} or more would be needed, and paid in whole nodes: the sum is a least one"
        )
        fleet = f"{n}+ x {kind}"
        return Rival(kind, usd_per_h, 0.0, fleet, least * HOURS_PER_MONTH, why)
    return _rejected(sizing, kind, usd_per_h)


def _rejected(sizing: Sizing, kind: str, usd_per_h: float) -> Rival | None:
    mine = [r for r in sizing.rejected if r.candidate.accelerator == kind]
    if not mine or any(r.constraint == "policy" for r in mine):
        return None
    nearest = min(mine, key=lambda r: ORDER.index(r.constraint))
    why = f"${usd_per_h:,.2f} an hour each, but it cannot: {nearest.reason}"
    return Rival(kind, usd_per_h, 0.0, nearest.candidate.name, None, why)
