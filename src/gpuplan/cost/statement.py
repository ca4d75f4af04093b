"""The whole-life statement, in: what a plan buys, runs and rents; out: lines of cents by month."""

from collections.abc import Callable, Iterator, Sequence

from gpuplan.cost.annuity import annuity, monthly_frac
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.statement import (
    CostCategory,
    CostLine,
    Loan,
    Once,
    PurchasePlan,
    Recurring,
    RentPlan,
    RunningPlan,
    Statement,
    WholeLife,
)
from gpuplan.domain.ranges import Range, exactly
from gpuplan.errors import InputError, Problem
from gpuplan.units import HOURS_PER_MONTH, MONTH, MONTHS_PER_YEAR

RENT_CATEGORIES: dict[str, CostCategory] = {
    "on_demand": "rent",
    "spot": "spot",
    "reserved": "reservation",
    "capacity_block": "reservation",
    "owned": "other",
}


def statement(life: WholeLife) -> Statement:
    """Every cause as a line of cents; purchase stands once, as cash."""
    _check(life)
    n = life.n_months
    lines: list[CostLine] = []
    for purchase in life.purchases:
        lines += _purchase_lines(purchase, n)
    for loan in life.loans:
        lines += _loan_lines(loan, n)
    for plan in life.running:
        lines += _running_lines(plan, n)
    lines += [_rent_line(rent, n) for rent in life.rents]
    lines += [_recurring_line(item, n) for item in life.recurring]
    lines += [_once_line(item, n) for item in life.once]
    return Statement(
        name=life.name,
        n_months=n,
        lines=tuple(line for line in lines if any(line.cents) or any(line.high_cents)),
        discount_frac_per_year=life.discount_frac_per_year,
        assumptions=life.assumptions,
    )


def cents(usd: float) -> int:
    """The nearest cent; the halves go to the even one, so that many of them do not drift."""
    return round(usd * 100.0)


