"""Facts of a description → the keys of a scenario: which kind of work, how much, on what terms."""

from collections.abc import Sequence

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.words.batches import PIECES, REQUESTS_PER_S, piece_of, put_batch
from gpuplan.inputs.words.conditions import put_terms
from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.lexicon import NamedModel
from gpuplan.inputs.words.runs import (
    DEADLINE_S,
    Parts,
    parted,
    put_model,
    put_reinforcement,
    put_run,
)
from gpuplan.inputs.words.scan import Named
from gpuplan.inputs.words.stages import (
    Documents,
    documents_of,
    image_tower,
    passages_of_queries,
    put_passages,
    put_speech,
    put_stage,
)
from gpuplan.inputs.words.tasks import THINK_S, THINK_WHY, USES, patience
from gpuplan.units import DAY

LOADS = (
    "users",
    "requests_per_s",
    "requests_per_day",
    "output_tokens_per_s",
    "concurrent_requests",
)
OF_WORK = ("demand.", "request.", "slo.", "layout.", "precision", "kv_precision", "max_context")
KINDS = (
    "reinforcement",
    "finetuning",
    "pretraining",
    "training",
    "batch",
    "online",
    "process",
)  # first wins
OF_DOCUMENTS = ("ocr", "summarization", "translation", "classification", "extraction")
BY_MODEL = {
    "speech": "transcription",
    "diffusion": "images",
    "encoder": "embeddings",
    "vision": "vision",
}
TOKENS_PER_AUDIO_S = 3.3  # 150 words a minute, 1.3 tokens a word
PEAK_UTILIZATION_FRAC = 0.7
DAY_HOURS = (8, 20)
CPU_PATIENCE = 3.0  # 150 ms a token: some 300 words a minute
QUIET_FRAC = 0.1  # of the peak, outside the hours that are named


def assemble(draft: Draft, models: tuple[Named, ...]) -> None:
    """The workloads and terms that the facts describe."""
    _people_at_once(draft)
    stated = draft.take("kind")
    kind = _kind(draft, models, stated.value if stated else ())
    is_mixed = kind in DEADLINE_S and _has_users(draft)
    if kind != "batch_inference" and "amount.written" in draft.facts:
        draft.facts.setdefault("amount.token", draft.facts.pop("amount.written"))
    if kind == "generic":
        _generic(draft)
    elif kind == "reinforcement":
        put_reinforcement(draft, models)
    elif is_mixed:
        _service_and_run(draft, kind, parted(models, stated))
    elif kind in DEADLINE_S:
        draft.take("use")
        draft.tree["workloads"] = [{"name": "run", "kind": kind}]
        put_run(draft, ("workloads", 0), kind, models)
        _moved(draft, ("workloads", 0), ("layout.", "precision"))
    else:
        _services(draft, kind, models)
    _left_over(draft)
    jobs = (*DEADLINE_S, "reinforcement", "batch_inference")
    put_terms(draft, is_job=not is_mixed and kind in jobs)


def _has_users(draft: Draft) -> bool:
    """Whether somebody waits for responses, beside what is trained."""
    return _is_asked(draft) or any(field.startswith("slo.") for field in draft.facts)


def _is_asked(draft: Draft) -> bool:
    """Whether users or clients ask, rather than documents come in."""
    rate = draft.value("rate.request")
    is_rated = rate is not None and rate.period_s < DAY and "amount.request" not in draft.facts
    return is_rated or any(field.startswith("demand.") for field in draft.facts)


def _service_and_run(draft: Draft, kind: str, models: Parts) -> None:
    """A service with users, and a run beside it."""
    draft.tree["workloads"] = [{}, {"name": "run", "kind": kind}]
    put_run(draft, ("workloads", 1), kind, models.run)
    _services(draft, "online_inference", models.service)


def _left_over(draft: Draft) -> None:
    """Words that mean something of runs alone: elsewhere they are named and left out."""
    draft.take("evening")
    for field in ("full", "nightly"):
        fact = draft.take(field)
        if fact is not None:
            why = "it says something of training alone, and is left out"
            draft.note("words not understood", repr(fact.words), why, "reword it")


