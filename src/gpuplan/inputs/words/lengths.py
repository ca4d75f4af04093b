"""Phrases of length: how long each piece of work is, in tokens, pixels, frames or seconds."""

from gpuplan.inputs.words.amounts import DOCS, OF_ONE, TOK, Rate, counted
from gpuplan.inputs.words.phrases import Facts, Phrase, Rule, states

TOKENS_PER_PAGE = 660.0  # 500 words
_IS = (
    r"\s*(?:length|len|size)?\s*(?:(?:of|=|:|is|are|~|≈|<|about|around|in|with|under|below|up\s+to"
    r"|at\s+most|averag(?:e|ing)|avg)\s*)*"
)
_IN = r"(?:in(?:puts?)?|prompts?|isl|prefill)"
_OUT = r"(?:out(?:puts?)?|answers?|responses?|completions?|osl|decode|generated|generation)"
_LONG_IN = r"(?:inputs?|prompts?|isl|prefill)"
_LONG_OUT = r"(?:outputs?|answers?|responses?|completions?|osl|decode)"
_END = r"(?:[\s-]*tok(?:en)?s?\b|(?!\s*[\w%/]))"
_SORT = r"(?:(?:reasoning|thinking|long|short|average|avg|mean|typical|of)\s+)*"
# "documents of 500 tokens": what stands before stays for the rule that counts it.
_PLURALS = (
    "docs documents pages texts articles emails tickets records chunks passages items samples"
    " examples rows instructions conversations requests prompts queries pairs sequences papers"
    " reports posts comments reviews messages sentences contracts transcripts pdfs PDFs tweets"
    " each day hour minute second week month night daily nightly hourly /s /day /h users sessions"
)
_OF_PIECES = "|".join(rf"(?<={word} )" for word in _PLURALS.split())


_SHARED = (
    r"(?:an?\s+|the\s+|our\s+)?(?:(?:shared|common|cached|fixed|same|identical|constant)\s+"
    r"(?:system\s+)?(?:prompts?|prefix|instructions?)|system\s+prompts?)"
)
LONGEST = 1e6  # tokens of one piece; more are those of all


def _length_or_amount(tokens: float) -> str:
    return "request.input_tokens" if tokens < LONGEST else "amount.token"


def _pages(phrase: Phrase) -> Facts:
    """Documents of so many pages, as tokens."""
    return {
        "request.input_tokens": phrase.number() * TOKENS_PER_PAGE,
        "tokens_per_page": TOKENS_PER_PAGE,
    }


def _pages_out(phrase: Phrase) -> Facts:
    """Responses of so many pages, as tokens."""
    tokens = phrase.number() * TOKENS_PER_PAGE
    return {"request.output_tokens": tokens, "tokens_per_page": TOKENS_PER_PAGE}


def _lengths(phrase: Phrase) -> Facts:
    return {
        "request.input_tokens": phrase.number("n"),
        "request.output_tokens": phrase.number("m"),
    }


def _lines(phrase: Phrase) -> Facts:
    """Video by its lines: 720p is 1280 × 720."""
    height = int(phrase.get("lines"))
    return {"request.image_width_px": round(height / 9) * 16, "request.image_height_px": height}


def _size(phrase: Phrase) -> Facts:
    return {
        "request.image_width_px": int(phrase.get("width")),
        "request.image_height_px": int(phrase.get("height") or phrase.get("width")),
    }


def _megapixels(phrase: Phrase) -> Facts:
    """A square image of so many million pixels."""
    side = round((phrase.number() * 1e6) ** 0.5)
    return {"request.image_width_px": side, "request.image_height_px": side}


def _traffic(phrase: Phrase) -> Facts:
    """Tokens in and out over a period: what is written, and how much is read for it."""
    period, written = phrase.period_s(), phrase.number("m")
    return {
        "rate.written": Rate("written", written / period, period),
        "in_out_ratio": phrase.number("n") / max(written, 1e-9),
    }


