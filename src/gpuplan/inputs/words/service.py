"""Facts of a description → the shape, load and targets of a service's requests."""

import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.words.amounts import Rate
from gpuplan.inputs.words.batches import REQUESTS_PER_S, piece_of, pieces_of
from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.hours import Hours
from gpuplan.inputs.words.lengths import LONGEST
from gpuplan.inputs.words.stages import passages_of_queries, put_passages
from gpuplan.inputs.words.tasks import (
    NOUNS,
    SPEECH_S,
    SPEECH_WHY,
    THINK_S,
    THINK_WHY,
    USES,
)
from gpuplan.units import DAY, HOUR

LOADS = (
    "users",
    "requests_per_s",
    "requests_per_day",
    "output_tokens_per_s",
    "concurrent_requests",
)
TOKENS_PER_AUDIO_S = 3.3  # 150 words a minute, 1.3 tokens a word
VIDEO_FPS = 16  # of generated clips: 81 frames are 5 s, as Wan makes them
DAY_HOURS = Hours(8, 20)
TOKEN_PX = 28  # of an image, along one side: patches of 14 px, two by two (Qwen-VL)
_CONVERSATIONS = re.compile(r"\bchats\b|conversation|session", re.IGNORECASE)
OF_NOUNS = ("summarization", "translation", "classification", "extraction", "embeddings")
QUIET_FRAC = 0.1  # of the peak, outside the hours that are named


def who_asks(draft: Draft) -> None:
    """Users, rates and what is said of each of them, as one load."""
    _monthly(draft)
    _people_at_once(draft)


def _monthly(draft: Draft) -> None:
    """Of users of a month those of a day ask, where both are known; several images of a request."""
    monthly, daily = draft.take("monthly_users"), draft.take("daily_frac")
    if monthly is not None and "demand.users" in draft.facts:
        draft.read_as("users of a month", monthly.value, monthly.words)
    elif monthly is not None:
        draft.facts["demand.users"] = monthly
    users = draft.facts.get("demand.users")
    if daily is not None and users is not None:
        words = f"{users.words}, {daily.words}"
        draft.facts["demand.users"] = users._replace(value=users.value * daily.value, words=words)
    elif daily is not None:
        draft.facts["daily_frac"] = daily
    each, rate = draft.facts.get("images_per_request"), draft.facts.get("rate.request")
    if each is not None and rate is not None:
        del draft.facts["images_per_request"]
        draft.facts["rate.request"] = rate._replace(value=rate.value.times(each.value))


def _people_at_once(draft: Draft) -> None:
    """Concurrent users ask, read and ask again, unless it is said how often they ask."""
    _users_and_rates(draft)
    each = draft.facts.get("demand.requests_per_user_per_h")
    if each is not None and "demand.concurrent_requests" in draft.facts:  # of each agent
        draft.facts.setdefault(
            "demand.concurrent_users", draft.facts.pop("demand.concurrent_requests")
        )
    if each is not None and not {"demand.users", "demand.concurrent_users"} & set(draft.facts):
        draft.take("demand.requests_per_user_per_h")  # of each region, or of what is no user
        n_each = len(draft.value("policy.regions.allowed") or ("all",))
        rate = Rate("request", n_each * each.value / HOUR, 1.0)
        draft.facts["rate.request"] = each._replace(value=rate)
    users, daily = draft.facts.get("demand.users"), draft.facts.get("requests_per_user_per_day")
    if users is not None and daily is not None:
        words = f"{users.words}, {daily.words}"
        total = daily._replace(value=users.value * daily.value, words=words)
        for field in ("demand.users", "requests_per_user_per_day"):
            draft.take(field)
        draft.facts["demand.requests_per_day"] = total
    fact = draft.take("demand.concurrent_users")
    if fact is None:
        return
    users = draft.take("demand.users")
    if users is not None:  # 60 of them at once
        draft.read_as("users", users.value, users.words)
    if "demand.requests_per_user_per_h" in draft.facts:
        draft.facts["demand.users"] = fact
        draft.facts["demand.active_frac"] = fact._replace(value=1.0)
    else:
        draft.facts["demand.concurrent_requests"] = fact
        draft.facts["people"] = fact


def _users_and_rates(draft: Draft) -> None:
    """Users and a rate both: requests of each of them, or those of all."""
    _of_each_user(draft)
    _stated_rate(draft)
    _of_conversations(draft)
    _prompts_beside_a_rate(draft)
    _speed_of_one(draft)


