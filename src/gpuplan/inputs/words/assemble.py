"""Facts of a description → the keys of a scenario: which kind of work, how much, on what terms."""

import re
from collections.abc import Sequence

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.words.batches import PIECES, pieces_of, put_batch
from gpuplan.inputs.words.conditions import put_slo, put_terms
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
from gpuplan.inputs.words.service import (
    put_demand,
    put_request,
    tokens_of_one,
    who_asks,
)
from gpuplan.inputs.words.stages import (
    Documents,
    documents_of,
    image_tower,
    put_speech,
    put_stage,
    put_voice,
)
from gpuplan.inputs.words.tasks import USES
from gpuplan.units import DAY

OF_WORK = ("demand.", "request.", "slo.", "layout.", "precision", "kv_precision", "max_context")
KINDS = (
    "reinforcement",
    "distillation",
    "finetuning",
    "pretraining",
    "training",
    "batch",
    "online",
    "process",
)  # first wins
OF_DOCUMENTS = ("ocr", "summarization", "translation", "classification", "extraction")
OF_VIDEO = ("wan", "video", "ltx", "mochi")  # parts of the names of models that make it
SEEN = {"image": "captioning"}  # by a model that writes
BY_MODEL = {
    "speech": "transcription",
    "diffusion": "images",
    "encoder": "embeddings",
    "vision": "vision",
    "recommender": "recommender",
}
PEAK_UTILIZATION_FRAC = 0.7
_CODER = re.compile(r"code|devstral", re.IGNORECASE)
_PROGRAMMERS = re.compile(r"engineer|dev|programmer|coder", re.IGNORECASE)
LONG_S = 28 * DAY  # what a service is due in is how long it runs
FEW_PIECES = 1000  # fewer are parts of a request, not a job beside the service


def assemble(draft: Draft, models: tuple[Named, ...]) -> None:
    """The workloads and terms that the facts describe."""
    who_asks(draft)
    _converted(draft)
    _search(draft)
    stated = draft.take("kind")
    kind = _kind(draft, models, stated.value if stated else ())
    is_mixed = kind in DEADLINE_S and _has_users(draft)
    tokens_of_one(draft, kind)
    if kind == "generic":
        _generic(draft)
    elif kind == "reinforcement":
        put_reinforcement(draft, models)
    elif kind == "distillation":
        _distillation(draft, models)
    elif is_mixed:
        _service_and_run(draft, kind, parted(models, stated))
    elif kind in DEADLINE_S:
        draft.take("use")
        draft.tree["workloads"] = [{"name": "run", "kind": kind}]
        put_run(draft, ("workloads", 0), kind, models)
        draft.move_keys(("workloads", 0), ("layout.", "precision"))
    else:
        _services(draft, kind, models)
    _left_over(draft)
    jobs = (*DEADLINE_S, "reinforcement", "distillation", "batch_inference")
    put_terms(draft, is_job=not is_mixed and kind in jobs)


def _converted(draft: Draft) -> None:
    """Amounts in words or bytes of text were read as tokens; of two precisions one is planned."""
    other, first = draft.take("other_precision"), draft.value("precision")
    if other is not None:
        why = f"one plan has one; for the comparison plan again with --precision {other.value}"
        draft.note("precision", f"{first}, of {first} and {other.value}", why, "--precision")
    noun = draft.take("noun_of_users")
    if noun is not None:
        draft.note(noun.value, "users", "whom a model serves", '"… requests a day"')
    for field in [
        name
        for name in draft.facts
        if name.endswith("_per_token") or name.startswith("tokens_per_")
    ]:
        fact = draft.facts.pop(field)
        what = field.replace("_", " ")
        draft.note(what, f"{fact.value:.3g}", "usual of English text", '"… tokens"')


def _distillation(draft: Draft, models: tuple[Named, ...]) -> None:
    """A teacher writes what a student is trained on, each in half of the time."""
    draft.tree["workloads"] = [{}, {"name": "run", "kind": "finetuning"}]
    written = {name: fact for name, fact in draft.facts.items() if name.startswith("amount.")}
    deadline = draft.facts.get("deadline_s")
    if deadline is not None:
        deadline = deadline._replace(value=deadline.value / 2)
        draft.facts["deadline_s"] = deadline
    put_run(draft, ("workloads", 1), "finetuning", models[1:])
    draft.facts.update(written)
    if "amount.token" in written:
        draft.facts["amount.written"] = draft.facts.pop("amount.token")
    if deadline is not None:
        draft.facts["deadline_s"] = deadline
    why = "the first model writes, the second learns from it; logits are not stored"
    draft.note("distillation", "half of the time each", why, "a scenario file")
    _services(draft, "batch_inference", models[:1])


