"""What money over time is worth, in: statements; out: net present value, payback, break-even."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.cost.annuity import annuity, discount
from gpuplan.cost.statement import shares_of
from gpuplan.domain.money.statement import CAPITAL, CostLine, Statement
from gpuplan.domain.money.worth import BookMonth, BreakEven, Payback
from gpuplan.domain.ranges import Range
from gpuplan.errors import InputError, one
from gpuplan.units import HOURS_PER_MONTH


def npv_cents(statement: Statement) -> float:
    """Worth today of all cost; today's cash is not discounted. Fractions of a cent remain."""
    rate = statement.discount_frac_per_year
    return sum(
        value * discount(month, rate) for month, value in enumerate(statement.cents_by_month)
    )


def npv_usd(statement: Statement) -> float:
    """Net present cost in dollars."""
    return npv_cents(statement) / 100.0


def npv_range_usd(statement: Statement) -> Range:
    """Net present cost when every range turns out cheap, as expected, or dear: bounds."""
    rate = statement.discount_frac_per_year

    def worth(flows: Sequence[Sequence[int]]) -> float:
        cents = 0.0
        for flow in flows:
            cents += sum(value * discount(month, rate) for month, value in enumerate(flow))
        return cents / 100.0

    return Range(
        low=worth([line.low_cents for line in statement.lines]),
        mid=npv_usd(statement),
        high=worth([line.high_cents for line in statement.lines]),
    )


def equal_monthly_usd(statement: Statement) -> float:
    """The even monthly payment that is worth the same."""
    return npv_usd(statement) / annuity(statement.n_months, statement.discount_frac_per_year)


def cumulative_usd(statement: Statement) -> tuple[float, ...]:
    """What has been paid in all after each month: the line of a chart."""
    total, sums = 0, []
    for cents in statement.cents_by_month:
        total += cents
        sums.append(total / 100.0)
    return tuple(sums)


def payback(dear_first: Statement, cheap_first: Statement) -> Payback:
    """When what was laid out first has been saved back; None where it never is within life."""
    if dear_first.n_months != cheap_first.n_months:
        what = f"{dear_first.n_months} and {cheap_first.n_months} months"
        raise one(InputError, "payback", "n_months", what, "compare over the same time")
    pairs = zip(dear_first.cents_by_month, cheap_first.cents_by_month, strict=True)
    saved = [cheap - dear for dear, cheap in pairs]
    rate = dear_first.discount_frac_per_year
    worth = [value * discount(month, rate) for month, value in enumerate(saved)]
    return Payback(
        simple_month=_crossing(saved),
        discounted_month=_crossing(worth),
        npv_gain_usd=sum(worth) / 100.0,
    )


def _crossing(flow: Sequence[float]) -> int | None:
    """First month from which the sum stays at or above zero; residual counts when it comes."""
    total, since = 0.0, None
    for month, value in enumerate(flow):
        total += value
        is_back = total >= 0
        since = (month if since is None else since) if is_back else None
    return since


def break_even(
    own: Statement, *, rent_usd_per_accelerator_h: float, n_accelerators: int
) -> BreakEven:
    """The share of hours above which owning is cheaper than renting by the hour."""
    own_usd = equal_monthly_usd(own)
    per_available_h = own_usd / (n_accelerators * HOURS_PER_MONTH)
    share = per_available_h / rent_usd_per_accelerator_h
    return BreakEven(
        utilization_ratio=share,
        own_usd_per_available_h=per_available_h,
        rent_usd_per_used_h=rent_usd_per_accelerator_h,
        is_reachable=share <= 1.0,
    )


def break_even_month(first: Statement, second: Statement) -> int | None:
    """The month from which the first statement has cost less in all, and stays so; or None."""
    return payback(first, second).simple_month


def book_view(
    statement: Statement, *, life_months: int, residual_cents: int = 0
) -> tuple[BookMonth, ...]:
    """The accounts' view: purchase spread evenly over life instead of paid; never beside cash.

    The cash of purchase and residual is left out here and depreciation put in its place. Where
    things are bought in several months, the residual is shared out by what they cost.
    """
    outlays = _outlays(statement)
    bought = sorted(outlays)
    left = shares_of(residual_cents, [outlays[month] for month in bought]) if bought else ()
    rows, written = [], 0
    for month, expense in enumerate(without_capital(statement).cents_by_month):
        due = sum(
            (outlays[start] - rest) * min(max(month - start, 0), life_months) // life_months
            for start, rest in zip(bought, left, strict=True)
        )
        owned = sum(outlays[start] for start in bought if start <= month)
        rows.append(
            BookMonth(
                month=month,
                expense_cents=expense,
                depreciation_cents=due - written,
                book_value_cents=owned - due,
            )
        )
        written = due
    return tuple(rows)


def _outlays(statement: Statement) -> dict[int, int]:
    """What was laid out for things, by month; months without are left out."""
    sums: dict[int, int] = {}
    for line in statement.lines:
        if line.category in CAPITAL and line.category != "residual":
            for month, value in enumerate(line.cents):
                if value:
                    sums[month] = sums.get(month, 0) + value
    return sums


def without_capital(statement: Statement) -> Statement:
    """The same statement without what was laid out for things and got back for them."""
    kept: list[CostLine] = [line for line in statement.lines if line.category not in CAPITAL]
    if not kept:
        zero = (0,) * (statement.n_months + 1)
        kept = [
            CostLine(category="other", name="none", cents=zero, low_cents=zero, high_cents=zero)
        ]
    return replace(statement, lines=tuple(kept))