def _of_conversations(draft: Draft) -> None:
    """Conversations of so many turns are as many requests each."""
    turns = draft.facts.get("request.turns")
    for field in ("rate.request", "demand.requests_per_user_per_h", "requests_per_user_per_day"):
        rate = draft.facts.get(field)
        if turns is None or rate is None or not _CONVERSATIONS.search(rate.words):
            continue
        is_of_user = field != "rate.request"
        each = rate.value * turns.value if is_of_user else rate.value.times(turns.value)
        draft.facts[field] = rate._replace(value=each, words=f"{rate.words}, {turns.words}")


def _prompts_beside_a_rate(draft: Draft) -> None:
    """8k prompts beside a rate are prompts of 8k tokens."""
    prompts, rate = draft.facts.get("amount.request"), draft.facts.get("rate.request")
    is_length = prompts is not None and rate is not None and prompts.words.endswith("k prompts")
    if prompts is not None and is_length and "request.input_tokens" not in draft.facts:
        draft.facts["request.input_tokens"] = draft.facts.pop("amount.request")


def _speed_of_one(draft: Draft) -> None:
    """Tokens per second beside one user are the speed of each response."""
    names = ("demand.users", "demand.concurrent_requests", "demand.concurrent_users")
    is_one = any(draft.value(name) == 1 for name in names)
    tokens = draft.take("rate.token") if is_one else None
    if tokens is not None:
        limit = round(1e3 / tokens.value.per_s, 6)
        draft.facts.setdefault("slo.tpot_p95_ms", tokens._replace(value=limit))


def _of_each_user(draft: Draft) -> None:
    """Fewer requests an hour or a day than there are users: those of each."""
    users, rate = draft.facts.get("demand.users"), draft.facts.get("rate.request")
    if users is None or rate is None or rate.value.period_s < HOUR:
        return
    is_daily = rate.value.period_s >= DAY
    field = "requests_per_user_per_day" if is_daily else "demand.requests_per_user_per_h"
    of_each = round(rate.value.per_s * (DAY if is_daily else HOUR), 9)
    if of_each < users.value:
        draft.take("rate.request")
        draft.facts[field] = rate._replace(value=of_each)
        what = "requests per day" if is_daily else "requests per hour"
        why = "fewer than there are users: taken as those of each"
        draft.note(what, f"{of_each:g} of each user", why, '"… requests in total"')


def _stated_rate(draft: Draft) -> None:
    """Beside a peak rate that is stated, users are those who make it."""
    users, rate = draft.facts.get("demand.users"), draft.facts.get("rate.request")
    if users is not None and rate is not None and rate.value.period_s < DAY:
        draft.take("demand.users")
        why = "the stated rate is that of all of them"
        draft.note("users", f"{users.value:,.0f}", why, "leave the rate out")


def tokens_of_one(draft: Draft, kind: str) -> None:
    """Tokens that are counted beside users are those of one request; those of a run are read."""
    if kind in ("online_inference", "batch_inference"):
        length = draft.take("training.sequence_tokens")
        if length is not None:
            draft.facts.setdefault("request.input_tokens", length)
        _written_of_one(draft)
    if kind == "online_inference":
        for unit, key in (("written", "output_tokens"), ("token", "input_tokens")):
            fact = draft.facts.get(f"amount.{unit}")
            if fact is not None and fact.value < LONGEST and f"request.{key}" not in draft.facts:
                draft.facts[f"request.{key}"] = draft.facts.pop(f"amount.{unit}")
    elif kind != "batch_inference" and "amount.written" in draft.facts:
        draft.facts.setdefault("amount.token", draft.facts.pop("amount.written"))


def _written_of_one(draft: Draft) -> None:
    """Fewer tokens to write than there are documents, or beside a rate, are those of each."""
    written, docs = draft.facts.get("amount.written"), draft.value("amount.doc")
    is_rated = any(name.startswith("rate.") for name in draft.facts)
    if written is not None and (
        written.value < (docs or 0) or (is_rated and written.value < LONGEST)
    ):
        draft.facts.setdefault("request.output_tokens", draft.facts.pop("amount.written"))


