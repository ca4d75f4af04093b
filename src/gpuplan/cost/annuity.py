"""Present values and equal payments of amounts over time, at a yearly interest."""

from collections.abc import Sequence

from gpuplan.units import MONTHS_PER_YEAR


def monthly_frac(yearly_frac: float) -> float:
    """The monthly interest that compounds to the yearly one."""
    return float((1.0 + yearly_frac) ** (1.0 / MONTHS_PER_YEAR) - 1.0)


def discount(n_months: float, yearly_frac: float) -> float:
    """The worth today of one unit paid after so many months."""
    return float((1.0 + yearly_frac) ** (-n_months / MONTHS_PER_YEAR))


def annuity(n_months: float, yearly_frac: float) -> float:
    """The worth today of one unit paid at the end of every month."""
    interest = monthly_frac(yearly_frac)
    return n_months if interest == 0 else (1.0 - discount(n_months, yearly_frac)) / interest


def present_value(by_month: Sequence[float], yearly_frac: float) -> float:
    """The worth today of amounts by month; the first is paid today and not discounted."""
    return sum(value * discount(month, yearly_frac) for month, value in enumerate(by_month))


def monthly_capital(
    outlay: float, residual: float, *, n_months: float, yearly_frac: float
) -> float:
    """The equal monthly payment worth an outlay today less a residual at the end."""
    worth = outlay - residual * discount(n_months, yearly_frac)
    return worth / annuity(n_months, yearly_frac)
