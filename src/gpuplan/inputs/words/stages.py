"""Facts of a description → the further models of a pipeline: retrieval, reranking."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.scenario.assumptions import ACTIVE_FRAC, REQUESTS_PER_USER_PER_H
from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.scan import Fact, Named
from gpuplan.inputs.words.tasks import USES
from gpuplan.units import HOUR, MS

WORK: KeyPath = ("workloads", 0)
USUAL_PX = 224
DOCS_PER_QUERY = 50
SPEAKER = "meta-llama/Llama-3.2-3B-Instruct"
QUERY_TOKENS = 32
FASTER = 0.5  # responses over their targets, while a further stage carries the most
NEAR = 4  # characters between an amount of documents and their length


class Documents(NamedTuple):
    """What the words say of documents beside a service."""

    model: Named | None  # None: that of the service
    tokens: Fact | None  # of each


def documents_of(draft: Draft, models: Sequence[Named]) -> Documents:
    """Models are in the order of what they do; a length behind the documents is theirs."""
    amount = draft.facts.get("amount.doc") or draft.facts.get("rate.doc")
    if amount is None:
        return Documents(None, None)
    writing = [named for named in models if named.model.kind == "decoder"]
    loads = [x for name, x in draft.facts.items() if name.startswith(("demand.", "rate.request"))]
    is_last = all(amount.start > load.start for load in loads)
    mine = writing[-1 if is_last else 0] if len(writing) > 1 else None
    uses = draft.value("use") or ()
    embedding = [named for named in models if named.model.kind == "encoder"]
    if writing and embedding and "embeddings" in uses:
        mine = embedding[0]
    tokens = draft.facts.get("request.input_tokens")
    end = amount.start + len(amount.words)
    is_theirs = tokens is not None and 0 <= tokens.start - end <= NEAR
    if is_theirs:
        draft.take("request.input_tokens")
    return Documents(mine, tokens if is_theirs else None)


def put_stage(draft: Draft, named: Named, kind: str, *, use: str, why: str) -> None:
    """A further model of a pipeline, with the rate that the first one's queries make."""
    works = draft.tree["workloads"]
    at: KeyPath = ("workloads", len(works))
    name = use if all(work["name"] != use for work in works) else f"{use} {len(works) + 1}"
    works.append({"name": name, "kind": kind})
    draft.put((*at, "model"), named.model.name, named.words)
    per_query, input_tokens = 1.0, USES[use].input_tokens
    if use == "reranking" and kind == "online_inference":
        put_passages(draft, at)
    elif use == "reranking":
        stated = draft.take("docs_per_query")
        per_query = stated.value if stated else DOCS_PER_QUERY
    if use == "embeddings":
        input_tokens = QUERY_TOKENS
        why = "a query is embedded once; documents of the index are not counted"
    draft.assume((*at, "request", "input_tokens"), input_tokens, f"{use}: tokens", why)
    draft.assume((*at, "request", "output_tokens"), USES[use].output_tokens, f"{use}: output", why)
    for key, value in USES[use].keys.items():
        draft.assume((*at, "request", key), value, f"{use}: {key}", why)
    _derived(draft, at, per_query, kind)
    if kind == "online_inference":
        for key, limit in USES[use].slo.items():
            draft.assume((*at, "slo", key), limit, f"{use}: SLO {key}", why)


def image_tower(draft: Draft, named: Named) -> Named:
    """The part of CLIP that sees, where images are counted: a vision transformer of its size."""
    size = re.search(r"clip-vit-(base|large)-patch(\d+)", named.model.name)
    has_images = any(f"{part}.image" in draft.facts for part in ("rate", "amount"))
    if size is None or not has_images:
        return named
    px = round(USUAL_PX * 16 / int(size[2]))  # as many patches of 16 pixels
    name = f"vit_{size[1]}_patch16_224"
    draft.assume(
        (*WORK, "request", "image_width_px"), px, "image width (pixels)", "as many patches"
    )
    why = "images pass its vision transformer alone: the text has no part in their embeddings"
    return named._replace(model=named.model._replace(name=name, kind="vision", why=why))


