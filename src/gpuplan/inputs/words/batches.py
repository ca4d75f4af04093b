"""Facts of a description → documents to process: how many, how long, and by when."""

import re
from collections.abc import Sequence
from math import ceil

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.runs import put_deadline, put_schedule
from gpuplan.inputs.words.scan import Fact
from gpuplan.inputs.words.targets import schedule_of
from gpuplan.units import DAY, HOUR

PIECES = ("doc", "image", "audio_s", "request")
REQUESTS_PER_S = 1.0


def pieces_of(draft: Draft, at: KeyPath) -> list[str]:
    """Units of work that requests of this workload can be counted in."""
    has_audio = "audio_s" in draft.request(at)
    return [unit for unit in PIECES if unit != "audio_s" or has_audio]


def piece_of(draft: Draft, at: KeyPath, unit: str) -> float:
    """Requests that one unit of work makes: a second of audio is a part of one."""
    request = draft.request(at)
    if unit == "audio_s":
        return 1.0 / float(request["audio_s"])
    if unit == "token":
        return 1.0 / max(1.0, float(request["input_tokens"]))
    if unit == "written":
        return 1.0 / max(1.0, float(request["output_tokens"]))
    return 1.0


def put_batch(draft: Draft, at: KeyPath, units: Sequence[str] = ()) -> None:
    """Documents of a job or of a stream, with their deadline."""
    batch: KeyPath = (*at, "batch")
    if "amount.sample" in draft.facts:  # conversations to write, rows to fill
        draft.facts.setdefault("amount.doc", draft.facts.pop("amount.sample"))
    hours = draft.take("hours")
    if hours is not None:
        draft.facts.setdefault("deadline_s", hours._replace(value=hours.value.seconds))
    _tokens_of_documents(draft, at)
    for unit in units or (*pieces_of(draft, at), "token", "written"):
        _put_pieces(draft, at, unit)
    if not draft.has((*batch, "docs")):
        why = "no amount was named"
        if not draft.has((*batch, "docs_per_day")):
            draft.assume((*batch, "docs_per_day"), DAY * REQUESTS_PER_S, "documents per day", why)
    if not draft.has((*batch, "docs")) and "deadline_s" not in draft.facts:
        why = 'no user waits: a day\'s work within a day; online is e.g. "p95 200 ms"'
        draft.assume((*batch, "deadline_h"), DAY / HOUR, "deadline (h)", why)
        return
    usual_s = put_schedule(draft, at, DAY) if draft.has((*batch, "docs")) else DAY
    put_deadline(draft, (*batch, "deadline_h"), HOUR, usual_s)


def _put_pieces(draft: Draft, at: KeyPath, unit: str) -> None:
    """An amount or a rate in one unit, as documents."""
    batch: KeyPath = (*at, "batch")
    amount, rate = draft.take(f"amount.{unit}"), draft.take(f"rate.{unit}")
    if amount is not None:
        pieces = amount.value * piece_of(draft, at, unit)
        draft.put((*batch, "docs"), ceil(pieces), amount.words)
    if rate is not None and _comes_at_once(draft, rate):
        pieces = rate.value.per_s * rate.value.period_s * piece_of(draft, at, unit)
        draft.put((*batch, "docs"), ceil(pieces), rate.words)
        draft.facts["schedule"] = rate._replace(value=schedule_of(rate.value.period_s))
    elif rate is not None:
        pieces = rate.value.per_s * DAY * piece_of(draft, at, unit)
        draft.put((*batch, "docs_per_day"), round(pieces, 3), rate.words)


def _comes_at_once(draft: Draft, rate: Fact) -> bool:
    """Whether the pieces of a night or a week come together and are due before the next ones."""
    deadline_s = draft.value("deadline_s")
    is_batch = re.search(r"night|daily|weekly|every|each", rate.words, re.IGNORECASE)
    return bool(is_batch) and deadline_s is not None and deadline_s < rate.value.period_s


def _tokens_of_documents(draft: Draft, at: KeyPath) -> None:
    """Documents and tokens both: so many tokens each, or together where that is more."""
    docs, tokens = draft.facts.get("amount.doc"), draft.facts.get("amount.token")
    is_rated = any(f"rate.{unit}" in draft.facts for unit in PIECES)
    if tokens is not None and (docs is not None or is_rated):
        draft.take("amount.token")
        is_total = docs is not None and tokens.value >= docs.value
        each = tokens.value / docs.value if docs is not None and is_total else tokens.value
        draft.put((*at, "request", "input_tokens"), round(each, 3), tokens.words)
