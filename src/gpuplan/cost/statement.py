"""The whole-life statement of owned and rented nodes, as lines of cents by month and cause.

What statements are worth: net present value, payback, break-even, and the books by year.
"""

from collections.abc import Iterator, Sequence

from gpuplan.cost.annuity import annuity, discount, present_value
from gpuplan.domain.money.rates import NodePurchase, NodeRate
from gpuplan.domain.money.statement import CAPITAL, CostCategory, CostLine, OwnNode, Statement
from gpuplan.domain.money.worth import BookYear, BreakEven, Payback
from gpuplan.domain.ranges import Range, exactly
from gpuplan.errors import InputError, one
from gpuplan.units import HOURS_PER_MONTH, MONTH, MONTHS_PER_YEAR

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


def npv_usd(statement: Statement) -> float:
    """The net present cost in dollars; cash paid today is not discounted."""
    return present_value(statement.cents_by_month, statement.discount_frac_per_year) / 100.0


def npv_range_usd(statement: Statement) -> Range:
    """The net present cost when every price turns out cheap, as expected, or expensive."""
    rate, lines = statement.discount_frac_per_year, statement.lines
    return Range(
        low=sum(present_value(line.low_cents, rate) for line in lines) / 100.0,
        mid=npv_usd(statement),
        high=sum(present_value(line.high_cents, rate) for line in lines) / 100.0,
    )


def equal_monthly_usd(statement: Statement) -> float:
    """The even monthly payment with the same net present cost."""
    return npv_usd(statement) / annuity(statement.n_months, statement.discount_frac_per_year)


def payback(own: Statement, rent: Statement) -> Payback:
    """The month in which the outlay of `own` is saved back; None where it never is within life."""
    if own.n_months != rent.n_months:
        what = f"{own.n_months} and {rent.n_months} months"
        raise one(InputError, "payback", "n_months", what, "compare over the same time")
    pairs = zip(own.cents_by_month, rent.cents_by_month, strict=True)
    saved = [rented - owned for owned, rented in pairs]
    rate = own.discount_frac_per_year
    worth = [value * discount(month, rate) for month, value in enumerate(saved)]
    return Payback(
        simple_month=_crossing(saved),
        discounted_month=_crossing(worth),
        npv_gain_usd=sum(worth) / 100.0,
    )


def _crossing(flow: Sequence[float]) -> int | None:
    """The first month from which the sum stays at or above zero; the residual counts at the end."""
    total, since = 0.0, None
    for month, value in enumerate(flow):
        total += value
        since = (month if since is None else since) if total >= 0 else None
    return since


def break_even(
    own: Statement, *, rent_usd_per_accelerator_h: float, n_accelerators: int
) -> BreakEven:
    """The utilization above which owning is cheaper than renting by the hour."""
    per_available_h = equal_monthly_usd(own) / (n_accelerators * HOURS_PER_MONTH)
    ratio = per_available_h / rent_usd_per_accelerator_h
    return BreakEven(
        utilization_ratio=ratio,
        own_usd_per_available_h=per_available_h,
        rent_usd_per_used_h=rent_usd_per_accelerator_h,
        is_reachable=ratio <= 1.0,
    )


def book_years(statement: Statement) -> tuple[BookYear, ...]:
    """The books by year: the purchase depreciates evenly over life instead of being paid.

    Cash of purchase and residual is not in the expenses: depreciation stands in its place.
    """
    life, expenses = statement.n_months, [0] * (statement.n_months + 1)
    outlay = residual = 0
    for line in statement.lines:
        if line.category == "residual":
            residual -= line.total_cents
        elif line.category in CAPITAL:
            outlay += line.total_cents
        else:
            expenses = [a + b for a, b in zip(expenses, line.cents, strict=True)]
    rows, written = [], 0
    for year, first in enumerate(range(0, life, MONTHS_PER_YEAR), start=1):
        last = min(first + MONTHS_PER_YEAR, life)
        due = (outlay - residual) * last // life
        rows.append(
            BookYear(
                year=year,
                expense_cents=sum(expenses[first + 1 : last + 1]),
                depreciation_cents=due - written,
                book_value_cents=outlay - due,
            )
        )
        written = due
    return tuple(rows)