def _people_at_once(draft: Draft) -> None:
    """Concurrent users ask, read and ask again, unless it is said how often they ask."""
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
    if "demand.requests_per_user_per_h" in draft.facts:
        draft.facts["demand.users"] = fact
        draft.facts["demand.active_frac"] = fact._replace(value=1.0)
    else:
        draft.facts["demand.concurrent_requests"] = fact
        draft.facts["people"] = fact


def _kind(draft: Draft, models: tuple[Named, ...], stated: Sequence[str]) -> str:
    """The kind of workload that the words amount to."""
    said = next((kind for kind in KINDS if kind in stated), "")
    if said == "reinforcement":
        return said
    if "method" in draft.facts or said == "finetuning":
        return "finetuning"
    if said in ("pretraining", "training"):
        return "pretraining"
    is_asked = _is_asked(draft)
    counted = (*PIECES, "token", "written", "sample")
    amounts = [unit for unit in counted if f"amount.{unit}" in draft.facts]
    is_batch = bool(amounts) or said == "batch" or (said != "online" and _is_stream(draft))
    if is_batch and not is_asked:
        return "batch_inference"
    is_load = any(field.startswith(("rate.", "demand.", "slo.")) for field in draft.facts)
    if not models and "use" not in draft.facts and "owned" in draft.facts and not is_load:
        return "generic"
    return "online_inference"


def _is_stream(draft: Draft) -> bool:
    """Pieces counted by the day or longer, for which nobody is said to wait."""
    if any(field.startswith("slo.") for field in draft.facts):
        return False
    rates = [draft.value(f"rate.{unit}") for unit in ("doc", "image", "audio_s", "token")]
    return any(rate is not None and rate.period_s >= DAY for rate in rates)


def _use(draft: Draft, model: NamedModel | None) -> tuple[str, str]:
    """The use case, and why it is that one."""
    stated = draft.value("use") or ()
    if (
        _has_documents(draft, stated) and len(stated) > 1
    ):  # chat with users, and documents to summarize
        stated = [use for use in stated if use not in OF_DOCUMENTS]
    if "speech" in stated and (model is None or model.kind not in BY_MODEL):
        return "speech", "usual for speech"
    named = next((use for use in USES if use in stated), None)
    if model is not None and model.kind in BY_MODEL:
        by_model = BY_MODEL[model.kind]
        if model.is_reranker:
            by_model = "reranking"
        if by_model == "images" and "wan" in model.name.lower():
            by_model = "video"
        return by_model, f"usual for {by_model}"
    if named is not None and (model is None or named not in BY_MODEL.values()):
        return named, f"usual for {named}"
    if named == "embeddings":
        return named, "usual for embeddings"
    units = {"image": "images", "audio_s": "transcription"}
    for unit, use in units.items():
        if model is None and any(f"{part}.{unit}" in draft.facts for part in ("rate", "amount")):
            return use, f"usual for {use}"
    return "chat", "usual for chat, as no use case was named"


def _generic(draft: Draft) -> None:
    """Hardware whose work is not described: as busy as such fleets are."""
    draft.tree["workloads"] = [{"name": "all work", "kind": "generic"}]
    total = sum(nodes * per_node for _, nodes, per_node in draft.value("owned"))
    busy = draft.take("policy.max_utilization_frac")
    at: KeyPath = ("workloads", 0, "work", "accelerators")
    if busy is not None:
        draft.put(at, round(total * busy.value, 3), busy.words)
        return
    why = f"{PEAK_UTILIZATION_FRAC:.0%} of what is owned is busy at the peak, as no load was stated"
    draft.assume(at, round(total * PEAK_UTILIZATION_FRAC, 3), "busy accelerators", why)


