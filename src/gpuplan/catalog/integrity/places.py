"""Are the places sound? In: regions with what power costs and emits; out: findings by rule."""

from collections.abc import Iterator, Sequence
from datetime import date
from statistics import median

from gpuplan.domain.money.market import Region
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.units import KWH

OLD_YEARS = 3
SPREAD_FACTOR = 3.0  # of the median over countries
OWN = "give your own with site.electricity_usd_per_kwh"


def check_places(regions: Sequence[Region], today: date) -> tuple[Finding, ...]:
    """Electricity prices without a year, of long ago, or far from those of other countries."""
    priced = _priced(regions)
    return (*_undated(priced), *_old(priced, today), *_far(priced))


def looked_at(regions: Sequence[Region]) -> dict[str, int]:
    """Rows that each rule looks at."""
    n_priced = len(_priced(regions))
    return dict.fromkeys(("tariff-dated", "tariff-old", "tariff-spread"), n_priced)


def _priced(regions: Sequence[Region]) -> list[Region]:
    return [region for region in regions if region.electricity is not None]


def _undated(regions: Sequence[Region]) -> Iterator[Finding]:
    names = [r.id for r in regions if r.electricity and r.electricity.year is None]
    if names:
        what = f"{len(names)} of {len(regions)} tariffs name no year: {', '.join(names)}"
        yield _finding("warning", "tariff-dated", "electricity", what)


def _old(regions: Sequence[Region], today: date) -> Iterator[Finding]:
    for region in regions:
        year = region.electricity.year if region.electricity else None
        if year is not None and today.year - year > OLD_YEARS:
            yield _finding("warning", "tariff-old", region.id, f"tariff of {year}")


def _far(regions: Sequence[Region]) -> Iterator[Finding]:
    """Figures that differ by more than the usual factor from the median of all."""
    usd = {r.id: r.electricity.usd_per_j * KWH for r in regions if r.electricity}
    usual = median(usd.values()) if usd else 0.0
    for place, value in usd.items():
        if not usual / SPREAD_FACTOR <= value <= usual * SPREAD_FACTOR:
            what = f"${value:.3f}/kWh; ${usual:.3f} is the median of all places"
            yield _finding("note", "tariff-spread", place, what)


def _finding(severity: Severity, rule: str, where: str, what: str) -> Finding:
    return Finding(severity=severity, rule=rule, where=where, what=what, fix=OWN)