def _has_users(draft: Draft) -> bool:
    """Whether somebody waits for responses, beside what is trained."""
    return _is_requested(draft) or any(field.startswith("slo.") for field in draft.facts)


def _is_requested(draft: Draft) -> bool:
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
    due = draft.facts.get("deadline_s")
    if due is not None and due.value >= LONG_S:  # a service of six months
        draft.facts.setdefault("span_s", draft.facts.pop("deadline_s"))
    for field in ("evening", "searched", "question", "no_slo", "voice"):
        draft.take(field)
    for field in ("full", "nightly", "schedule"):
        fact = draft.take(field)
        if fact is not None:
            why = "it concerns runs alone, and is ignored"
            draft.note("words not understood", repr(fact.words), why, "reword it")


def _search(draft: Draft) -> None:
    """Search is retrieval for a response, unless its other parts are named."""
    stated = draft.facts.get("use")
    if stated is not None and "search" in stated.value:
        others = tuple(use for use in stated.value if use != "search")
        draft.facts["use"] = stated._replace(value=others or ("rag",))


def _kind(draft: Draft, models: tuple[Named, ...], stated: Sequence[str]) -> str:
    """The kind of workload that the words amount to."""
    given_text = next((kind for kind in KINDS if kind in stated), "")
    if given_text == "reinforcement" or (given_text == "distillation" and len(models) > 1):
        return given_text
    if "method" in draft.facts or given_text in ("finetuning", "distillation"):
        return "finetuning"
    if given_text in ("pretraining", "training"):
        return "pretraining"
    is_requested = _is_requested(draft)
    counted = (*PIECES, "token", "written", "sample")
    amounts = [unit for unit in counted if f"amount.{unit}" in draft.facts]
    is_waited_for = given_text != "batch" and any(name.startswith("slo.") for name in draft.facts)
    is_batch = not is_waited_for and (
        bool(amounts) or given_text == "batch" or (given_text != "online" and _is_stream(draft))
    )
    if is_batch and not is_requested:
        return "batch_inference"
    is_load = any(field.startswith(("rate.", "demand.", "slo.")) for field in draft.facts)
    if not models and "use" not in draft.facts and "owned" in draft.facts and not is_load:
        return "generic"
    return "online_inference"


def _is_stream(draft: Draft) -> bool:
    """Pieces counted by the day or longer, for which nobody is said to wait."""
    is_talk = "chat" in (draft.value("use") or ())  # tickets that a bot answers
    if is_talk or any(field.startswith("slo.") for field in draft.facts):
        return False
    units = ("doc", "image", "audio_s", "token", "written")
    rates = [draft.value(f"rate.{unit}") for unit in units]
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
        by_model = _use_of(model)
        return by_model, f"usual for {by_model}"
    if named is not None and model is not None and named in ("video", "images", "vision"):
        named = "captioning"
    if named is not None and (model is None or named not in BY_MODEL.values()):
        return named, f"usual for {named}"
    if named == "embeddings":
        return named, "usual for embeddings"
    counted = {
        name.partition(".")[2] for name in draft.facts if name.startswith(("rate", "amount"))
    }
    if "request.image_width_px" in draft.facts:
        counted.add("image")
    units = {"image": "images", "audio_s": "transcription"} if model is None else SEEN
    use = next((use for unit, use in units.items() if unit in counted), "chat")
    users = draft.facts.get("demand.users") or draft.facts.get("people")
    is_coder = model is not None and _CODER.search(model.name)
    if use == "chat" and not stated and is_coder and users and _PROGRAMMERS.search(users.words):
        return "agents", "usual for coding assistance, as a model of code serves who writes it"
    return use, f"usual for {use}" + (", as no use case was named" if use == "chat" else "")


def _use_of(model: NamedModel) -> str:
    """What a model that is no decoder is for."""
    if model.is_reranker:
        return "reranking"
    by_model = BY_MODEL[model.kind]
    is_video = any(part in model.name.lower() for part in OF_VIDEO)
    return "video" if by_model == "images" and is_video else by_model


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
    is_voice = use == "speech" and any(named.model.kind == "speech" for named in ordered)
    if use == "speech" and not is_voice:
        put_speech(draft, first)
        return
    use, why = _refined(draft, use, why, is_voice=is_voice)
    at: KeyPath = ("workloads", 0)
    draft.tree["workloads"][0] |= {"name": use, "kind": kind}
    put_model(draft, at, first, USES[use].model, why)
    put_request(draft, at, use, why, first.model.max_context_tokens if first else None)
    if kind == "batch_inference":
        put_batch(draft, at)
    else:
        if beside is not None:
            _documents_beside(draft, stated.value if stated else (), beside)
        put_demand(draft, at, use)
        put_slo(draft, at, use, why)
    draft.move_keys(at, OF_WORK)
    _index(draft, use)
    for named in ordered[1:]:
        use, why = _use(draft, named.model)
        put_stage(draft, named, kind, use=use, why=why)
    if is_voice:
        put_voice(draft)


