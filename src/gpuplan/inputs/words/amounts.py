"""Phrases of load: who asks, how often, how much there is to do, and how long each piece is."""

from typing import NamedTuple

from gpuplan.inputs.words.phrases import Facts, Phrase, Rule, means, states
from gpuplan.units import DAY, HOUR


class Rate(NamedTuple):
    """Pieces of work per second, and the period that they were counted over."""

    unit: str
    per_s: float
    period_s: float


IMAGENET = 1_281_167.0  # training images of ILSVRC 2012 [Russakovsky2015]
IMAGENET_EPOCHS = 90.0  # of the usual recipe for ResNet-50 [Goyal2017]
PEOPLE = (
    r"(?:users?|people|persons?|engineers|developers|devs|employees|customers|clients|students"
    r"|seats|analysts|colleagues|researchers|staff|members|dau|mau)"
)
REQUESTS = (
    r"(?:requests?|reqs?|queries|query|calls?(?!-)|prompts?|messages?|completions?|chats|turns)"
)
DOCS = (
    r"(?:docs?|documents?|texts?|pages?|articles?|e-?mails?|tickets?|records?|reviews?|pdfs?|files?"
    r"|chunks?|passages?|items?|embeddings?|papers?|reports?|posts?|comments?|abstracts?|sentences?"
    r"|products?|transcripts?|contracts?|pairs|tweets?|webpages?|web\s*pages?|filings?|claims?|resumes?|cvs)"
)
IMAGES = r"(?:images?|pictures?|photos?|pics|imgs?|clips?|videos?)"
AUDIO = r"(?:of\s+)?(?:audio|speech|recordings?|podcasts?|voice|sound|calls|meetings|video)"
AUDIO_UNITS = {"h": HOUR, "m": 60.0, "s": 1.0}
UNITS = {"request": REQUESTS, "doc": DOCS, "image": IMAGES}
OF_ONE = (
    r"(?:each(?!\s+(?:night|day|week|month|hour|minute|second))|apiece|a\s+piece|(?:/|\bper\b|\ba\b)\s*(?:docs?|documents?|requests?|pages?|texts?|chunks?"
    r"|quer(?:y|ies)|prompts?|passages?|articles?|images?|e-?mails?|tickets?|items?|records?))"
)
KIND_OF = r"(?:(?:new|incoming|customer|user|legal|medical|scientific|web|text|short|long|generated"
KIND_OF += r"|synthetic|support|product|api|inference|http|peak|llm|the|our|more|call|phone|meeting"
KIND_OF += r"|news|scanned|insurance|job)\s+)*"
_SPOKEN = (
    r"(?:(?:audio|call[\s-]?cent(?:er|re)|phone|podcast|meeting|lecture|recorded|video)[\s-]*)*"
)


def _unit(phrase: Phrase) -> str:
    """Which kind of piece the phrase counts."""
    return next((name for name in (*UNITS, "token") if phrase.get(name)), "request")


def _rated(unit: str, per_s: float, period_s: float) -> Facts:
    return {f"rate.{unit}": Rate(unit, per_s, period_s)}


def _rate(phrase: Phrase) -> Facts:
    period = phrase.period_s()
    return _rated(_unit(phrase), phrase.number() / period, period)


def _short_rate(phrase: Phrase) -> Facts:
    unit = "token" if phrase.get("short")[0] == "t" else "request"
    period = {"s": 1.0, "m": 60.0, "h": HOUR, "d": DAY}[phrase.get("short")[-1]]
    return _rated(unit, phrase.number() / period, period)


def _audio_s(phrase: Phrase) -> float:
    return phrase.number() * AUDIO_UNITS[(phrase.get("hours") or phrase.get("hours2"))[0]]


def _audio_rate(phrase: Phrase) -> Facts:
    period = phrase.period_s()
    return _rated("audio_s", _audio_s(phrase) / period, period)


