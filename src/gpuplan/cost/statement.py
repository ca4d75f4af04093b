"""The whole-life statement of owned and rented nodes, as lines of cents by month and cause."""

from collections.abc import Iterator, Sequence

from gpuplan.domain.money.rates import NodePurchase, NodeRate
from gpuplan.domain.money.statement import CostCategory, CostLine, OwnNode, Statement
from gpuplan.domain.ranges import Range, exactly
from gpuplan.units import MONTH, MONTHS_PER_YEAR

RENT_CATEGORIES: dict[str, CostCategory] = {
    "on_demand": "rent",
    "spot": "spot",
    "reserved": "reservation",
    "capacity_block": "reservation",
    "owned": "owned nodes",
}


def life_statement(
    name: str,
    own: OwnNode,
    n_owned: int,
    *,
    rent: NodeRate,
    rented_node_h: float,
    discount_frac_per_year: float,
) -> Statement:
    """The cost of owning nodes and renting further ones, over the life of an owned node.

    `rented_node_h` are node-hours rented each month. The purchase stands once, as cash today.
    """
    n_months = own.life_months
    lines = [*_purchase_lines(own, n_owned), *_running_lines(own, n_owned)] if n_owned else []
    category, usd = RENT_CATEGORIES[rent.purchase], rent.price_usd_per_h.times(rented_node_h)
    every_month = range(1, n_months + 1)
    lines.append(_line(category, rent.node.name, usd, every_month, n_months, evidence_text(rent)))
    return Statement(
        name=name,
        n_months=n_months,
        lines=tuple(line for line in lines if any(line.cents) or any(line.high_cents)),
        discount_frac_per_year=discount_frac_per_year,
    )


def cents(usd: float) -> int:
    """The nearest cent; halves go to the even one, so that many of them do not drift."""
    return round(usd * 100.0)


def shares_of(total_cents: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Cents split by weight that add up exactly: what rounding leaves goes to the largest."""
    whole = sum(weights)
    exact = [total_cents * weight / whole for weight in weights]
    floors = [int(value // 1) for value in exact]
    left = total_cents - sum(floors)
    by_rest = sorted(range(len(weights)), key=lambda i: (floors[i] - exact[i], i))
    for index in by_rest[:left]:
        floors[index] += 1
    return tuple(floors)


def evidence_text(rate: NodeRate) -> str:
    """The source of a price and the day that it is of."""
    day = rate.evidence.price_date
    return f"{rate.evidence.source}, {day}" if day else rate.evidence.source


def _line(
    category: CostCategory, name: str, usd: Range, months: range, n_months: int, source: str
) -> CostLine:
    """The same sum in each of these months, and nothing in the others."""

    def flow(value: float) -> tuple[int, ...]:
        return tuple(cents(value) if month in months else 0 for month in range(n_months + 1))

    return CostLine(
        category=category,
        name=name,
        cents=flow(usd.mid),
        low_cents=flow(usd.low),
        high_cents=flow(usd.high),
        source=source,
    )


def _purchase_lines(own: OwnNode, n_nodes: int) -> Iterator[CostLine]:
    """Hardware and what comes with it today, and the residual value at the end of its life."""
    hardware, end = own.purchase.hardware_usd.times(n_nodes), own.life_months
    name, source, share = own.node.name, own.evidence.source, own.residual_frac
    for category, part in purchase_parts(own.purchase).items():
        yield _line(category, name, hardware.times(part), range(1), end, source)
    # Money back is negative; the cheap case is cheap hardware that keeps its worth.
    back = Range(
        low=-hardware.low * share.high,
        mid=-hardware.mid * share.mid,
        high=-hardware.high * share.low,
    )
    yield _line("residual", name, back, range(end, end + 1), end, source)


def purchase_parts(buy: NodePurchase) -> dict[CostCategory, float]:
    """The outlay for a node by cause, as shares of its hardware price."""
    goods = 1 + buy.gear_frac + buy.spares_frac + buy.freight_frac
    return {
        "hardware": 1.0,
        "network": buy.gear_frac,
        "spares": buy.spares_frac,
        "freight": buy.freight_frac,
        "tax": goods * buy.tax_frac,
        "installation": buy.install_frac,
    }


def _running_lines(own: OwnNode, n_nodes: int) -> Iterator[CostLine]:
    months = range(1, own.life_months + 1)
    for category, usd in _running_parts(own, n_nodes).items():
        name, source = own.node.name, own.evidence.source
        yield _line(category, name, usd, months, own.life_months, source)


def _running_parts(own: OwnNode, n: int) -> dict[CostCategory, Range]:
    """Monthly sums: PUE applies to energy and billed demand; space is let by server power."""
    run, energy_j = own.running, own.running.average_w * n * MONTH
    peak_w = run.highest_w * n
    licences_usd = run.licence_usd_per_accelerator_year * own.node.n_accelerators * n
    monthly_support = run.support_frac_per_year * n / MONTHS_PER_YEAR
    return {
        "energy": run.electricity_usd_per_j.times(energy_j),
        "cooling": run.electricity_usd_per_j.times(energy_j * (run.pue_ratio - 1)),
        "demand charge": exactly(peak_w * run.pue_ratio * run.demand_usd_per_w_month),
        "space": exactly(peak_w * run.colocation_usd_per_w_month),
        "support": own.purchase.hardware_usd.times(monthly_support),
        "licences": exactly(licences_usd / MONTHS_PER_YEAR),
        "staff": exactly(own.staff_usd_per_year / MONTHS_PER_YEAR),
    }
