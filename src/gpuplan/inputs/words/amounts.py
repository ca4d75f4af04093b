"""Phrases of load: who asks, how often, how much there is to do, and how long each piece is."""

import re
from typing import NamedTuple

from gpuplan.inputs.words.phrases import Facts, Phrase
from gpuplan.inputs.words.tables import named, rules_of
from gpuplan.units import DAY, HOUR


class Rate(NamedTuple):
    """Pieces of work per second, and the period that they were counted over."""

    unit: str
    per_s: float
    period_s: float

    def times(self, factor: float) -> "Rate":
        """So many times as often."""
        return self._replace(per_s=self.per_s * factor)


TOKENS_PER_WORD, BYTES_PER_TOKEN = 4 / 3, 4.0  # of English text
AUDIO_UNITS = {"h": HOUR, "m": 60.0, "s": 1.0}
UNITS = ("request", "doc", "image", "token")


def unit_of(phrase: Phrase) -> str:
    """Which kind of piece the phrase counts."""
    return next((name for name in UNITS if phrase.get(name)), "request")


def rated(unit: str, per_s: float, period_s: float) -> Facts:
    """A rate of pieces as a fact."""
    return {f"rate.{unit}": Rate(unit, per_s, period_s)}


def _rate(phrase: Phrase) -> Facts:
    """Pieces per time; of a day or more, output tokens are what is written."""
    period, unit = phrase.period_s(), unit_of(phrase)
    if unit == "token" and period >= DAY and re.match("out|gen|dec", phrase.get("token")):
        unit = "written"
    return rated(unit, phrase.number() / period, period)


def _short_rate(phrase: Phrase) -> Facts:
    unit = "token" if phrase.get("short")[0] == "t" else "request"
    period = {"s": 1.0, "m": 60.0, "h": HOUR, "d": DAY}[phrase.get("short")[-1]]
    return rated(unit, phrase.number() / period, period)


def _audio_s(phrase: Phrase) -> float:
    return phrase.number() * AUDIO_UNITS[(phrase.get("hours") or phrase.get("hours2"))[0]]


def _audio_rate(phrase: Phrase) -> Facts:
    period = phrase.period_s()
    return rated("audio_s", _audio_s(phrase) / period, period)


def _recordings(phrase: Phrase) -> Facts:
    """So many recordings, each so long, as audio."""
    audio_s = phrase.number() * phrase.seconds()
    if not (phrase.get("per") or phrase.get("adverb")):
        return {"amount.audio_s": audio_s}
    return rated("audio_s", audio_s / phrase.period_s(), phrase.period_s())


def counted(phrase: Phrase) -> Facts:
    """An amount of pieces or tokens."""
    unit = "written" if phrase.get("writes") else unit_of(phrase)  # tokens of outputs, or of inputs
    return {f"amount.{unit}": phrase.number()}


def _written(phrase: Phrase) -> Facts:
    """Tokens to be written, in all or over a period."""
    if not (phrase.get("per") or phrase.get("adverb")):
        return counted(phrase)
    return rated("written", phrase.number() / phrase.period_s(), phrase.period_s())


def _words(phrase: Phrase) -> Facts:
    """Words of a text, as tokens."""
    tokens = phrase.number() * TOKENS_PER_WORD
    return {**_tokens(phrase, tokens), "tokens_per_word": TOKENS_PER_WORD}


def _tokens(phrase: Phrase, tokens: float) -> Facts:
    """An amount of tokens, or a rate where the phrase says per what."""
    if not (phrase.get("per") or phrase.get("adverb")):
        return {"amount.token": tokens}
    period = phrase.period_s()
    return rated("token", tokens / period, period)


def _bytes(phrase: Phrase) -> Facts:
    """Text by its size on disk, as tokens."""
    size = phrase.number() * 1e3 ** (1 + "kmgtp".index(phrase.get("bytes")))
    return {**_tokens(phrase, size / BYTES_PER_TOKEN), "bytes_per_token": BYTES_PER_TOKEN}


def _rollouts(phrase: Phrase) -> Facts:
    length = {"request.output_tokens": phrase.number("m")} if phrase.get("m") else {}
    return {"rollouts": phrase.number(), **length}


def _concurrent(phrase: Phrase) -> Facts:
    if phrase.get("people"):
        return {"demand.concurrent_users": phrase.number()}
    agents = {"use": "agents"} if phrase.get("agents") else {}
    return {"demand.concurrent_requests": phrase.number(), **agents}


def _of_user(phrase: Phrase) -> Facts:
    """Requests of one user: at the peak, counted by the hour; over whole days otherwise."""
    period = phrase.period_s()
    if period < DAY:
        return {"demand.requests_per_user_per_h": round(phrase.number() * HOUR / period, 9)}
    return {"requests_per_user_per_day": phrase.number() * DAY / period}


def _active(phrase: Phrase) -> Facts:
    """The share of the users who are active at the peak."""
    parts = {"half": 0.5, "third": 1 / 3, "quarter": 0.25}
    share = parts.get(phrase.get("share").split()[-1]) or phrase.number() / 100
    return {"demand.active_frac": round(share, 6)}


def _share_of_users(phrase: Phrase) -> Facts:
    """So many users, and how many of them are active."""
    return {"demand.users": phrase.number("m"), **_active(phrase)}


def _daily_of_user(phrase: Phrase) -> Facts:
    """Daily users × messages."""
    return {"requests_per_user_per_day": phrase.number()}


# Where no noun that is known is counted: whoever is served, and whatever comes so often.


def _params(phrase: Phrase) -> Facts:
    return {"params_b": float(phrase.get("size")) * (1e3 if phrase.get("tera") else 1.0)}


_READERS = named(
    *(_rate, _short_rate, _audio_rate, _recordings, counted, _written, _words, _bytes),
    *(_rollouts, _concurrent, _of_user, _share_of_users, _active, _daily_of_user, _params),
    cameras=lambda p: rated(
        "image", p.number() * p.number("m") / (p.seconds() if p.get("t_unit") else 1.0), 1.0
    ),
    active_params=lambda p: {"active_params_b": float(p.get("size"))},
    fps=lambda p: rated("image", p.number(), 1.0),
    audio=lambda p: {"amount.audio_s": _audio_s(p)},
)
LOADS = rules_of("loads", _READERS)
# Where no noun that is known is counted: whoever is served, and whatever comes so often.
OPEN = rules_of("open", _READERS)