def put_speech(draft: Draft, named: Named | None) -> None:
    """Text to speech by a language model of audio tokens; so many speak at once, or so often."""
    at: KeyPath = ("workloads", 0)
    draft.tree["workloads"][:1] = [{"name": "speech", "kind": "text_to_speech"}]
    if named is None:
        why = "no such model is known; Orpheus and its like are of this size"
        draft.assume((*at, "model"), SPEAKER, "model", why)
    else:
        draft.put((*at, "model"), named.model.name, named.words)
    draft.move("request.audio_s", (*at, "audio_s"))
    draft.assume((*at, "audio_s"), 10, "audio of one request (s)", "a sentence or two")
    seconds = float(draft.tree["workloads"][0]["audio_s"])
    streams, audio = draft.take("demand.concurrent_requests"), draft.take("rate.audio_s")
    draft.take("people")
    for fact in (streams, audio):
        if fact is not None:  # each speaks all the time: a request in the time that it lasts
            n_at_once = fact.value.per_s if fact is audio else fact.value
            draft.put((*at, "demand", "requests_per_s"), round(n_at_once / seconds, 9), fact.words)
    for unit in ("request", "doc"):
        rate = draft.take(f"rate.{unit}")
        if rate is not None:
            draft.put((*at, "demand", "requests_per_s"), rate.value.per_s, rate.words)
    draft.move_keys(at, ("demand.", "precision"))
    if not draft.tree["workloads"][0].get("demand"):
        draft.assume(
            (*at, "demand", "requests_per_s"), 1, "peak rate (requests/s)", "none was named"
        )
    for field, factor in (("slo.ttft_p95_ms", 1.0), ("slo.e2e_p95_s", 1 / MS)):
        draft.move(field, (*at, "ttft_p95_ms"), factor)
    draft.assume((*at, "ttft_p95_ms"), 500, "SLO ttft_p95_ms", "usual")


def put_voice(draft: Draft) -> None:
    """Text to speech of every response of the first workload."""
    works = draft.tree["workloads"]
    at: KeyPath = ("workloads", len(works))
    works.append({"name": "speech", "kind": "text_to_speech"})
    why = "no such model is known; Orpheus and its like are of this size"
    draft.assume((*at, "model"), SPEAKER, "speech: model", why)
    draft.assume((*at, "audio_s"), 10, "speech: audio of one response (s)", "a sentence or two")
    _derived(draft, at, 1.0, "online_inference")
    draft.assume((*at, "ttft_p95_ms"), 500, "speech: SLO ttft_p95_ms", "usual")


def passages_of_queries(draft: Draft) -> None:
    """Passages beside a rate of queries are those of one query; a rate of them counts queries."""
    of_one = draft.take("amount.doc")
    if of_one is not None:
        draft.facts.setdefault("docs_per_query", of_one._replace(value=int(of_one.value)))


def put_passages(draft: Draft, at: KeyPath) -> None:
    """The passages of one query to a reranker: it is answered when all of them are scored."""
    path = (*at, "request", "texts")
    if not draft.move("docs_per_query", path):
        draft.assume(path, DOCS_PER_QUERY, "passages per query", "usual of retrieval: top 50")


def _derived(draft: Draft, at: KeyPath, per_query: float, kind: str) -> None:
    """The load of a stage from that of the first workload."""
    first, mine = draft.tree["workloads"][0], draft.tree["workloads"][at[1]]
    if kind == "batch_inference":
        scaled = {"docs", "docs_per_day"}
        mine["batch"] = {k: v * per_query if k in scaled else v for k, v in first["batch"].items()}
        return
    demand = first.get("demand", {})
    if "users" in demand:
        active = demand.get("active_frac", ACTIVE_FRAC)
        hourly = demand.get("requests_per_user_per_h", REQUESTS_PER_USER_PER_H)
        mine["demand"] = {"requests_per_s": demand["users"] * active * hourly / HOUR * per_query}
        return
    if "concurrent_requests" in demand:
        per_s = demand["concurrent_requests"] / _cycle_s(draft, first) * per_query
        mine["demand"] = {"requests_per_s": round(per_s, 9)}
        return
    scaled = {"requests_per_s", "requests_per_day"}
    mine["demand"] = {k: v * per_query if k in scaled else v for k, v in demand.items()}


def _cycle_s(draft: Draft, first: Mapping[str, Any]) -> float:
    """From request to request of a closed loop's client: it thinks, and waits half its targets."""
    slo, request = first.get("slo", {}), draft.request(("workloads", 0))
    limits = [float(limit) for key, limit in slo.items() if key.startswith("e2e")]
    tokens = {"ttft": 1.0, "tpot": float(request.get("output_tokens", 1.0))}
    parts = [tokens[k[:4]] * float(limit) * MS for k, limit in slo.items() if k[:4] in tokens]
    return float(request.get("think_time_s", 0.0)) + FASTER * (
        min(limits, default=0.0) or sum(parts)
    )