def _services(draft: Draft, kind: str, models: tuple[Named, ...]) -> None:
    """One workload per model; of several, the one that writes is first and sets the pace."""
    beside, ordered = _in_order(draft, kind, models)
    draft.tree["workloads"][:1] = [{}]
    first = image_tower(draft, ordered[0]) if ordered else None
    use, why = _use(draft, first.model if first else None)
    stated = draft.take("use")
    if stated is not None:
        draft.read_as("use case", use, stated.words)
    if use == "speech":
        put_speech(draft, first)
        return
    draft.tree["workloads"][0] |= {"name": use, "kind": kind}
    at: KeyPath = ("workloads", 0)
    put_model(draft, at, first, USES[use].model, why)
    _request(draft, at, use, why, first.model.max_context_tokens if first else None)
    if kind == "batch_inference":
        put_batch(draft, at)
    else:
        if beside is not None:
            _documents_beside(draft, stated.value if stated else (), beside)
        _demand(draft, at)
        _slo(draft, at, use, why)
    _moved(draft, at, OF_WORK)
    _index(draft, use)
    for named in ordered[1:]:
        use, why = _use(draft, named.model)
        put_stage(draft, named, kind, use=use, why=why)


def _in_order(
    draft: Draft, kind: str, models: tuple[Named, ...]
) -> tuple[Documents | None, list[Named]]:
    """Documents that are embedded beside a service, and its models, the one that writes first."""
    has_documents = kind == "online_inference" and _has_documents(draft, draft.value("use") or ())
    beside = documents_of(draft, models) if has_documents else None
    rest = (named for named in models if beside is None or named is not beside.model)
    return beside, sorted(rest, key=lambda named: named.model.kind in BY_MODEL)


def _has_documents(draft: Draft, uses: Sequence[str]) -> bool:
    """Whether a service with users has documents to process beside them."""
    amounts = [unit for unit in PIECES if f"amount.{unit}" in draft.facts]
    is_searched = "rag" in uses or "reranking" in uses
    return _is_asked(draft) and not is_searched and bool(amounts or _is_stream(draft))


def _documents_beside(draft: Draft, uses: Sequence[str], beside: Documents) -> None:
    """Documents beside a service with users: a workload of its own, of its model or another."""
    works = draft.tree["workloads"]
    works.append(
        {"name": "documents", "kind": "batch_inference", "model": works[0]["model"], "request": {}}
    )
    at: KeyPath = ("workloads", 1)
    use = next((use for use in OF_DOCUMENTS if use in uses), "")
    why = f"usual for {use or 'summarization, as their use was not named'}"
    usual = USES[use or "summarization"]
    if beside.model is not None:
        put_model(draft, at, beside.model, "", "")
    if beside.tokens is not None:
        path = (*at, "request", "input_tokens")
        draft.put(path, beside.tokens.value, beside.tokens.words)
    draft.assume((*at, "request", "input_tokens"), usual.input_tokens, "documents: tokens", why)
    draft.assume((*at, "request", "output_tokens"), usual.output_tokens, "documents: output", why)
    put_batch(draft, at, [unit for unit in PIECES if unit != "request"])


def _index(draft: Draft, use: str) -> None:
    """Documents that are searched, not processed with every request."""
    corpus = draft.take("amount.doc") if use == "rag" else None
    if corpus is not None:
        draft.read_as("documents searched", corpus.value, corpus.words)
        why = "embedding them is a job of its own"
        change = f'"embed {corpus.value:g} documents in a day"'
        draft.note("index of documents", "not planned", why, change)


def _request(draft: Draft, at: KeyPath, use: str, why: str, most: int | None = None) -> None:
    """The shape of one request: as stated, else as usual."""
    usual, shape = USES[use], (*at, "request")
    if "request.input_tokens" in draft.facts:
        draft.move("context", (*at, "max_context_tokens"))
    draft.move("context", (*shape, "input_tokens"))
    draft.move("think", (*shape, "think_time_s"))
    if use == "reranking" and draft.tree["workloads"][at[1]]["kind"] == "online_inference":
        passages_of_queries(draft)
        put_passages(draft, at)
    _moved(draft, at, ("request.",))
    n_input = usual.input_tokens
    if most is not None and n_input + usual.output_tokens > most:
        n_input, why = most - usual.output_tokens, f"as much as a context of {most:,} tokens leaves"
    draft.assume((*shape, "input_tokens"), n_input, "prompt length (tokens)", why)
    for key, value in usual.keys.items():
        draft.assume((*shape, key), value, key.replace("_", " "), why)
    output = usual.output_tokens
    if use == "transcription":
        output = round(TOKENS_PER_AUDIO_S * draft.tree["workloads"][at[1]]["request"]["audio_s"])
        why = "150 words a minute of speech, 1.3 tokens a word"
    draft.assume((*shape, "output_tokens"), output, "output length (tokens)", why)
    if usual.prefix_hit_frac:
        hit = usual.prefix_hit_frac
        draft.assume((*shape, "prefix_hit_frac"), hit, "prefix cache hit rate", why)