def _amount(phrase: Phrase) -> Facts:
    unit = "written" if phrase.get("writes") else _unit(phrase)  # tokens of outputs, or of inputs
    return {f"amount.{unit}": phrase.number()}


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


def _lengths(phrase: Phrase) -> Facts:
    return {
        "request.input_tokens": phrase.number("n"),
        "request.output_tokens": phrase.number("m"),
    }


def _size(phrase: Phrase) -> Facts:
    return {
        "request.image_width_px": int(phrase.get("width")),
        "request.image_height_px": int(phrase.get("height") or phrase.get("width")),
    }


_PIECES = "|".join(f"(?P<{name}>{pattern})" for name, pattern in UNITS.items())
_TOKEN = r"(?P<token>(?:output\s+|generated\s+|decode\s+|out\s+)?tok(?:en)?s?)"
_HOURS = r"(?P<hours>hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s)"
_IS = r"\s*(?:length|len|size)?\s*(?:of|=|:|is|~|≈|about|around)?\s*"
_IN = r"(?:in(?:puts?)?|prompts?|isl|prefill)"
_OUT = r"(?:out(?:puts?)?|answers?|responses?|completions?|osl|decode|generated|generation)"
_LONG_IN = r"(?:inputs?|prompts?|isl|prefill)"
_LONG_OUT = r"(?:outputs?|answers?|responses?|completions?|osl|decode)"
_END = r"(?:[\s-]*tok(?:en)?s?\b|(?!\s*[\w%/]))"
_ABOUT = r"(?:about\s+|around\s+|roughly\s+|some\s+|~\s*|up\s+to\s+)?"
_PERSON = r"(?:active\s+)?(?:user|person|seat|head|employee|developer|engineer|customer|of\s+them)"
_OF_USE = r"chat(?:bot)?|rag|coding|code|support|search|agentic|reasoning"
_TOK = r"(?:[\s-]*tok(?:en)?s?)?"


# "documents of 500 tokens": what stands before stays for the rule that counts it.
_PLURALS = (
    "docs documents pages texts articles emails tickets records chunks passages items samples"
    " examples rows instructions conversations requests prompts queries pairs sequences papers"
    " reports posts comments reviews messages sentences contracts transcripts pdfs PDFs tweets"
    " each day hour minute second week month night daily nightly hourly /s /day /h users sessions"
)
_OF_PIECES = "|".join(rf"(?<={word} )" for word in _PLURALS.split())


def _day_and_night(phrase: Phrase) -> Facts:
    """The rate of the day, and the share of it that is left at night."""
    period = phrase.period_s()
    share = round(min(1.0, phrase.number("m") / max(phrase.number(), 1e-9)), 6)
    return {"night_frac": share, **_rated(_unit(phrase), phrase.number() / period, period)}


HOURS = (
    Rule(
        rf"{{n}}\s*{KIND_OF}(?:(?:{_PIECES})\s*)?{{per}}\s*(?:by|during\s+the|in\s+the|at)\s+day(?:time)?"
        rf"\s*(?:,|;|and|but)*\s*{{m}}(?:\s*{REQUESTS}?\s*(?:/|per|an?)?\s*(?:s|second|h|hour|min|minute)?)"
        r"\s+(?:by|at|during\s+the|in\s+the)\s+night\b",
        _day_and_night,
    ),
    means(
        r"\b(?:24\s*/\s*7|around the clock|flat load|constant load)", **{"demand.peak_to_mean": 1.0}
    ),
    means(r"\b(?:by|during\s+the|in\s+the)\s+day(?:time)?\b", hours=(8, 20)),
    means(
        r"\b(?:in|during|only\s+in)?\s*(?:business|office|working)\s+hours(?:\s+only)?\b",
        hours=(9, 18),
    ),
)