def _refined(draft: Draft, use: str, why: str, *, is_voice: bool) -> tuple[str, str]:
    """The use case of the model that writes, where others hear, see or speak beside it."""
    if is_voice:
        calls = draft.facts.get("demand.concurrent_requests")
        if calls is not None:
            draft.facts["people"] = calls
        return "chat", "usual for chat"
    if use in ("captioning", "chat") and _frames(draft):
        return "captioning", "usual for a model that sees and writes"
    return use, why


def _frames(draft: Draft) -> bool:
    """Hours of video that a model looks at are images, one a second; False: there are none."""
    for field in ("rate", "amount"):
        video = draft.facts.get(f"{field}.audio_s")
        if video is not None and re.search("video|footage", video.words, re.IGNORECASE):
            every = draft.take("frame_s")
            part = 1 / every.value if every else 1.0
            n = video.value.times(part) if field == "rate" else video.value * part
            draft.facts.pop(f"{field}.audio_s")
            draft.facts[f"{field}.image"] = video._replace(value=n)
            why = "as stated" if every else "a frame a second tells most scenes"
            draft.note("frames per second of video", f"{part:g}", why, '"… images/s"')
            return True
    return False


def _in_order(
    draft: Draft, kind: str, models: tuple[Named, ...]
) -> tuple[Documents | None, list[Named]]:
    """Documents that are embedded beside a service, and its models, the one that writes first."""
    has_documents = kind == "online_inference" and _has_documents(draft, draft.value("use") or ())
    beside = documents_of(draft, models) if has_documents else None
    _uses_of_writer(draft, models)
    rest = (named for named in models if beside is None or named is not beside.model)
    return beside, sorted(rest, key=lambda named: named.model.kind in BY_MODEL)


def _uses_of_writer(draft: Draft, models: tuple[Named, ...]) -> None:
    """Embedding and reranking are the work of such a model, where one is named beside another."""
    theirs = {_use_of(named.model) for named in models if named.model.kind in BY_MODEL}
    stated = draft.facts.get("use")
    if stated is not None and any(named.model.kind not in BY_MODEL for named in models):
        others = tuple(use for use in stated.value if use not in theirs)
        draft.facts["use"] = stated._replace(value=others or stated.value)


def _has_documents(draft: Draft, uses: Sequence[str]) -> bool:
    """Whether a service with users has documents to process beside them."""
    amounts = [unit for unit in PIECES if f"amount.{unit}" in draft.facts]
    n_most = max((draft.value(f"amount.{unit}") for unit in amounts), default=FEW_PIECES)
    is_few = n_most < FEW_PIECES and not set(uses) & {*OF_DOCUMENTS, "embeddings"}
    is_searched = is_few or "rag" in uses or "reranking" in uses or "searched" in draft.facts
    return _is_requested(draft) and not is_searched and bool(amounts or _is_stream(draft))


def _documents_beside(draft: Draft, uses: Sequence[str], beside: Documents) -> None:
    """Documents beside a service with users: a workload of its own, of its model or another."""
    works = draft.tree["workloads"]
    works.append(
        {"name": "documents", "kind": "batch_inference", "model": works[0]["model"], "request": {}}
    )
    at: KeyPath = ("workloads", 1)
    use = next((use for use in (*OF_DOCUMENTS, "embeddings") if use in uses), "")
    why = f"usual for {use or 'summarization, as their use was not named'}"
    usual = USES[use or "summarization"]
    if beside.model is not None:
        put_model(draft, at, beside.model, "", "")
    if beside.tokens is not None:
        path = (*at, "request", "input_tokens")
        draft.put(path, beside.tokens.value, beside.tokens.words)
    draft.assume((*at, "request", "input_tokens"), usual.input_tokens, "documents: tokens", why)
    draft.assume((*at, "request", "output_tokens"), usual.output_tokens, "documents: output", why)
    put_batch(draft, at, [unit for unit in pieces_of(draft, at) if unit != "request"])


def _index(draft: Draft, use: str) -> None:
    """Documents that are searched, not processed with every request."""
    is_searched = use == "rag" or draft.take("searched") is not None
    corpus = draft.take("amount.doc") if is_searched else None
    if corpus is not None:
        draft.read_as("documents searched", corpus.value, corpus.words)
        why = "embedding them is a job of its own"
        change = f'"embed {corpus.value:g} documents in a day"'
        draft.note("index of documents", "not planned", why, change)
