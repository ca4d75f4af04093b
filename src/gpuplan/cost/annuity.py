"""Present values and equal payments of amounts over time, at a yearly interest."""

from collections.abc import Sequence
from math import ceil

from gpuplan.units import MONTH, MONTHS_PER_YEAR


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


def running_discount(start_s: float, length_s: float, yearly_frac: float) -> float:
    """The worth today of one unit paid evenly over a time, at the end of each month of it."""
    first, end = start_s / MONTH, (start_s + length_s) / MONTH
    months = range(int(first), max(int(first) + 1, ceil(end * (1 - 1e-12))))
    parts = [max(0.0, min(month + 1.0, end) - max(month, first)) for month in months]
    worth = sum(p * discount(m + 1, yearly_frac) for m, p in zip(months, parts, strict=True))
    return worth / sum(parts)