def put_request(draft: Draft, at: KeyPath, use: str, why: str, most: int | None = None) -> None:
    """The shape of one request: as stated, else as usual."""
    usual, shape = USES[use], (*at, "request")
    if "request.input_tokens" in draft.facts:
        draft.move("context", (*at, "max_context_tokens"))
    draft.move("context", (*shape, "input_tokens"))
    draft.move("think", (*shape, "think_time_s"))
    if use == "video":
        draft.move("request.audio_s", (*shape, "frames"), VIDEO_FPS)
    if use == "reranking" and draft.tree["workloads"][at[1]]["kind"] == "online_inference":
        passages_of_queries(draft)
        put_passages(draft, at)
    draft.move_keys(at, ("request.",))
    n_input, why = _prompt(draft, at, use, why)
    if most is not None and n_input + usual.output_tokens > most:
        room = most - usual.output_tokens
        _in_pieces(draft, n_input / room)
        n_input, why = room, f"as much as a context of {most:,} tokens leaves"
    draft.assume((*shape, "input_tokens"), n_input, "prompt length (tokens)", why)
    _shared_prefix(draft, shape)
    if use == "recommender":
        draft.move("docs_per_query", (*shape, "texts"))
    is_single = use == "recommender" and {"rate.doc", "amount.doc"} & {*draft.facts}  # items
    for key, value in () if is_single else usual.keys.items():
        draft.assume((*shape, key), value, key.replace("_", " "), why)
    output, why = _output(draft.request(at), use, why)
    draft.assume((*shape, "output_tokens"), output, "output length (tokens)", why)
    if usual.prefix_hit_frac:
        hit = usual.prefix_hit_frac
        draft.assume((*shape, "prefix_hit_frac"), hit, "prefix cache hit rate", why)


def _output(request: Mapping[str, Any], use: str, why: str) -> tuple[int, str]:
    """The usual response; that of speech or of a text to translate is as long as they are."""
    if use == "transcription":
        n = round(TOKENS_PER_AUDIO_S * float(request["audio_s"]))
        return n, "150 words a minute of speech, 1.3 tokens a word"
    if use == "translation":
        return round(float(request["input_tokens"])), "a translation is as long as its text"
    return USES[use].output_tokens, why


def _in_pieces(draft: Draft, n: float) -> None:
    """Documents of a noun that do not fit a context are read in pieces."""
    counted = draft.facts.get("amount.doc")
    if counted is not None and _noun(counted.words):
        draft.facts["amount.doc"] = counted._replace(value=ceil(counted.value * n))
        draft.note("pieces of a document", f"{n:.3g}", "none is longer than the context", "--model")


def _noun(words: str) -> str:
    return next((noun for noun in NOUNS if re.search(rf"\b{noun}\b", words, re.I)), "")


def _shared_prefix(draft: Draft, shape: KeyPath) -> None:
    """Tokens that all prompts begin with are in the prefix cache."""
    shared = draft.take("shared_tokens")
    if shared is not None:
        n_input = float(draft.request(shape[:2])["input_tokens"])
        hit = round(min(1.0, shared.value / max(n_input, 1.0)), 4)
        draft.put((*shape, "prefix_hit_frac"), hit, shared.words)


def _prompt(draft: Draft, at: KeyPath, use: str, why: str) -> tuple[int, str]:
    """The usual prompt, or that of an image of this size; adapters have a rank."""
    observed = draft.tree["workloads"][at[1]].get("request", {})
    read = draft.take("in_out_ratio")
    if read is not None:
        n_output = float(observed.get("output_tokens", USES[use].output_tokens))
        n_input = max(1, round(read.value * n_output))
        for field in {"rate.token", "amount.token"} & set(draft.facts):  # both, together
            both = draft.facts[field]
            share = read.value / (1 + read.value)
            part = both.value.times(share) if field == "rate.token" else both.value * share
            draft.facts[field] = both._replace(value=part)
        draft.put((*at, "request", "input_tokens"), n_input, read.words)
    if "lora_adapters" in observed:
        rank_why = "usual of adapters that are served; memory and reads grow with it"
        draft.assume((*at, "request", "lora_rank"), 16, "LoRA rank", rank_why)
    counted = draft.facts.get("amount.doc") or draft.facts.get("rate.doc")
    noun = _noun(counted.words) if counted else ""
    if noun and use in OF_NOUNS:
        return round(NOUNS[noun]), f"usual of {noun}"
    if use not in ("captioning", "ocr") or "image_width_px" not in observed:
        return USES[use].input_tokens, why
    across, down = (ceil(observed[f"image_{side}_px"] / TOKEN_PX) for side in ("width", "height"))
    why = f"an image is a token for every {TOKEN_PX} x {TOKEN_PX} px, and 100 of text"
    return across * down + 100, why


