"""A plan's bill as a statement, in: bill lines, rates; out: the same cents by month and cause."""

from collections.abc import Mapping, Sequence

from gpuplan.cost.statement import evidence_text, shares_of
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.statement import CostCategory, CostLine, Statement
from gpuplan.domain.plan.selection import BillKind, BillLine
from gpuplan.errors import InputError, one

KINDS: dict[BillKind, CostCategory] = {
    "upfront": "hardware",
    "committed": "reservation",
    "existing": "other",
    "burst": "rent",
    "spot": "spot",
    "once": "porting",
    "residual": "residual",
}
PARTS: dict[str, CostCategory] = {
    "energy": "energy",
    "demand charge": "demand charge",
    "space": "space",
    "licences": "licences",
    "staff": "staff",
    "support": "support",
}


def statement_of_bill(
    lines: Sequence[BillLine],
    *,
    rates: Mapping[str, NodeRate],
    months_per_period: int,
    n_periods: int,
    discount_frac_per_year: float,
    scenario: int | None = None,
) -> Statement:
    """Every cent of the bill once: running costs by cause, spread evenly over their period.

    With several scenarios one must be named. Ranges are those of the rates.
    """
    wanted = _of_scenario(lines, scenario)
    n_months = months_per_period * n_periods
    found = [
        part
        for line in wanted
        for part in _lines(line, rates.get(line.terms), months_per_period, n_months)
    ]
    return Statement(
        name="plan",
        n_months=n_months,
        lines=_joined(found),
        discount_frac_per_year=discount_frac_per_year,
    )


def _of_scenario(lines: Sequence[BillLine], scenario: int | None) -> list[BillLine]:
    known = {line.scenario for line in lines} - {None}
    if scenario is None and len(known) > 1:
        names = ", ".join(str(name) for name in sorted(k for k in known if k is not None))
        raise one(InputError, "statement", "scenario", f"the bill has {names}", "name one of them")
    return [line for line in lines if scenario is None or line.scenario in (None, scenario)]


def _lines(
    line: BillLine, rate: NodeRate | None, months_per_period: int, n_months: int
) -> list[CostLine]:
    months = _months(line, months_per_period, n_months)
    shares = _shares(line, rate)
    split = shares_of(line.nominal_cents, [weight for _, weight in shares])
    source = "" if rate is None else evidence_text(rate)
    name = line.terms if rate is None else rate.node.name
    found = []
    for (category, _), total in zip(shares, split, strict=True):
        flow = [0] * (n_months + 1)
        for month, part in zip(months, shares_of(total, [1.0] * len(months)), strict=True):
            flow[month] += part
        cents = tuple(flow)
        low, high = _spread(line, rate)
        found.append(
            CostLine(
                category=category,
                name=name,
                cents=cents,
                low_cents=tuple(round(value * low) for value in cents),
                high_cents=tuple(round(value * high) for value in cents),
                source=source,
            )
        )
    return found


def _months(line: BillLine, months_per_period: int, n_months: int) -> list[int]:
    """Outlays when their period begins, worth left at the end, everything else month by month."""
    first = line.period * months_per_period
    if line.kind in ("upfront", "once"):
        return [first]
    if line.kind == "residual":
        return [n_months]
    return list(range(first + 1, first + months_per_period + 1))


def _shares(line: BillLine, rate: NodeRate | None) -> list[tuple[CostCategory, float]]:
    """Running costs of owned nodes by cause; everything else is one cause."""
    is_running = line.kind in ("committed", "existing")
    if rate is None or rate.purchase != "owned" or not is_running:
        return [(KINDS[line.kind], 1.0)]
    # The outlay is a line of its own: the hours hold all causes but capital.
    parts = [(PARTS.get(p.name, "other"), p.usd_per_h.mid) for p in rate.parts]
    if rate.capital is not None:
        parts = [part for part, cause in zip(parts, rate.parts, strict=True)
                 if cause.name != "capital"]  # fmt: skip
    used = [(category, weight) for category, weight in parts if weight > 0]
    return used or [(KINDS[line.kind], 1.0)]


def _spread(line: BillLine, rate: NodeRate | None) -> tuple[float, float]:
    """Low and high over the middle price."""
    if rate is None or line.kind in ("residual", "once"):
        return 1.0, 1.0
    price = rate.price_usd_per_h
    if line.kind == "upfront" and rate.capital is not None:
        price = rate.capital.outlay_usd
    return price.low / price.mid, price.high / price.mid


def _joined(lines: Sequence[CostLine]) -> tuple[CostLine, ...]:
    """Lines of the same cause, name and source as one."""
    groups: dict[tuple[CostCategory, str, str], list[CostLine]] = {}
    for line in lines:
        groups.setdefault((line.category, line.name, line.source), []).append(line)
    return tuple(
        CostLine(
            category=category,
            name=name,
            cents=tuple(map(sum, zip(*(line.cents for line in group), strict=True))),
            low_cents=tuple(map(sum, zip(*(line.low_cents for line in group), strict=True))),
            high_cents=tuple(map(sum, zip(*(line.high_cents for line in group), strict=True))),
            source=source,
        )
        for (category, name, source), group in groups.items()
    )
