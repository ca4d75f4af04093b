"""What statements are worth: net present value, payback, break-even, and the books by year."""

from collections.abc import Sequence

from gpuplan.cost.annuity import annuity, discount, present_value
from gpuplan.domain.money.statement import CAPITAL, Statement
from gpuplan.domain.money.worth import BookYear, BreakEven, Payback
from gpuplan.domain.ranges import Range
from gpuplan.errors import InputError, one
from gpuplan.units import HOURS_PER_MONTH, MONTHS_PER_YEAR


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