def put_demand(draft: Draft, at: KeyPath, use: str) -> None:
    """The load of an online service."""
    demand: KeyPath = (*at, "demand")
    for unit in pieces_of(draft, at):
        rate = draft.take(f"rate.{unit}")
        if rate is None:
            continue
        per_s = rate.value.per_s * piece_of(draft, at, unit)
        is_daily = rate.value.period_s >= DAY
        key = "requests_per_day" if is_daily else "requests_per_s"
        draft.put((*demand, key), round(per_s * (DAY if is_daily else 1), 9), rate.words)
    _tokens(draft, at)
    _spoken(draft, at)
    _live(draft, at)
    if "demand.concurrent_requests" in draft.facts:
        draft.take("demand.peak_to_mean")  # so many are in flight at all hours
    draft.move_keys(at, ("demand.",))
    if draft.take("people") and draft.has((*demand, "concurrent_requests")):
        path = (*at, "request", "think_time_s")
        draft.assume(path, THINK_S, "think time (s)", THINK_WHY)
    _asking(draft, demand, use)
    _hours(draft, demand)
    if not any(draft.has((*demand, key)) for key in LOADS):
        _no_load(draft, demand)


def _spoken(draft: Draft, at: KeyPath) -> None:
    """Calls at once of a voice agent are people who speak and listen between their requests."""
    if draft.take("voice") and "demand.concurrent_requests" in draft.facts:
        path = (*at, "request", "think_time_s")
        draft.take("people")
        draft.assume(path, SPEECH_S, "time between turns (s)", SPEECH_WHY)


def _no_load(draft: Draft, demand: KeyPath) -> None:
    """Whether hardware is enough, asked without a load: for one request at a time."""
    why = "no load was named"
    if draft.value("question") == "enough":
        draft.assume((*demand, "concurrent_requests"), 1, "concurrent requests", why)
        return
    draft.assume((*demand, "requests_per_s"), REQUESTS_PER_S, "peak rate (requests/s)", why)


def _tokens(draft: Draft, at: KeyPath) -> None:
    """A load in tokens: by the second those of outputs, by the day those of so many requests."""
    demand: KeyPath = (*at, "demand")
    written, tokens = draft.take("rate.written"), draft.take("rate.token")
    if written is not None:
        per_day = written.value.per_s * DAY * piece_of(draft, at, "written")
        draft.put((*demand, "requests_per_day"), round(per_day, 3), written.words)
    if tokens is not None:
        draft.put((*demand, "output_tokens_per_s"), tokens.value.per_s, tokens.words)
        if "out" not in tokens.words and "gen" not in tokens.words:
            why = "tokens per second of a service are taken as output tokens"
            draft.note("tokens per second", "output", why, '"… output tokens/s"')


def _asking(draft: Draft, demand: KeyPath, use: str) -> None:
    """How many of the users are active at the peak, and how often those ask."""
    if draft.has((*demand, "users")):
        usual = USES[use].asking
        why = f"{usual.why}; demand is proportional to it"
        share, each = usual.active_frac, usual.requests_per_user_per_h
        if "requests_per_user_per_h" in draft.tree["workloads"][demand[1]]["demand"]:
            share, why = (
                1.0,
                "it was stated how often each of them asks; a share is e.g. 20% active",
            )
        draft.assume((*demand, "active_frac"), share, "share of users active at the peak", why)
        path = (*demand, "requests_per_user_per_h")
        draft.assume(path, each, "requests per hour of one active user", why)


def _live(draft: Draft, at: KeyPath) -> None:
    """Streams of live speech: each makes a recording in the time that it lasts."""
    audio_s = draft.tree["workloads"][at[1]].get("request", {}).get("audio_s")
    streams = draft.take("demand.concurrent_requests") if audio_s else None
    if streams is not None:
        per_s = round(streams.value / float(audio_s), 9)
        draft.put((*at, "demand", "requests_per_s"), per_s, streams.words)


def _hours(draft: Draft, demand: KeyPath) -> None:
    """A load of certain hours, or one by day and another at night."""
    hours, night = draft.take("hours"), draft.take("night_frac")
    if hours is None and night is None:
        return
    named: Hours = hours.value if hours else DAY_HOURS
    quiet, words = (
        (night.value, night.words) if night else (QUIET_FRAC, hours.words if hours else "")
    )
    profile = [1.0 if named.holds(hour) else quiet for hour in range(24)]
    draft.put((*demand, "hourly_profile"), profile, words)
    why = "outside the hours that are named a tenth of the peak is left"
    why = "no other hours were named for day and night" if night else why
    change = "--set workloads[0].demand.hourly_profile=…"
    draft.note("hours of the day", f"{named.start}:00 to {named.end}:00", why, change)
