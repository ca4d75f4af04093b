"""Phrases of targets: SLOs, deadlines, money, power, growth."""

from datetime import date
from functools import partial
from typing import NamedTuple

from gpuplan.inputs.words.phrases import ADVERBS, SCALES, Facts, Phrase
from gpuplan.inputs.words.tables import Reader, named, rules_of
from gpuplan.units import DAY, HOUR, MONTH, MS, WEEK, YEAR

PERCENT = 0.01
# The strictest statistic that the scenario has for what people name.
STATISTICS = {
    "ttft": {"p50": "p50", "median": "p50", "p99": "p99"},
    "tpot": {
        "p50": "mean",
        "median": "mean",
        "mean": "mean",
        "average": "mean",
        "avg": "mean",
        "p99": "p99",
    },
    "itl": {"p99": "p99"},
    "e2e": {"p50": "p50", "median": "p50", "p99": "p99"},
}


class Money(NamedTuple):
    """US dollars, per period (0: in total, None: not said), and the exchange that made them."""

    usd: float
    period_s: float | None
    exchange: str = ""


# US dollars, from units of a currency for a euro of one day [ECB-2026-04-13].
EXCHANGE_DAY = "2026-04-13"
EURO_IN_USD = 1.1684
PER_EURO = {"eur": 1.0, "gbp": 0.87058, "chf": 0.9242, "jpy": 186.75, "inr": 109.047}
SPELLED = {"rup": "inr", "pou": "gbp", "yen": "jpy", "fra": "chf"}
SIGNS = {"€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}


def _target(metric: str, phrase: Phrase) -> Facts:
    stated = phrase.get("before") or phrase.get("after") or phrase.get("last")
    stated = f"p{stated[:2]}" if stated[:1].isdigit() else stated
    statistic = STATISTICS[metric].get(stated, "p95")
    unit, factor = ("s", 1.0) if metric == "e2e" else ("ms", 1 / MS)
    return {f"slo.{metric}_{statistic}_{unit}": round(phrase.seconds() * factor, 9)}


def _bare(phrase: Phrase) -> Facts:
    """A percentile or a few seconds without a metric: the whole response is meant."""
    return _target("e2e", phrase)


def _share(phrase: Phrase) -> Facts:
    """A share of the requests within a time, as the percentile that is at least as strict."""
    share = phrase.number()
    statistic = "p99" if share > 95 else "p95" if share > 50 else "p50"
    return {f"slo.e2e_{statistic}_s": phrase.seconds()}


def _seconds(phrase: Phrase) -> Facts:
    """Seconds without a metric: until the response starts where that is said, else all of it."""
    seconds = phrase.number() * phrase.seconds()
    if phrase.get("starts"):
        return {"slo.ttft_p95_ms": round(seconds / MS, 9)}
    return {"slo.e2e_p95_s": seconds}


def _speed(phrase: Phrase) -> Facts:
    """Tokens per second of one user, as the time per token."""
    return {"slo.tpot_p95_ms": round(1e3 / phrase.number(), 6)}


def _money(phrase: Phrase) -> Facts:
    is_rate = bool(phrase.get("per") or phrase.get("adverb"))
    usd = _usd(phrase)
    exchange = _exchange(phrase)
    if phrase.get("capex") or phrase.get("capex2"):
        return {"budget.capex_usd": usd}
    if phrase.get("before"):
        return {"money": Money(usd, ADVERBS[phrase.get("before")], exchange)}
    return {"money": Money(usd, phrase.period_s() if is_rate else None, exchange)}


def _per_tokens(phrase: Phrase) -> Facts:
    """A price of so many tokens, in US dollars per million."""
    of = SCALES.get(phrase.get("m_scale") or phrase.get("of"), 1.0) * (
        float(phrase.get("m").replace(",", "")) if phrase.get("m") else 1.0
    )
    return {"price_limit": round(_usd(phrase) * 1e6 / max(of, 1.0), 9)}


def _spent(phrase: Phrase) -> Facts:
    """What is paid today, in US dollars."""
    return {"spent": _usd(phrase)}


def _currency(phrase: Phrase) -> str:
    """The currency that a phrase names, by its code; empty: US dollars."""
    stated = next(filter(None, map(phrase.get, ("sign", "code", "sign2", "code2"))), "")
    return SIGNS.get(stated, SPELLED.get(stated[:3], stated[:3]))


def _usd(phrase: Phrase) -> float:
    """A sum in US dollars, its currency before or behind the number."""
    return phrase.number("n2" if phrase.get("n2") else "n") * _in_usd(phrase)


def _in_usd(phrase: Phrase) -> float:
    name = _currency(phrase)
    return EURO_IN_USD / PER_EURO[name] if name else 1.0


def _exchange(phrase: Phrase) -> str:
    name = _currency(phrase).upper()
    return f"1 {name} = {_in_usd(phrase):.4g} USD" if name else ""


def _tariff(phrase: Phrase) -> Facts:
    """The price of electricity in US dollars."""
    usd = phrase.number() * _in_usd(phrase) * (PERCENT if phrase.get("cent") else 1.0)
    return {"site.electricity_usd_per_kwh": round(usd, 9)}


def _carbon(phrase: Phrase) -> Facts:
    """Emissions of a year in tonnes."""
    tonnes = phrase.number() * (1e-3 if phrase.get("unit") == "kg" else 1.0)
    is_rate = bool(phrase.get("per") or phrase.get("adverb"))
    per_year = tonnes * (YEAR / phrase.period_s() if is_rate else 1.0)
    return {"policy.max_co2_t_per_year": round(per_year, 9)}


def _growth(phrase: Phrase) -> Facts:
    """Compound growth per month from a factor over a time."""
    words = {"doubl": 2.0, "tripl": 3.0, "quadrupl": 4.0}
    verb = phrase.get("verb")
    factor = next((words[stem] for stem in words if verb.startswith(stem)), 0.0) or phrase.number()
    months = max(phrase.seconds(), DAY) / MONTH
    return {"growth.per_month_frac": round(factor ** (1 / months) - 1, 6)}


def _growth_rate(phrase: Phrase) -> Facts:
    monthly = (1 + phrase.number() * PERCENT) ** (MONTH / phrase.period_s()) - 1
    sign = -1 if phrase.get("shrinks") else 1
    return {"growth.per_month_frac": round(sign * monthly, 6)}


def _deadline(phrase: Phrase) -> Facts:
    return {"deadline_s": phrase.seconds()}


def _by_hour(phrase: Phrase) -> Facts:
    """Due at an hour of the day: work that waits for the evening has from then until it."""
    hour = int(phrase.get("hour")) % 24
    if phrase.get("half").startswith("p"):
        hour = hour % 12 + 12
    return {"deadline_s": ((hour - EVENING_H) % 24 or 24) * HOUR, "evening": True}


def _times(phrase: Phrase) -> Facts:
    """So many runs in a day, week or month."""
    n = {"once": 1.0, "twice": 2.0, "thrice": 3.0}.get(phrase.get("once")) or phrase.number()
    period = phrase.get("period").replace("night", "day")
    return {"schedule": f"{n:g}/{period}"}


def schedule_of(between_s: float) -> str:
    """How often runs start, as the scenario's key says it."""
    named = {HOUR: "hourly", DAY: "daily", WEEK: "weekly", MONTH: "monthly"}
    return named.get(between_s, f"{MONTH / between_s:.6g}/month")


EVENING_H = 20
MONTHS = 12
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def days_until(weekday: str, today: date) -> int:
    """Days from today until the weekday that is meant; a week where it is today."""
    return (WEEKDAYS.index(weekday.lower()) - today.weekday() - 1) % 7 + 1


def _days_until_date(phrase: Phrase, today: date) -> int:
    """Days from today until a date; one without a year is the next such."""
    if phrase.get("iso"):
        return max(1, (date.fromisoformat(phrase.get("iso")) - today).days)
    name, day = phrase.get("month") or phrase.get("month2"), phrase.get("day") or phrase.get("day2")
    month = next(i for i, stem in enumerate(_MONTH_STEMS, 1) if name.startswith(stem))
    dates = (date(today.year + years, month, min(int(day) or 1, 28)) for years in (0, 1))
    return next((each - today).days for each in dates if each > today)


def days_left(period: str, today: date) -> int:
    """Days of the month or year after today; one at least."""
    is_last = period == "year" or today.month == MONTHS
    first = date(today.year + is_last, 1 if is_last else today.month + 1, 1)
    return max(1, (first - today).days - 1)


_MONTH_STEMS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# Of 2 $ per GPU-hour or per image no plan has a limit: such a sum is not read as a budget.


def _power(field: str) -> Reader:
    return lambda p: {field: p.number() * (1e3 if p.get("unit").startswith("m") else 1.0)}


_READERS = named(
    *(_growth, _growth_rate, _share, _speed, _bare, _seconds, _tariff, _per_tokens, _spent),
    *(_money, _carbon, _times, _deadline, _by_hour),
    **{metric: partial(_target, metric) for metric in STATISTICS},
    total=lambda p: {"money": Money(_usd(p), 0.0, _exchange(p))},
    nines=lambda p: {"slo.availability_frac": 1 - 10 ** -p.number()},
    grow_from=lambda p: {"demand.users": p.number(), "grow_to": (p.number("m"), p.seconds())},
    grow_to=lambda p: {"grow_to": (p.number(), p.seconds())},
    every=lambda p: {"schedule": schedule_of(p.seconds())},
    power=_power("site.power_kw"),
    rack_power=_power("site.rack.power_kw"),
    until_date=lambda p: {"deadline_s": _days_until_date(p, date.today()) * DAY},
    until_weekday=lambda p: {"deadline_s": days_until(p.get("weekday"), date.today()) * DAY},
    until_end=lambda p: {"deadline_s": days_left(p.get("period"), date.today()) * DAY},
)
GROWTH = rules_of("growth", _READERS)
LIMITS = rules_of("limits", _READERS)
MONEY = rules_of("money", _READERS)
DEADLINES = rules_of("deadlines", _READERS)