def shares_of(total_cents: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Cents shared out by weight, adding up exactly: what rounding leaves goes to the largest."""
    whole = sum(weights)
    exact = [total_cents * weight / whole for weight in weights]
    floors = [int(value // 1) for value in exact]
    left = total_cents - sum(floors)
    by_rest = sorted(range(len(weights)), key=lambda i: (floors[i] - exact[i], i))
    for index in by_rest[:left]:
        floors[index] += 1
    return tuple(floors)


def _line(
    category: CostCategory, name: str, n_months: int, *, usd: Callable[[int], Range], source: str
) -> CostLine:
    """A line from the sum of each month."""
    months = [usd(month) for month in range(n_months + 1)]
    return CostLine(
        category=category,
        name=name,
        cents=tuple(cents(value.mid) for value in months),
        low_cents=tuple(cents(value.low) for value in months),
        high_cents=tuple(cents(value.high) for value in months),
        source=source,
    )


def _once(
    category: CostCategory, name: str, n_months: int, *, month: int, usd: Range, source: str
) -> CostLine:
    nothing = exactly(0.0)
    return _line(
        category, name, n_months, usd=lambda m: usd if m == month else nothing, source=source
    )


def _purchase_lines(plan: PurchasePlan, n_months: int) -> Iterator[CostLine]:
    """Hardware, what comes with it, and what is got back when its life or the statement ends."""
    buy, hardware = plan.purchase, plan.purchase.hardware_usd.times(plan.n_nodes)
    goods = 1 + buy.gear_frac + buy.spares_frac + buy.freight_frac
    parts: tuple[tuple[CostCategory, float], ...] = (
        ("hardware", 1.0),
        ("network", buy.gear_frac),
        ("spares", buy.spares_frac),
        ("freight", buy.freight_frac),
        ("tax", goods * buy.tax_frac),
        ("installation", buy.install_frac),
    )
    for category, share in parts:
        usd = hardware.times(share)
        yield _once(category, plan.name, n_months, month=plan.month, usd=usd, source=plan.source)
    sold = n_months if plan.life_months is None else plan.month + plan.life_months
    if sold <= n_months:
        frac = plan.residual_frac
        # Money back is negative; the cheap case is cheap hardware that keeps its worth.
        back = Range(
            low=-hardware.low * frac.high,
            mid=-hardware.mid * frac.mid,
            high=-hardware.high * frac.low,
        )
        yield _once("residual", plan.name, n_months, month=sold, usd=back, source=plan.source)


def _loan_lines(loan: Loan, n_months: int) -> Iterator[CostLine]:
    """Money in, then equal payments; the last one settles the cents, and what is owed at the end.

    The purchase itself stays a line of its own: a loan moves cash, it buys nothing twice.
    """
    payment = cents(loan.principal_usd / annuity(loan.n_months, loan.interest_frac_per_year))
    interest = monthly_frac(loan.interest_frac_per_year)
    owed = cents(loan.principal_usd)
    flow = [0] * (n_months + 1)
    flow[loan.month] = -owed
    last = min(loan.month + loan.n_months, n_months)
    for month in range(loan.month + 1, last + 1):
        due = owed + round(owed * interest)
        paid = due if month == last else payment
        flow[month] += paid
        owed = due - paid
    yield CostLine(
        category="financing",
        name=loan.name,
        cents=tuple(flow),
        low_cents=tuple(flow),
        high_cents=tuple(flow),
        source=f"{loan.interest_frac_per_year:.2%} a year, {loan.n_months} months",
    )


def _running_lines(plan: RunningPlan, n_months: int) -> Iterator[CostLine]:
    for category, monthly, growth in _running_parts(plan):
        item = Recurring(
            category=category,
            name=plan.name,
            usd_per_month=monthly,
            first_month=plan.first_month,
            last_month=plan.last_month,
            growth_frac_per_year=growth,
            source=plan.source,
        )
        yield _recurring_line(item, n_months)


def _running_parts(plan: RunningPlan) -> Iterator[tuple[CostCategory, Range, float]]:
    """Monthly sums. PUE lies on energy and billed demand alike; space is let by machine power."""
    run, n = plan.running, plan.n_nodes
    machines_w = run.average_w * n
    growth = plan.price_growth_frac_per_year
    yield "energy", run.electricity_usd_per_j.times(machines_w * MONTH), growth
    overhead_w = machines_w * (run.pue_ratio - 1)
    yield "cooling", run.electricity_usd_per_j.times(overhead_w * MONTH), growth
    highest_w = run.highest_w * n
    yield "demand charge", exactly(highest_w * run.pue_ratio * run.demand_usd_per_w_month), growth
    yield "space", exactly(highest_w * run.colocation_usd_per_w_month), 0.0
    support = run.support_frac_per_year * n / MONTHS_PER_YEAR
    yield "support", plan.hardware_usd.times(support), 0.0
    licences = run.licence_usd_per_accelerator_year * plan.n_accelerators_per_node * n
    yield "licences", exactly(licences / MONTHS_PER_YEAR), 0.0
    yield "staff", exactly(run.staff_usd_per_year * n / MONTHS_PER_YEAR), 0.0


def _rent_line(rent: RentPlan, n_months: int) -> CostLine:
    rate, hours = rent.rate, rent.node_hours
    paid = 1 / (1 - rent.lost_frac)
    return _line(
        RENT_CATEGORIES[rate.purchase],
        rate.node.name,
        n_months,
        usd=lambda month: rate.price_usd_per_h.times(
            hours[month] * paid * grown(rent.growth_frac_per_year, month)
        ),
        source=evidence_text(rate),
    )


def _recurring_line(item: Recurring, n_months: int) -> CostLine:
    last = n_months if item.last_month is None else item.last_month

    def usd(month: int) -> Range:
        if not item.first_month <= month <= last:
            return exactly(0.0)
        return item.usd_per_month.times(grown(item.growth_frac_per_year, month))

    return _line(item.category, item.name, n_months, usd=usd, source=item.source)


def grown(growth_frac_per_year: float, month: int) -> float:
    """A price in this month over today's: it steps once a year."""
    years = (month - 1) // MONTHS_PER_YEAR if month else 0
    return float((1 + growth_frac_per_year) ** years)


def _once_line(item: Once, n_months: int) -> CostLine:
    return _once(
        item.category, item.name, n_months, month=item.month, usd=item.usd, source=item.source
    )


def evidence_text(rate: NodeRate) -> str:
    """Source and day of a price, for people."""
    day = rate.evidence.price_date
    return f"{rate.evidence.source}, {day}" if day else rate.evidence.source


def steady_hours(n_nodes: float, n_months: int) -> tuple[float, ...]:
    """Node-hours of nodes that run all the time: none today, 730 each in every month after."""
    return (0.0, *(n_nodes * HOURS_PER_MONTH for _ in range(n_months)))


def _check(life: WholeLife) -> None:
    found = []
    for index, rent in enumerate(life.rents):
        if len(rent.node_hours) != life.n_months + 1:
            what = f"{len(rent.node_hours)} months of hours, statement has {life.n_months + 1}"
            found.append(Problem(f"rents[{index}]", what, "give one figure for each month"))
        if not 0 <= rent.lost_frac < 1:
            what = f"lost share is {rent.lost_frac}"
            found.append(Problem(f"rents[{index}]", what, "it must lie in [0, 1)"))
    for index, purchase in enumerate(life.purchases):
        if not 0 <= purchase.month <= life.n_months:
            what = f"bought in month {purchase.month} of {life.n_months}"
            found.append(Problem(f"purchases[{index}]", what, "buy within the statement"))
    for index, loan in enumerate(life.loans):
        if not 0 <= loan.month < life.n_months:
            what = f"borrowed in month {loan.month} of {life.n_months}"
            found.append(Problem(f"loans[{index}]", what, "borrow before the statement ends"))
    if found:
        raise InputError(life.name, found)