def _demand(draft: Draft, at: KeyPath) -> None:
    """The load of an online service."""
    demand: KeyPath = (*at, "demand")
    for unit in PIECES:
        rate = draft.take(f"rate.{unit}")
        if rate is None:
            continue
        per_s = rate.value.per_s * piece_of(draft, at, unit)
        is_daily = rate.value.period_s >= DAY
        key = "requests_per_day" if is_daily else "requests_per_s"
        draft.put((*demand, key), round(per_s * (DAY if is_daily else 1), 9), rate.words)
    tokens = draft.take("rate.token")
    if tokens is not None:
        draft.put((*demand, "output_tokens_per_s"), tokens.value.per_s, tokens.words)
        if "out" not in tokens.words and "gen" not in tokens.words:
            why = "tokens per second of a service are taken as output tokens"
            draft.note("tokens per second", "output", why, '"… output tokens/s"')
    _live(draft, at)
    _moved(draft, at, ("demand.",))
    if draft.take("people") and draft.has((*demand, "concurrent_requests")):
        path = (*at, "request", "think_time_s")
        draft.assume(path, THINK_S, "think time (s)", THINK_WHY)
    _hours(draft, demand)
    if not any(draft.has((*demand, key)) for key in LOADS):
        why = "no load was named"
        draft.assume((*demand, "requests_per_s"), REQUESTS_PER_S, "peak rate (requests/s)", why)


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
    start, end = hours.value if hours else DAY_HOURS
    quiet, words = (
        (night.value, night.words) if night else (QUIET_FRAC, hours.words if hours else "")
    )
    profile = [1.0 if start <= hour < end else quiet for hour in range(24)]
    draft.put((*demand, "hourly_profile"), profile, words)
    why = "outside the hours that are named a tenth of the peak is left"
    why = "no other hours were named for day and night" if night else why
    change = "--set workloads[0].demand.hourly_profile=…"
    draft.note("hours of the day", f"{start}:00 to {end}:00", why, change)


def _slo(draft: Draft, at: KeyPath, use: str, why: str) -> None:
    """Targets as stated; where a whole response is limited, none but that."""
    _moved(draft, at, ("slo.",))
    slo: KeyPath = (*at, "slo")
    is_whole = any(draft.has((*slo, f"e2e_{statistic}_s")) for statistic in ("p50", "p95", "p99"))
    if is_whole:
        return
    allowed = draft.value("policy.accelerators.allowed") or ("any",)
    is_cpu = all(name.lower().startswith("cpu") for name in allowed)
    if is_cpu:
        why = "usual for CPUs: as fast as people read"
    for key, limit in USES[use].slo.items():
        metric = key.split("_")[0]
        work = draft.tree["workloads"][at[1]]
        if not any(other.startswith(f"{metric}_") for other in work.get("slo", {})):
            longer, reason = patience(USES[use], key, draft.request(at))
            longer *= CPU_PATIENCE if is_cpu else 1.0
            draft.assume((*slo, key), round(limit * longer, 1), f"SLO {key}", why + reason)


def _moved(draft: Draft, at: KeyPath, prefixes: tuple[str, ...]) -> None:
    """Facts that are keys of a workload under their own names."""
    for field in [name for name in draft.facts if name.startswith(prefixes)]:
        draft.move(field, (*at, *field.split(".")))
