"""Phrases of load: who asks, how often, how much there is to do, and how long each piece is."""

import re
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
_TRADES = (
    "engineer developer dev employee customer client student seat analyst colleague researcher"
    " member lawyer attorney player gamer doctor physician clinician nurse patient teacher pupil"
    " professor scientist postdoc programmer coder worker consultant accountant banker trader"
    " advisor adviser writer journalist editor designer manager officer subscriber visitor"
    " shopper citizen resident tenant guest reader learner professional operator technician"
    " underwriter recruiter rep participant tester admin"
).replace(" ", "|")
PEOPLE = (
    rf"(?:users?|people|persons?|staff|dau|mau|salespeople|(?:{_TRADES})s"
    r"|(?:support|service|call[\s-]cent(?:er|re)|human|sales|insurance|travel|estate)\s+agents)"
)
REQUESTS = (
    r"(?:requests?|reqs?|queries|query|calls?(?!-)|prompts?|messages?|completions?|chats|turns|msgs?"
    r"|questions?|inferences|predictions|transactions|invocations|generations)"
)
DOCS = (
    r"(?:docs?|documents?|texts?|pages?|articles?|e-?mails?|tickets?|records?|reviews?|pdfs?|files?"
    r"|chunks?|passages?|items?|samples?|embeddings?|papers?|reports?|posts?|comments?|abstracts?|sentences?"
    r"|products?|candidates?|transcripts?|contracts?|pairs|tweets?|webpages?|web\s*pages?|filings?|claims?|resumes?|cvs"
    r"|notes|receipts?|invoices?|forms|letters|descriptions?|listings?|titles|headlines|faxes|snippets|seq(?:uence)?s?)"
)
IMAGES = (
    r"(?:(?:video\s+)?(?:clip|frame)s?|(?:image|picture|photo|img|video|scan)s?(?:\s+generations?)?"
    r"|pics)"
)
AUDIO = (
    r"(?:of\s+)?(?:(?:call|phone|customer|recorded|meeting|podcast|support|call[\s-]cent(?:er|re)|voice|audio"
    r"|lecture|court|medical|radio|tv|raw|archived?|video|spoken|sales|telephone|the|our)\s+)*"
    r"(?:audio|speech|recordings?|podcasts?|voice|sound|calls|meetings|videos?|footage|conversations"
    r"|lectures|interviews|webinars|hearings|broadcasts?)\b"
)
TOKENS_PER_WORD, BYTES_PER_TOKEN = 4 / 3, 4.0  # of English text
AUDIO_UNITS = {"h": HOUR, "m": 60.0, "s": 1.0}
UNITS = {"request": REQUESTS, "doc": DOCS, "image": IMAGES}
OF_ONE = (
    r"(?:each(?!\s+(?:night|day|week|month|hour|minute|second))|apiece|a\s+piece|(?:/|\bper\b|\ba\b)\s*(?:docs?|documents?|requests?|pages?|texts?|chunks?"
    r"|quer(?:y|ies)|prompts?|passages?|articles?|images?|e-?mails?|tickets?|items?|records?))"
)
KIND_OF = r"(?:(?:new|incoming|customer|user|legal|medical|scientific|web|text|short|long|generated"
KIND_OF += r"|synthetic|support|product|api|inference|http|peak|llm|the|our|more|call|phone|meeting"
KIND_OF += r"|pdf|html|log|news|scanned|insurance|job"
KIND_OF += r"|earnings|calls?|openai|chatgpt|gpt|claude|anthropic|gemini)\s+)*"
_SPOKEN = (
    r"(?:(?:audio|call[\s-]?cent(?:er|re)|phone|podcast|meeting|lecture|recorded|video)[\s-]+)*"
)


def unit_of(phrase: Phrase) -> str:
    """Which kind of piece the phrase counts."""
    return next((name for name in (*UNITS, "token") if phrase.get(name)), "request")


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


_RECORDINGS = (
    r"(?:(?:audio|video|phone|support|sales|customer)\s+)*"
    r"(?:podcasts?|episodes?|recordings?|calls|meetings|lectures|interviews|hearings|webinars)\b"
)


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


def _daily_of_user(phrase: Phrase) -> Facts:
    """Daily users × messages."""
    return {"requests_per_user_per_day": phrase.number()}


