"""A plan's bill by cause: every cent once, running costs of owned nodes split by what they are."""

from collections.abc import Mapping, Sequence
from typing import get_args

from gpuplan.cost.statement import purchase_parts, shares_of
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.statement import CostCategory
from gpuplan.domain.plan.selection import BillKind, BillLine
from gpuplan.errors import InputError, one

KINDS: dict[BillKind, CostCategory] = {
    "upfront": "hardware",
    "committed": "reservation",
    "existing": "owned nodes",
    "burst": "rent",
    "spot": "spot",
    "once": "porting",
    "residual": "residual",
    "staff": "staff",
}


OWNED: tuple[BillKind, ...] = ("upfront", "committed", "existing", "burst")


def cents_by_cause(
    lines: Sequence[BillLine], rates: Mapping[str, NodeRate]
) -> dict[CostCategory, int]:
    """The cents of a bill by cause; bills of several scenarios are never added up."""
    scenarios = sorted({line.scenario for line in lines if line.scenario is not None})
    if len(scenarios) > 1:
        what = f"the bill has scenarios {', '.join(map(str, scenarios))}"
        raise one(InputError, "bill", "scenario", what, "give the lines of one of them")
    found: dict[CostCategory, int] = {}
    for line in lines:
        weights = _causes(line, rates.get(line.terms))
        split = shares_of(line.nominal_cents, [weight for _, weight in weights])
        for (category, _), part in zip(weights, split, strict=True):
            found[category] = found.get(category, 0) + part
    return found


def _causes(line: BillLine, rate: NodeRate | None) -> list[tuple[CostCategory, float]]:
    """The causes of owning and running nodes with their weights; any other line has one cause."""
    is_own_hour = rate is not None and rate.purchase == "owned" and line.kind == "committed"
    whole: list[tuple[CostCategory, float]] = [
        ("owned nodes" if is_own_hour else KINDS[line.kind], 1.0)
    ]
    if rate is None or rate.capital is None or line.kind not in OWNED:
        return whole
    if line.kind == "upfront":
        buy = rate.capital.purchase
        return [(c, part) for c, part in purchase_parts(buy).items() if part] if buy else whole
    # The outlay is a line of its own: the hours hold all causes but capital.
    parts: list[tuple[CostCategory, float]] = [
        (next((c for c in get_args(CostCategory) if c == part.name), "other"), part.usd_per_h.mid)
        for part in rate.parts
        if part.usd_per_h.mid > 0 and part.name != "capital"
    ]
    return parts or whole
