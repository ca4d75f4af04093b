"""Phrases of length: how long each piece of work is, in tokens, pixels, frames or seconds."""

from gpuplan.inputs.words.amounts import Rate, counted
from gpuplan.inputs.words.phrases import Facts, Phrase
from gpuplan.inputs.words.tables import named, rules_of

# "documents of 500 tokens": what stands before stays for the rule that counts it.
LONGEST = 1e6  # tokens of one piece; more are those of all


def _read(phrase: Phrase) -> Facts:
    """A length that is read; one that is too long for a piece is that of all of them."""
    tokens = phrase.tokens()
    field = "request.input_tokens" if tokens < LONGEST else "amount.token"
    return {field: tokens, **phrase.converted("q")}


def _lengths(phrase: Phrase) -> Facts:
    return {
        "request.input_tokens": phrase.tokens("q"),
        "request.output_tokens": phrase.tokens("r"),
        **phrase.converted("q", "r"),
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


def _chunks(phrase: Phrase) -> Facts:
    """Passages that a prompt is made of."""
    return {"request.input_tokens": phrase.number() * phrase.tokens(), **phrase.converted("q")}


LENGTHS = rules_of(
    "lengths",
    named(
        *(_read, _lengths, _lines, _size, _megapixels, _traffic, _chunks, counted),
        ratio=lambda p: {"in_out_ratio": p.number() / max(p.number("m"), 1e-9)},
    ),
)