PIECES = "|".join(f"(?P<{name}>{pattern})" for name, pattern in UNITS.items())
_TOKEN = r"(?P<token>(?:output\s+|generated\s+|decode\s+|out\s+)?tok(?:en)?s?)"
_HOURS = r"(?P<hours>hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s)"
ABOUT = r"(?:about\s+|around\s+|roughly\s+|some\s+|~\s*|up\s+to\s+)?"
_PERSON = rf"(?:active\s+)?(?:user|person|head|of\s+them|{_TRADES})"
_OF_USE = r"chat(?:bot)?|rag|coding|code|support|search|agentic|reasoning"
TOK = r"(?:[\s-]*tok(?:en)?s?)?"


LOADS = (
    means(
        r"(?<!each )(?<!per )(?<!every )\b(?:one|(?:a\s+)?single)\s+(?:concurrent\s+)?"
        r"(?:user|person|developer)\b"
        r"|\b(?:just|only)(?:\s+for)?\s+(?:me|myself)\b",
        **{"demand.concurrent_requests": 1},
    ),
    Rule(
        r"{n}\s*(?:[a-z]+\s+)??(?:streams?|cameras?|feeds?|channels?|users|people|clients|viewers)\s*(?:,|at|with|of|each|@)*\s*{m}\s*"
        r"(?:fps|frames\s*(?:/|per|a)\s*s(?:ec(?:onds?)?)?)\b(?:\s+each)?",
        lambda p: rated("image", p.number() * p.number("m"), 1.0),
    ),
    states(
        r"{n}\s*%\s*(?:of\s+(?:them|users|people)\s+)?(?:are\s+)?(?:active|online|concurrent(?:ly)?)\b"
        r"(?:\s+at\s+(?:the\s+)?(?:peak|once))?",
        "demand.active_frac",
        0.01,
    ),
    Rule(
        rf"{{n}}\s*(?:concurrent|simultaneous|parallel|in[\s-]flight)\s+(?:[a-z-]+\s+)??"
        rf"(?:(?P<people>{PEOPLE}|chats|conversations?|sessions?)|(?P<agents>agents?)|{REQUESTS}"
        r"|streams?|jobs)\b",
        _concurrent,
    ),
    Rule(
        rf"{{n}}\s*(?:(?P<people>{PEOPLE}|conversations|sessions)\s+|{REQUESTS}\s+)?"
        r"(?:concurrent(?:ly)?|simultaneously|at\s+once|in\s+parallel|at\s+(?:the\s+same|a)\s+time)\b",
        _concurrent,
    ),
    Rule(
        r"{n}\s*(?:audio\s+|live\s+)?streams\b(?!\s*(?:,|at|with|of|@)*\s*\d+\s*fps)", _concurrent
    ),
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
        rf"\beach\s+(?:\w+ing\s+|makes?\s+|sends?\s+|asks?\s+|does\s+|with\s+)?{ABOUT}{{n}}\s*"
        rf"{REQUESTS}\s*{{per}}",
        _of_user,
    ),
    Rule(rf"{{n}}\s*{REQUESTS}\s*{{per}}\s+each\b", _of_user),
    Rule(rf"{{n}}\s*{REQUESTS}\s+each(?=\s+per\b|\s*/|\s+every\b){{per}}", _of_user),
    Rule(rf"(?<=[xX×])\s*{{n}}\s*{REQUESTS}\b(?!\s*(?:/|per|an?\b))", _daily_of_user),
    Rule(rf"{{n}}\s*{REQUESTS}\s*(?:/|per|an?)\s*{_PERSON}\s*{{per}}", _of_user),
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
        r"\b(?:family|team|group|company|department|class|lab|staff|startup|household|office)\s+of\s+"
        rf"{ABOUT}{{n}}(?:\s*{PEOPLE})?\b(?!\s*%)",
        "demand.users",
    ),
    means(
        r"\b(?:\d{1,3}|two|three|four|five|several|a\s+few)\s+(?:different\s+)?(?:models|services|workloads)\b"
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
    Rule(rf"{{n}}\s*{{t}}[\s-]*(?:long\s+)?{_RECORDINGS}(?:\s*{{per}})?", _recordings),
    Rule(rf"{{n}}\s*{_SPOKEN}{_HOURS}\s*(?:{AUDIO})?\s*{{per}}(?:\s*{AUDIO})?", _audio_rate),
    Rule(r"{n}\s*fps\b", lambda p: rated("image", p.number(), 1.0)),
    Rule(r"{n}\s*(?P<short>[rq]p[smhd]|[rq]/[smh]|tps)\b", _short_rate),
    Rule(r"{n}\s*words\b(?:\s*{per})?", _words),
    Rule(
        r"{n}\s*(?P<bytes>[kmgtp])i?b\b\s*(?:of\s+)?(?:(?:raw|plain|clean|web|our|the)\s+)*"
        rf"(?:text|data|corpus|html|logs?|json|{DOCS})\b(?:\s*{{per}})?",
        _bytes,
    ),
    Rule(rf"(?P<doc>\b{DOCS}\s*[,:(]\s*){{n}}\s*{{per}}", _rate),
    Rule(rf"(?<![€£$]){{n}}\s*{KIND_OF}(?:(?:{PIECES}|{_TOKEN})\s*)?{{per}}", _rate),
    Rule(rf"{{few}}\s+{KIND_OF}(?:{PIECES})\s*{{per}}", _rate),
    Rule(
        rf"{{n}}\s*(?:audio[\s-]*{_HOURS}|{_HOURS.replace('<hours', '<hours2')}\s+{AUDIO})\b",
        lambda p: {"amount.audio_s": _audio_s(p)},
    ),
    states(r"{n}\s*epochs?\b", "training.epochs"),
    states(
        r"\bglobal\s+batch(?:\s+size)?(?:\s+of|=|:)?\s*{n}\s*tokens", "training.global_batch_tokens"
    ),
    Rule(rf"{{n}}\s*rollouts?(?:\s+of\s+{{m}}{TOK})?\b", _rollouts),
    Rule(
        r"(?P<writes>\b(?:generat(?:e|ing)|produc(?:e|ing)|writ(?:e|ing)|synthesi[sz](?:e|ing))\s+)"
        rf"{ABOUT}{{n}}\s*(?:[a-z]+\s+)?{_TOKEN}\b",
        counted,
    ),
    Rule(
        rf"{{n}}\s*{_TOKEN}\s+of\s+(?P<writes>(?:synthetic|generated)\b)(?:\s+(?:data|text))?(?:{{per}})?",
        _written,
    ),
    Rule(
        rf"{{n}}\s*(?P<writes>(?:synthetic|generated|output)\s+)?(?:(?:training|text)\s+)?{_TOKEN}\b",
        counted,
    ),
    states(
        r"{n}\s*(?:(?:(?:preference|comparison|dpo|chosen/rejected)\s+)+pairs|comparisons)\b",
        "pairs",
    ),
    means(
        r"\b(?:the\s+)?imagenet(?:-?(?:1k|2012))?\b(?:\s+(?:1k|dataset))?",
        **{"amount.image": IMAGENET, "usual_epochs": IMAGENET_EPOCHS},
    ),
    Rule(
        r"{n}\s*(?:(?:training|labelled|labeled|instruction|preference|chat|synthetic)\s+)*"
        r"(?:samples?|examples?|rows?|instructions?|conversations)\b(?!\s*(?:/|per\b))",
        lambda p: {"amount.sample": p.number()},
    ),
    states(
        rf"\b(?:top[\s-]*|re-?rank(?:ing)?\s+){{n}}(?:\s*(?:{DOCS}|candidates|results|hits))?"
        r"(?:\s+per\s+query)?\b",
        "docs_per_query",
    ),
    states(rf"{{n}}\s*{DOCS}\s*(?:/|per)\s*(?:query|request|question)\b", "docs_per_query"),
    Rule(rf"{{n}}\s*{KIND_OF}(?:{PIECES})\b(?!-)", counted),
    Rule(
        r"(?<![\w.\-])(?P<size>\d+(?:\.\d+)?)\s*(?:b|billion)\s+(?:parameters?\s+|params?\s+)?(?:are\s+)?active\b"
        r"(?:\s+(?:parameters?|params?))?",
        lambda p: {"active_params_b": float(p.get("size"))},
    ),
    Rule(
        r"(?<![\w.\-])(?P<size>\d+(?:\.\d+)?)\s*(?:b|billion|(?P<tera>t|trillion))\b(?!\s*tok)"
        r"(?:[\s-]*(?:dense|moe|mixture\s+of\s+experts|parameters?|params?|model|network|llm))*",
        lambda p: {"params_b": float(p.get("size")) * (1e3 if p.get("tera") else 1.0)},
    ),
)