LENGTHS = (
    Rule(
        r"{n}[\s-]*(?P<token>tok(?:en)?s?)\s+(?:of\s+)?(?:training\s+|text\s+)?(?:dataset|corpus|data)\b",
        _amount,
    ),
    Rule(
        rf"{{n}}{_TOK}[\s-]*{_IN}{_TOK}\s*(?:/|,|and|\+|-|→|->)?\s*{{m}}{_TOK}[\s-]*{_OUT}{_TOK}\b",
        _lengths,
    ),
    Rule(
        rf"\b{_LONG_IN}{_TOK}{_IS}{{n}}{_TOK}\s*(?:/|,|;|and)?\s*{_LONG_OUT}{_TOK}{_IS}{{m}}{_TOK}(?![\w%/])",
        _lengths,
    ),
    Rule(r"{n}\s*(?:/|→|->)\s*{m}(?:\s*tok(?:en)?s?)?(?![\w/])", _lengths),
    Rule(r"{n}\s*tok(?:en)?s?\s*(?:to|into|down\s+to)\s*{m}\s*tok(?:en)?s?\b", _lengths),
    states(
        rf"(?:{_OF_PIECES})of\s+(?:about\s+|around\s+|~\s*|up\s+to\s+)?{{n}}[\s-]*tok(?:en)?s?\b"
        r"(?:\s+each)?",
        "request.input_tokens",
    ),
    states(
        r"\bmax(?:imum|\.)?\s+context(?:\s+(?:length|window))?(?:\s+of)?\s*{n}(?:\s*tokens?)?\b",
        "max_context_tokens",
    ),
    states(r"{n}[\s-]*(?:tokens?\s+)?max(?:imum)?\s+context\b", "max_context_tokens"),
    states(rf"{{n}}{_TOK}\s*(?:of\s+)?(?:context|ctx)(?:\s+(?:window|length|each))?\b", "context"),
    states(rf"\b(?:context|ctx)(?:\s+window)?{_IS}{{n}}{_TOK}(?![\w%])", "context"),
    states(r"\bseq(?:uence)?(?:\s*len(?:gth)?)?(?:\s+of|=|:)?\s*{n}\b", "training.sequence_tokens"),
    states(r"{n}[\s-]*(?:token\s+)?sequences?(?:\s+length)?\b", "training.sequence_tokens"),
    states(rf"{{n}}[\s-]*tok(?:en)?s?[\s-]*{_LONG_OUT}\b(?!\s*/)", "request.output_tokens"),
    states(rf"{{n}}[\s-]*tok(?:en)?s?[\s-]*{_LONG_IN}\b", "request.input_tokens"),
    states(rf"{{n}}{_TOK}\s*out\b(?!\s+of)", "request.output_tokens"),
    states(rf"\b{_LONG_OUT}{_TOK}{_IS}{{n}}{_END}", "request.output_tokens"),
    states(rf"\b{_LONG_IN}{_TOK}{_IS}{{n}}{_END}", "request.input_tokens"),
    states(rf"{{n}}\s*tok(?:en)?s?\s*{OF_ONE}", "request.input_tokens"),
    states(r"{n}[\s-]+tok(?:en)?(?=\s+[a-z]+)(?!\s+(?:of|in|out|per|a)\b)", "request.input_tokens"),
    states(
        r"{n}\s*%\s*(?:of\s+\w+\s+)?(?:prefix|prompt|kv|cache[d]?)(?:[\s-]*cache[d]?)?"
        r"(?:[\s-]*(?:hits?|reuse|cached))?(?:[\s-]*rate)?\b",
        "request.prefix_hit_frac",
        0.01,
    ),
    states(
        r"\b(?:prefix[\s-]*)?cache[\s-]*hit(?:[\s-]*rate)?(?:\s+of|=|:)?\s*{n}\s*%",
        "request.prefix_hit_frac",
        0.01,
    ),
    states(r"{n}\s*(?:turns|rounds)(?:\s+(?:each|per\s+\w+))?\b(?!\s*/)", "request.turns"),
    Rule(
        r"\bthink(?:ing)?\s+(?:for\s+|about\s+)?{t}(?:\s+between(?:\s+\w+)?)?",
        lambda p: {"think": p.seconds()},
    ),
    Rule(r"{t}\s*(?:of\s+)?think(?:ing)?(?:\s+time)?\b", lambda p: {"think": p.seconds()}),
    Rule(r"\bthink(?:ing)?\s+time(?:\s+of|:|=)?\s*{t}", lambda p: {"think": p.seconds()}),
    Rule(
        r"\btools?(?:[\s-]*(?:calls?|use|times?|execution|latency))?(?:\s+(?:takes?|lasts?|of|runs?"
        r"|for|about|around|is|needs?|=|:))*\s*{t}(?:\s+each)?",
        lambda p: {"think": p.seconds()},
    ),
    Rule(
        r"(?<![\w.])(?P<width>\d{3,4})\s*[x×*]\s*(?P<height>\d{3,4})(?:\s*px|\s*pixels)?\b", _size
    ),
    Rule(r"(?<![\w.])(?P<width>\d{3,4})\s*(?:px|pixels?)\b", _size),
    states(r"{n}\s*(?:denoising|diffusion|inference|sampling|euler)?\s*steps\b", "request.steps"),
    states(r"{n}\s*frames\b(?!\s*/)", "request.frames"),
    Rule(
        r"{t}[\s-]*(?:(?:audio\s+)?(?:clips|segments|utterances|snippets)|(?:long\s+)?calls)\b"
        r"(?:\s+each)?(?!\s*(?:/|per))",
        lambda p: {"request.audio_s": p.seconds()},
    ),
)

