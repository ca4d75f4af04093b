"""Phrases of targets: SLOs, deadlines, money, power, growth."""

from datetime import date
from typing import NamedTuple

from gpuplan.inputs.words.phrases import Facts, Phrase, Rule, means, states
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
    """US dollars, in total or per period, and the rate that made them of another currency."""

    usd: float
    period_s: float | None
    exchange: str = ""


# US dollars, from units of a currency for a euro of one day [ECB-2026-04-13].
EXCHANGE_DAY = "2026-04-13"
EURO_IN_USD = 1.1684
PER_EURO = {"eur": 1.0, "gbp": 0.87058, "chf": 0.9242, "jpy": 186.75, "inr": 109.047}
SPELLED = {"rup": "inr", "pou": "gbp", "yen": "jpy", "fra": "chf"}
SIGNS = {"€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}


_MOST = (
    r"\s*(?:(?:is|must be|should be|stays?|target|slo|of|at|:|=|<=?|≤|under|below|within|in"
    r"|less than|at most|no more than|max(?:imum)?|up to)\s*)*"
)
_STAT = (
    r"(?P<STAT>p50|p90|p95|p99|median|mean|average|avg"
    r"|(?:50|90|95|99)(?:th|%)?[\s-]*(?:per)?cent?ile)"
)
_TTFT = r"(?:ttft|time[\s-]to[\s-]first[\s-]token|first[\s-]token(?:\s+(?:latency|time))?)"
_TPOT = r"(?:tpot|time[\s-]per[\s-]output[\s-]token|time[\s-]per[\s-]token)"
_ITL = r"(?:itl|inter[\s-]token[\s-]latency)"
_E2E = (
    r"(?:e2e|end[\s-]to[\s-]end)(?:\s+(?:latency|time))?|latency|response\s+times?|respon(?:d|ses?)"
    r"|answers?"
)


def _limit(metric: str) -> Rule:
    words = {"ttft": _TTFT, "tpot": _TPOT, "itl": _ITL, "e2e": _E2E}[metric]
    before, after = _STAT.replace("STAT", "before"), _STAT.replace("STAT", "after")
    last = _STAT.replace("STAT", "last")
    return Rule(
        rf"(?:\b{before}\s+)?\b(?P<metric>{words})(?:\s*\(?{after}\)?)?{_MOST}"
        rf"{{t}}(?:\s*(?:at\s+)?\(?{last}\)?)?",
        lambda p: _target(metric, p),
    )


def _limit_first(metric: str) -> Rule:
    """The time before its metric: 300 ms TTFT."""
    whole = r"(?:e2e\s+|end-to-end\s+)?latency"
    words = {"ttft": _TTFT, "tpot": _TPOT, "itl": _ITL, "e2e": whole}[metric]
    before, after = _STAT.replace("STAT", "before"), _STAT.replace("STAT", "after")
    return Rule(
        rf"{{t}}\s+(?:{before}\s+)?(?P<metric>{words})\b(?:\s*(?:at\s+)?\(?{after}\)?)?",
        lambda p: _target(metric, p),
    )


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
    usd = phrase.number() * _in_usd(phrase)
    exchange = _exchange(phrase)
    if phrase.get("capex") or phrase.get("capex2"):
        return {"budget.capex_usd": usd}
    if phrase.get("monthly"):
        return {"money": Money(usd, MONTH, exchange)}
    return {"money": Money(usd, phrase.period_s() if is_rate else None, exchange)}


def _currency(phrase: Phrase) -> str:
    """The currency that a phrase names, by its code; empty: US dollars."""
    stated = phrase.get("sign") or phrase.get("code")
    return SIGNS.get(stated, SPELLED.get(stated[:3], stated[:3]))


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


def _power(field: str) -> Rule:
    where = r"\s*(?:/|per|a)\s*rack" if "rack" in field else ""
    return Rule(
        rf"(?:power\s*)?(?:limit|budget|capacity)?(?:\s+of|:)?\s*{{n}}\s*(?P<unit>kw|mw|kilowatts?|"
        rf"megawatts?)\b{where}(?:\s*(?:of\s+)?(?:it\s+)?(?:power|site|limit|available|capacity))*",
        lambda p: {field: p.number() * (1e3 if p.get("unit").startswith("m") else 1.0)},
    )


EVENING_H = 20
MONTHS = 12
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def days_until(weekday: str, today: date) -> int:
    """Days from today until the weekday that is meant; a week where it is today."""
    return (WEEKDAYS.index(weekday.lower()) - today.weekday() - 1) % 7 + 1


def days_left(period: str, today: date) -> int:
    """Days of the month or year after today; one at least."""
    is_last = period == "year" or today.month == MONTHS
    first = date(today.year + is_last, 1 if is_last else today.month + 1, 1)
    return max(1, (first - today).days - 1)


_CODES = r"eur(?:os?)?|gbp|chf|inr|jpy|rupees?|pounds?|yen|francs"
_USD = r"(?:\$|us\$|usd\s*)"
_LIMIT = (
    r"(?:(?:monthly\s+|total\s+|our\s+|a\s+)*budget|spend(?:ing)?|cost|under|below|less\s+than|at\s+most"
    r"|max(?:imum)?|up\s+to|within|for|<=?|≤|cap(?:ped)?(?:\s+at)?|no\s+more\s+than|:|of|is)"
)
_LOAD = r"(?:load|demand|traffic|usage|volume|users?)"

GROWTH = (
    Rule(
        rf"(?P<kept>\d[\d,.]*\s*k?\s*(?:{_LOAD}|requests?(?:\s*/\s*s|\s+per\s+second)?))\s+(?:now|today|at\s+first|initially)"
        rf"\s*(?:,|and|but|→|->|then|to)*\s*{{n}}(?:\s+{_LOAD})?\s+(?:in|within|after|by)\s+{{ot}}",
        lambda p: {"grow_to": (p.number(), p.seconds())},
    ),
    Rule(
        rf"(?:(?:grow(?:s|ing)?|rising|increas(?:es?|ing)|scal(?:es?|ing)|get(?:ting)?|go(?:ing)?)\s+to|reach(?:es|ing)?)"
        rf"\s+{{n}}(?:\s+(?:{_LOAD}|requests?)"
        r"(?:\s*/\s*s|\s+per\s+second)?)?\s*(?:in|within|over|after|by)\s+(?:the\s+next\s+)?{ot}",
        lambda p: {"grow_to": (p.number(), p.seconds())},
    ),
    Rule(
        rf"(?:(?:{_LOAD}|it|and|which|that)\s+)*(?:will\s+|to\s+|expected\s+to\s+)*"
        r"(?P<verb>doubl(?:es?|ing)|tripl(?:es?|ing)|quadrupl(?:es?|ing))\s*"
        r"(?:in|within|every|each|per|over|after|by)?\s*(?:the\s+)?(?:next\s+)?{ot}",
        _growth,
    ),
    Rule(
        rf"(?:{_LOAD}\s+)?(?:will\s+)?(?:grows?|growing|growth(?:\s+of)?|increases?|\+)\s*(?:by\s+)?"
        r"{n}\s*(?:x|×|times|fold)\s*(?:in|within|every|per|over|/|a)?\s*{t}",
        _growth,
    ),
    Rule(
        r"{n}\s*(?:x|×|times)\s*(?:growth|more\s+load|the\s+load)?\s*(?:in|within|over|per|after)\s*{t}",
        _growth,
    ),
    Rule(
        rf"(?:{_LOAD}\s+)?(?:will\s+)?(?:(?P<shrinks>shrink\w*|declin\w+|fall\w*)|grow(?:s|ing|th)?"
        r"|increas(?:es?|ing)|\+)(?:\s+(?:rate|of|by|is|at|=|:))*\s*{n}\s*%{per}(?:\s+growth)?",
        _growth_rate,
    ),
    Rule(r"\+?\s*{n}\s*%\s*(?P<adverb>monthly|yearly|weekly)\s+growth\b", _growth_rate),
    Rule(r"\+?\s*{n}\s*%{per}\s*(?:growth|more)?", _growth_rate),
)

LIMITS = (
    Rule(
        r"{n}\s*%\s+of\s+(?:the\s+|all\s+|our\s+)?(?:requests|responses|calls|queries|answers|prompts)\s+"
        r"(?:(?:must|should|to|are|be|get|answered|served|done|finish(?:ed)?|completed?|come)\s+)*"
        r"(?:under|below|within|faster\s+than|in(?:\s+(?:under|less\s+than|at\s+most))?|<)\s*{t}",
        _share,
    ),
    Rule(
        r"{n}\s*tok(?:en)?s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?\s*(?:/|per|for\s+each|for\s+every|for\s+a)?\s*"
        r"(?:each|user|request|stream|session)\b",
        _speed,
    ),
    *(_limit(metric) for metric in ("ttft", "tpot", "itl", "e2e")),
    *(_limit_first(metric) for metric in ("ttft", "tpot", "itl", "e2e")),
    Rule(
        r"{t}\s*(?:per|/|a|each|for\s+each)\s*(?:output\s+)?token\b", lambda p: _target("tpot", p)
    ),
    Rule(rf"\b(?P<before>p50|p95|p99|p90|median){_MOST}{{t}}", _bare),
    *(
        Rule(
            r"(?:\b(?P<starts>start|begin|appear|stream)\w*\s+(?:to\s+\w+\s+)?)?"
            rf"(?:\b(?:in|within|under|below|at most|less than)|<=?|≤)\s*{number}\s*"
            r"(?P<t_unit>ms|milliseconds?|s|secs?|seconds?)\b(?:\s*(?:each|per\s+\w+))?"
            r"(?:\s*(?:latency|e2e))?",
            _seconds,
        )
        for number in ("{n}", "{few}")
    ),
    Rule(
        r"(?<=,)\s*{n}\s*(?P<t_unit>ms|s|secs?|seconds?)\s+(?:each|per\s+(?:image|request|picture|query|page))\b",
        _seconds,
    ),
    states(
        r"(?:with\s+|at\s+)?{n}\s*%\s*(?:confidence|probability|certainty|sure|confident)\b",
        "policy.min_probability_frac",
        PERCENT,
    ),
    states(r"{n}\s*%\s*(?:availability|uptime|available)\b", "slo.availability_frac", PERCENT),
    Rule(
        r"{n}\s+nines\b(?:\s+(?:of\s+)?(?:availability|uptime))?",
        lambda p: {"slo.availability_frac": 1 - 10 ** -p.number()},
    ),
    states(r"\b(?:availability|uptime)(?:\s+of|:|=)?\s*{n}\s*%", "slo.availability_frac", PERCENT),
)

_ENERGY = r"(?:electricity|energy|power)"
MONEY = (
    Rule(
        rf"(?:{_ENERGY}\s*)?(?:(?:at|:|of|costs?|price|is)\s*)*(?:{_USD}|(?P<sign>[€£¥₹]))?\s*"
        rf"{{n}}\s*(?:(?P<code>{_CODES})\b|\$|usd|dollars?|(?P<cent>¢|ct|cents?))?\s*"
        rf"(?:/|per|a)\s*kwh\b(?:\s+(?:for\s+)?{_ENERGY})?",
        _tariff,
    ),
    Rule(
        rf"(?:{_LIMIT}\s*)*(?:(?P<sign>[€£¥₹])|\b(?P<code>{_CODES})\b)\s*{{n}}(?:{{per}})?"
        r"(?:\s+(?:budget|total|max))?",
        _money,
    ),
    Rule(
        rf"(?:{_LIMIT}\s*)*{{n}}\s*(?:(?P<sign>[€£¥₹])|(?P<code>{_CODES})\b)(?:{{per}})?"
        r"(?:\s+(?:budget|total|max))?",
        _money,
    ),
    Rule(
        rf"(?:{_LIMIT}\s*)*{_USD}\s*{{n}}\s*(?P<capex>capex|(?:of\s+)?capital|to\s+spend\s+on\s+hardware)",
        _money,
    ),
    Rule(rf"(?P<capex2>capex){_MOST}(?:{_USD})?\s*{{n}}", _money),
    Rule(rf"(?:{_LIMIT}\s*)*{_USD}\s*{{n}}(?:{{per}})?(?:\s+(?:budget|total|max))?", _money),
    Rule(
        rf"(?:{_LIMIT}\s*)*{{n}}\s*(?:\$|usd|dollars?|bucks)(?:{{per}})?(?:\s+(?:budget|total|max))?",
        _money,
    ),
    Rule(
        r"\b(?P<monthly>monthly\s+)?budget(?:\s*(?:of|is|:|=))?\s*{n}(?:{per})?(?![\w%])",
        _money,
    ),
    Rule(
        rf"(?:{_LIMIT}\s*)*{{n}}\s*(?P<unit>t|tonnes?|tons?|kg)\s*(?:of\s+)?"
        r"(?:co2(?:-?eq?)?|co₂e?|carbon)\b(?:\s+emissions)?(?:{per})?",
        _carbon,
    ),
    _power("site.rack.power_kw"),
    _power("site.power_kw"),
    states(r"{n}\s*racks\b", "site.racks"),
    states(r"\bpue(?:\s+of|\s*=|:)?\s*{n}\b", "site.pue"),
    states(
        r"(?:max(?:imum)?|at\s+most|up\s+to|target)?\s*{n}\s*%\s*(?:max(?:imum)?\s+|peak\s+)*utili[sz]ation",
        "policy.max_utilization_frac",
        PERCENT,
    ),
    states(
        r"(?:max(?:imum)?\s+)?utili[sz]ation(?:\s*(?:of|at most|up to|<=?|≤|below|:))*\s*{n}\s*%",
        "policy.max_utilization_frac",
        PERCENT,
    ),
    states(r"\bmfu(?:\s+of|\s*=|:)?\s*{n}\s*%", "training.mfu_frac", PERCENT),
    states(r"{n}\s*%\s*mfu\b", "training.mfu_frac", PERCENT),
)

DEADLINES = (
    Rule(
        r"\b(?:(?P<once>once|twice|thrice)|{n}\s*(?:times|x|runs))\s+(?:(?:per|an?|every|each)\s+)"
        r"(?P<period>day|night|week|month)\b",
        _times,
    ),
    means(r"\b(?:every|each)\s+week-?end\b", schedule="weekly"),
    Rule(r"\bevery\s+{ot}\b", lambda p: {"schedule": schedule_of(p.seconds())}),
    means(r"\bevery\s+other\s+day\b", schedule=schedule_of(2 * DAY)),
    Rule(r"\b(?P<adverb>hourly|daily|weekly|monthly)\b", lambda p: {"schedule": p.get("adverb")}),
    Rule(
        r"\b(?:horizon(?:\s+of|:)?|planning\s+for)\s+{t}",
        lambda p: {"budget.horizon_months": p.seconds() / MONTH},
    ),
    Rule(
        r"{t}[\s-]+(?:horizon|project|pilot|trial|campaign|engagement|contract|poc|life(?:time|span|cycle)?|depreciation|amorti[sz]ation|period)\b",
        lambda p: {"budget.horizon_months": p.seconds() / MONTH},
    ),
    means(
        r"\b(?:(?:this|over\s+the|over|on\s+the|by\s+the\s+end\s+of\s+the|in\s+a|in\s+the)\s+)?"
        r"week-?end\b",
        deadline_s=2 * DAY,
    ),
    means(r"\b(?:over\s*night|tonight|by\s+(?:tomorrow\s+)?morning)\b", deadline_s=12 * HOUR),
    Rule(
        r"\b(?:by|until|till|before)\s+(?P<hour>\d{1,2})(?P<minute>:\d\d)?\s*"
        r"(?P<half>[ap]\.?m\b\.?|(?<=:\d\d)|o'?clock)(?:\s+in\s+the\s+morning)?",
        _by_hour,
    ),
    means(r"\b(?:by|until|till|before)\s+tomorrow\b|\btoday\b|\b(?:a|one)\s+day\b", deadline_s=DAY),
    Rule(
        rf"\b(?:by|until|till|before|on)\s+(?:next\s+|this\s+)?(?P<weekday>{'|'.join(WEEKDAYS)})\b",
        lambda p: {"deadline_s": days_until(p.get("weekday"), date.today()) * DAY},
    ),
    Rule(
        r"\b(?:by|until|till|before)\s+(?:the\s+)?end\s+of\s+(?:the\s+|this\s+)?(?P<period>month|year)\b",
        lambda p: {"deadline_s": days_left(p.get("period"), date.today()) * DAY},
    ),
    means(r"\b(?:by\s+the\s+end\s+of\s+)?(?:this|the|next)\s+week\b", deadline_s=7 * DAY),
    means(r"\bthis\s+month\b", deadline_s=MONTH),
    means(r"\bthis\s+year\b", deadline_s=YEAR),
    Rule(
        r"(?:\b(?:in|within|under|deadline(?:\s+of)?|due(?:\s+in)?|finish(?:ed)?(?:\s+in|\s+within)?"
        r"|done(?:\s+in|\s+within)?|complete(?:d)?(?:\s+in)?|take\s+at\s+most|at\s+most|max(?:imum)?"
        r"|less\s+than|no\s+more\s+than)\s+|<=?\s*|≤\s*|:\s*)+(?:the\s+next\s+)?{t}(?:\s+deadline)?",
        _deadline,
    ),
    Rule(r"{t}\s+deadline\b", _deadline),
    Rule(r"(?:(?<=,)|(?<=;))\s*{t}\s*(?=$|[,;.])", _deadline),
    Rule(r"\b(?:for|during|over)\s+(?:the\s+next\s+)?{t}", lambda p: {"span_s": p.seconds()}),
)