LENGTHS = (
    Rule(
        rf"{{n}}\s*(?:{_IN}|read)[\s-]*tok(?:en)?s?\s*(?:/|,|and|&|\+|plus)*\s*{{m}}\s*"
        rf"(?:{_OUT}|written)[\s-]*tok(?:en)?s?\s*{{per}}",
        _traffic,
    ),
    Rule(
        r"{n}\s*tok(?:en)?s?\s+(?:in|read)\b\s*(?:/|,|and|&|\+|plus)*\s*{m}\s*tok(?:en)?s?\s+"
        r"(?:out|written)\b\s*{per}",
        _traffic,
    ),
    Rule(
        r"{n}\s*(?:retrieved\s+)?(?:chunks|snippets)\s+of\s+{m}\s*tok(?:en)?s?\b(?:\s+each)?",
        lambda p: {"request.input_tokens": p.number() * p.number("m")},
    ),
    *(
        Rule(rf"(?:\bof\s+)?{number}\s+pages?\s+{way}\b", make)
        for number in ("{n}", "{few}")
        for way, make in (("in", _pages), ("out", _pages_out))
    ),
    Rule(r"\b(?:one|an?|1)\s+(?:step|turn|action)\s+every\s+{t}", lambda p: {"think": p.seconds()}),
    Rule(
        r"(?:(?<=videos )|(?<=clips )|(?<=calls )|(?<=recordings ))of\s+{t}(?:\s+each)?",
        lambda p: {"request.audio_s": p.seconds()},
    ),
    Rule(rf"{{n}}[\s-]page\s+(?P<kept>{DOCS}\b)", _pages),
    Rule(
        rf"(?P<kept>{DOCS}\s+)(?:(?:of|with|up\s+to|as\s+long\s+as|about|around)\s+)+{{n}}\s+pages(?:\s+each)?\b",
        _pages,
    ),
    Rule(
        r"{n}[\s-]*(?P<token>tok(?:en)?s?)\s+(?:of\s+)?(?:training\s+|text\s+)?(?:dataset|corpus|data)\b",
        counted,
    ),
    Rule(
        rf"{{n}}{TOK}[\s-]*{_SORT}{_IN}{TOK}\s*(?:/|,|and|&|\+|-|→|->)*\s*{{m}}{TOK}[\s-]*{_SORT}{_OUT}{TOK}\b",
        _lengths,
    ),
    Rule(
        rf"\b{_LONG_IN}{TOK}{_IS}{{n}}{TOK}\s*(?:/|,|;|and)?\s*{_LONG_OUT}{TOK}{_IS}{{m}}{TOK}(?![\w%/])",
        _lengths,
    ),
    Rule(r"{n}\s*(?:/|→|->)\s*{m}(?:\s*tok(?:en)?s?)?(?![\w/])", _lengths),
    Rule(
        r"{n}\s*tok(?:en)?s?(?:\s+(?:avg|average|on\s+average|each))?\.?\)?\s*(?:to|into|down\s+to)\s*"
        r"{m}\s*tok(?:en)?s?\b",
        _lengths,
    ),
    states(r"(?<=[a-z]\s)[x×]\s*{n}\s*tok(?:en)?s?\b", "request.input_tokens"),
    Rule(
        rf"(?:{_OF_PIECES})(?:of|averaging|having|with|at)\s+(?:(?:an?|average|of|about|around|up\s+to)\s+|~\s*)*"
        rf"{{n}}[\s-]*tok(?:en)?s?\b(?![\s-]*{_SORT}{_OUT}\b)(?:\s+each)?",
        lambda p: {_length_or_amount(p.number()): p.number()},
    ),
    *(
        states(pattern, "shared_tokens")
        for pattern in (
            rf"(?:\bof\s+which\s+)?{{n}}{TOK}\s*(?:(?:of\s+(?:which|them|it)|is|are|as|:)\s+)*{_SHARED}",
            rf"{_SHARED}{_IS}{{n}}{TOK}(?![\w%/])",
        )
    ),
    states(
        r"\bmax(?:imum|\.)?\s+context(?:\s+(?:length|window))?(?:\s+of)?\s*{n}(?:\s*tokens?)?\b",
        "max_context_tokens",
    ),
    states(r"{n}[\s-]*(?:tokens?\s+)?max(?:imum)?\s+context\b", "max_context_tokens"),
    states(rf"{{n}}{TOK}\s*(?:of\s+)?(?:context|ctx)(?:\s+(?:window|length|each))?\b", "context"),
    states(rf"\b(?:context|ctx)(?:\s+window)?{_IS}{{n}}{TOK}(?![\w%])", "context"),
    states(r"\bseq(?:uence)?(?:\s*len(?:gth)?)?(?:\s+of|=|:)?\s*{n}\b", "training.sequence_tokens"),
    states(
        r"{n}[\s-]*(?:token\s+)?sequences?(?:\s+length)?\b(?!\s*(?:/|per\b|of\b|a\b))",
        "training.sequence_tokens",
    ),
    states(
        rf"{{n}}[\s-]*tok(?:en)?s?[\s-]*(?:of\s+)?{_SORT}{_LONG_OUT}\b(?!\s*/)",
        "request.output_tokens",
    ),
    states(rf"{{n}}[\s-]*tok(?:en)?s?[\s-]*{_LONG_IN}\b", "request.input_tokens"),
    states(rf"{{n}}{TOK}\s*out(?:put)?\b(?!\s+(?:of|tok))", "request.output_tokens"),
    states(rf"\b{_LONG_OUT}{TOK}{_IS}{{n}}{_END}", "request.output_tokens"),
    states(rf"\b{_LONG_IN}{TOK}{_IS}{{n}}{_END}", "request.input_tokens"),
    Rule(
        rf"{{n}}\s*tok(?:en)?s?\s*{OF_ONE}", lambda p: {_length_or_amount(p.number()): p.number()}
    ),
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
    states(
        r"{n}\s*(?:(?:different|distinct|customer|tenant)\s+)?"
        r"(?:loras|lora[\s-]+adapters?|adapters?)\b",
        "request.lora_adapters",
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
    Rule(r"{n}\s*(?:megapixels?|mpx|mp)\b", _megapixels),
    states(r"{n}\s*(?:denoising|diffusion|inference|sampling|euler)?\s*steps\b", "request.steps"),
    Rule(r"(?<![\w.])(?P<lines>360|480|540|576|720|1080|1440|2160)p\b", _lines),
    states(r"{n}\s*frames\b(?!\s*(?:/|per|an?)\b)(?!\s*/)", "request.frames"),
    Rule(
        r"{t}[\s-]*(?:(?:audio\s+)?(?:clips|segments|utterances|snippets)|(?:long\s+)?calls)\b"
        r"(?:\s+each)?(?!\s*(?:/|per|an?\b|daily))",
        lambda p: {"request.audio_s": p.seconds()},
    ),
    Rule(
        r"{t}[\s-]*(?:long\s+)?(?P<kept>(?:audio\s+|video\s+)?(?:clips|videos|segments|snippets|calls)\b)",
        lambda p: {"request.audio_s": p.seconds()},
    ),
)