LOADS = (
    states(
        r"{n}\s*%\s*(?:of\s+(?:them|users|people)\s+)?(?:are\s+)?(?:active|online|concurrent(?:ly)?)\b"
        r"(?:\s+at\s+(?:the\s+)?(?:peak|once))?",
        "demand.active_frac",
        0.01,
    ),
    Rule(
        rf"{{n}}\s*(?:concurrent|simultaneous|parallel|in[\s-]flight)\s+(?:\w+\s+)??"
        rf"(?:(?P<people>{PEOPLE}|chats|conversations?|sessions?)|(?P<agents>agents?)|{REQUESTS}"
        r"|streams?|jobs)\b",
        _concurrent,
    ),
    Rule(r"{n}\s*(?:concurrent(?:ly)?|at\s+once|in\s+parallel)\b", _concurrent),
    Rule(
        r"{n}\s*(?:(?:live|audio|voice|real[\s-]?time|phone|video|camera)\s+)+(?:streams?|calls|channels"
        r"|feeds)\b",
        _concurrent,
    ),
    Rule(
        rf"\b(?:concurrency|in[\s-]flight)(?:\s+of|\s*=|:)?\s*{{n}}(?:\s*{REQUESTS})?\b",
        _concurrent,
    ),
    Rule(
        r"{n}\s*(?:(?:coding|ai|software|autonomous|llm|code)\s+)*(?P<agents>agents)\b", _concurrent
    ),
    Rule(
        rf"\beach\s+(?:\w+ing\s+|makes?\s+|sends?\s+|asks?\s+|does\s+|with\s+)?{_ABOUT}{{n}}\s*"
        rf"{REQUESTS}\s*{{per}}",
        _of_user,
    ),
    Rule(
        rf"{{n}}\s*{REQUESTS}\s*(?:/|per|an?)\s*{_PERSON}\s*{{per}}",
        _of_user,
    ),
    Rule(
        rf"{{n}}\s*{REQUESTS}\s*{{per}}\s*(?:/|per|for|by|from)?\s*(?:each\s+)?{_PERSON}\b",
        _of_user,
    ),
    states(
        r"{n}\s*(?:(?:daily|monthly|weekly|active|registered|total|internal|our|online|business|paying"
        r"|paid|free|premium|enterprise|corporate|mobile|web|app|beta|pilot|office|regular|expected|end"
        rf"|licensed|human|external)\s+)*(?P<kept>(?:{_OF_USE})\s+)?{PEOPLE}\b",
        "demand.users",
    ),
    states(
        r"\bpeak(?:\s+(?:is|of|at|load))*\s*{n}\s*(?:x|×|times)(?:\s+(?:the\s+)?(?:mean|average|avg))?",
        "demand.peak_to_mean",
    ),
    states(
        r"\bpeak[\s-](?:to|over)[\s-](?:mean|average|avg)(?:\s+ratio)?(?:\s+of|=|:)?\s*{n}\b",
        "demand.peak_to_mean",
    ),
    states(
        r"{n}\s*(?:x|×|times)\s+(?:the\s+mean\s+at\s+(?:the\s+)?)?peak\b", "demand.peak_to_mean"
    ),
    Rule(rf"{{n}}\s*{_SPOKEN}{_HOURS}\s*(?:{AUDIO})?\s*{{per}}(?:\s*{AUDIO})?", _audio_rate),
    Rule(r"{n}\s*(?P<short>[rq]p[smhd]|tps)\b", _short_rate),
    Rule(rf"(?<![€£$]){{n}}\s*{KIND_OF}(?:(?:{_PIECES}|{_TOKEN})\s*)?{{per}}", _rate),
    Rule(rf"{{few}}\s+{KIND_OF}(?:{_PIECES})\s*{{per}}", _rate),
    Rule(
        rf"{{n}}\s*(?:audio[\s-]*{_HOURS}|{_HOURS.replace('<hours', '<hours2')}\s+{AUDIO})\b",
        lambda p: {"amount.audio_s": _audio_s(p)},
    ),
    states(r"{n}\s*epochs?\b", "training.epochs"),
    states(
        r"\bglobal\s+batch(?:\s+size)?(?:\s+of|=|:)?\s*{n}\s*tokens", "training.global_batch_tokens"
    ),
    Rule(rf"{{n}}\s*rollouts?(?:\s+of\s+{{m}}{_TOK})?\b", _rollouts),
    Rule(
        r"(?P<writes>\b(?:generat(?:e|ing)|produc(?:e|ing)|writ(?:e|ing)|synthesi[sz](?:e|ing))\s+)"
        rf"{_ABOUT}{{n}}\s*(?:[a-z]+\s+)?{_TOKEN}\b",
        _amount,
    ),
    Rule(
        rf"{{n}}\s*(?P<writes>(?:synthetic|generated|output)\s+)?(?:(?:training|text)\s+)?{_TOKEN}\b",
        _amount,
    ),
    states(r"{n}\s*(?:(?:preference|comparison|dpo|chosen/rejected)\s+)+pairs\b", "pairs"),
    means(
        r"\b(?:the\s+)?imagenet(?:-?(?:1k|2012))?\b(?:\s+(?:1k|dataset))?",
        **{"amount.image": IMAGENET, "training.epochs": IMAGENET_EPOCHS},
    ),
    Rule(
        r"{n}\s*(?:(?:training|labelled|labeled|instruction|preference|chat|synthetic)\s+)*"
        r"(?:samples?|examples?|rows?|instructions?|conversations)\b",
        lambda p: {"amount.sample": p.number()},
    ),
    states(
        rf"\b(?:top[\s-]*|re-?rank(?:ing)?\s+){{n}}(?:\s*(?:{DOCS}|candidates|results|hits))?"
        r"(?:\s+per\s+query)?\b",
        "docs_per_query",
    ),
    states(rf"{{n}}\s*{DOCS}\s*(?:/|per)\s*(?:query|request|question)\b", "docs_per_query"),
    Rule(rf"{{n}}\s*{KIND_OF}(?:{_PIECES})\b", _amount),
    Rule(
        r"(?<![\w.\-])(?P<size>\d+(?:\.\d+)?)\s*(?:b|billion)\b"
        r"(?:[\s-]*(?:dense|parameters?|params?|model|network|llm))*",
        lambda p: {"params_b": float(p.get("size"))},
    ),
)
