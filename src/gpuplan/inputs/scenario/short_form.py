"""A request in one line, in: "Llama-3.3-70B, 6000 users, chat" and flags; out: a scenario's tree.

What neither the line nor a flag says is taken from the use that was named, and each such value is
an assumption that names its flag. The tree then goes the way of every scenario file.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document, set_key, show_path
from gpuplan.inputs.documents.scalars import printable, shorten

Tree = dict[str, Any]
WORK = ("workloads", 0)


class Use(NamedTuple):
    """What is usual for a kind of service; assumptions, not measurements."""

    input_tokens: int
    output_tokens: int
    slo: Mapping[str, float]
    prefix_hit_frac: float = 0.0


USES = {
    "chat": Use(2000, 300, {"ttft_p95_ms": 2000, "tpot_p95_ms": 50}),
    "rag": Use(4000, 300, {"ttft_p95_ms": 3000, "tpot_p95_ms": 50}),
    "summarization": Use(6000, 400, {"ttft_p95_ms": 5000, "tpot_p95_ms": 60}),
    "completion": Use(2000, 50, {"ttft_p95_ms": 500, "tpot_p95_ms": 50}),
    "agents": Use(30000, 500, {"ttft_p95_ms": 4000, "tpot_p95_ms": 50}, 0.9),
    "embeddings": Use(256, 0, {"e2e_p95_s": 0.2}),
    "images": Use(77, 0, {"e2e_p95_s": 20.0}),
}
USE_WORDS = {
    "chatbot": "chat", "assistant": "chat", "conversation": "chat", "search": "rag",
    "summaries": "summarization", "summarisation": "summarization", "code": "completion",
    "autocomplete": "completion", "agent": "agents", "coding agents": "agents",
    "embedding": "embeddings", "image generation": "images", "pictures": "images",
}  # fmt: skip
RUNS = {
    "fine-tune": "finetuning", "finetune": "finetuning", "fine-tuning": "finetuning",
    "finetuning": "finetuning", "full fine-tuning": "finetuning", "training": "pretraining",
    "train": "pretraining", "pretraining": "pretraining", "pretrain": "pretraining",
}  # fmt: skip
# flag → key of the scenario; the flag is what assumptions name
KEYS: dict[str, tuple[str | int, ...]] = {
    "model": (*WORK, "model"),
    "precision": (*WORK, "precision"),
    "kv_precision": (*WORK, "kv_precision"),
    "users": (*WORK, "demand", "users"),
    "active": (*WORK, "demand", "active_frac"),
    "requests_per_hour": (*WORK, "demand", "requests_per_user_per_h"),
    "rate": (*WORK, "demand", "requests_per_s"),
    "requests_per_day": (*WORK, "demand", "requests_per_day"),
    "input_tokens": (*WORK, "request", "input_tokens"),
    "output_tokens": (*WORK, "request", "output_tokens"),
    "prefix_cache_hit_rate": (*WORK, "request", "prefix_hit_frac"),
    "ttft_p95_ms": (*WORK, "slo", "ttft_p95_ms"),
    "tpot_p95_ms": (*WORK, "slo", "tpot_p95_ms"),
    "e2e_p95_s": (*WORK, "slo", "e2e_p95_s"),
    "on": ("policy", "accelerators", "allowed"),
    "cloud": ("policy", "clouds", "allowed"),
    "region": ("policy", "regions", "allowed"),
    "survive": ("policy", "survive"),
    "max_utilization": ("policy", "max_utilization_frac"),
    "budget": ("budget", "usd_per_month"),
    "growth": ("growth", "per_month_frac"),
    "power_kw": ("site", "power_kw"),
    "spot": ("policy", "spot_allowed"),
    "method": (*WORK, "training", "method"),
    "tokens": (*WORK, "training", "tokens"),
    "epochs": (*WORK, "training", "epochs"),
    "deadline_days": (*WORK, "training", "deadline_days"),
}
_NUMBER = r"\$?\s*([\d][\d,_]*\.?\d*(?:e[+-]?\d+)?)\s*([kKmM](?![a-z]))?"
_NUMBER_B = _NUMBER.replace("[kKmM]", "[kKmMbBtT]")
_UNIT = r"(?:req(?:uest)?s?|docs?|documents?|embeddings?|images?|texts?|queries)"
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_PRECISION = re.compile(r"^(?:in )?(fp4|nvfp4|mxfp4|fp8|int8|int4|w4a16|bf16|fp16|fp32)$", re.I)


def short_scenario(text: str, given: Mapping[str, Any]) -> tuple[Document, tuple[Assumption, ...]]:
    """The document of a scenario from one line and flags; flags win over the line."""
    tree, assumptions = _short_tree(text, given)
    return with_flags(Document(name="the line", data=tree), given), assumptions


def with_flags(document: Document, given: Mapping[str, Any]) -> Document:
    """The document with the keys that flags stand for; None is a flag that was not given."""
    problems = []
    for flag, value in given.items():
        if value is None:
            continue
        plain = list(value) if isinstance(value, tuple) else value
        try:
            document = document.with_value(KEYS[flag], plain, origin=option_of(flag))
        except (TypeError, IndexError) as error:
            fix = f"mend {show_path(KEYS[flag])} in {document.name} first"
            problems.append(Problem(option_of(flag), f"cannot be set: {error}", fix))
    if problems:
        raise InputError(document.name, problems)
    return document


def option_of(flag: str) -> str:
    """The flag as it is typed: --ttft-p95-ms."""
    return "--" + flag.replace("_", "-")


def _short_tree(text: str, given: Mapping[str, Any]) -> tuple[Tree, tuple[Assumption, ...]]:
    said, use_name, run = _said(text)
    said |= {flag: value for flag, value in given.items() if value is not None}
    run = run or ("finetuning" if "method" in said else None)
    problems = _missing_run(said) if run else _missing(said)
    if problems:
        raise InputError("plan", problems)
    if run:
        return _run_tree(text, said, run)
    tree: Tree = {
        "version": 1,
        "name": shorten(text.strip() or str(said["model"]), 80),
        "workloads": [{"name": use_name or "service", "kind": "online_inference"}],
    }
    for flag, value in said.items():
        set_key(tree, KEYS[flag], value)
    return tree, tuple(_fill(tree, said, use_name))


def _missing(said: Mapping[str, Any]) -> list[Problem]:
    problems = []
    if "model" not in said:
        problems.append(Problem("model", "is not named", "begin with it, or give --model"))
    if not {"users", "rate", "requests_per_day"} & set(said):
        fix = 'say e.g. "6000 users" or "5 requests/s", or give --users or --rate'
        problems.append(Problem("load", "is not said", fix))
    return problems


def _run_tree(text: str, said: Mapping[str, Any], run: str) -> tuple[Tree, tuple[Assumption, ...]]:
    """A run with an end; all weights are trained unless adapters are named."""
    name = shorten(text.strip() or str(said["model"]), 80)
    tree: Tree = {"version": 1, "name": name, "workloads": [{"name": "run", "kind": run}]}
    for flag, value in said.items():
        set_key(tree, KEYS[flag], value)
    if run != "finetuning" or "method" in said:
        return tree, ()
    set_key(tree, KEYS["method"], "full")
    why = "adapters are a choice of quality: never made unasked"
    note = Assumption(what="method of fine-tuning", value="full", why=why, change='the word "lora"')
    return tree, (note,)


def _missing_run(said: Mapping[str, Any]) -> list[Problem]:
    wanted = {
        "model": ("is not named", "begin with it, or give --model"),
        "tokens": ("are not said", 'say e.g. "50M tokens"'),
        "deadline_days": ("is not said", 'say e.g. "in 3 days"'),
    }
    return [Problem(flag, *what) for flag, what in wanted.items() if flag not in said]


def _said(text: str) -> tuple[dict[str, Any], str | None, str | None]:
    """What flags the line stands for, its use, and the kind of its run."""
    said: dict[str, Any] = {}
    use: str | None = None
    run: str | None = None
    problems: list[Problem] = []
    for part in filter(None, (piece.strip() for piece in _parts(text))):
        word = USE_WORDS.get(part.lower(), part.lower())
        found = _figure(part)
        if use is None and "images" in word.split("/")[0].split():
            use = "images"
            said |= found or {}
        elif word in USES and use is None:
            use = word
        elif word in RUNS and run is None:
            run = RUNS[word]
        elif found:
            said |= found
        elif "model" not in said:
            said["model"] = part
        else:
            fix = (
                f"separate parts by commas: a model, {', '.join(USES)}, fine-tune, 6000 users, "
                "5 requests/s, 50M tokens, in 3 days, on H100, in EU, 10 kW, $2k/month, n+1 …"
            )
            problems.append(Problem(f"{shorten(printable(part), 40)!r}", "is not understood", fix))
    if problems:
        raise InputError("plan", problems)
    return said, use, run


def _parts(text: str) -> list[str]:
    # A comma inside a number separates thousands, not parts.
    return re.split(r",(?!\d{3}\b)|;|\n", text)


def _figure(part: str) -> dict[str, Any] | None:
    precision = _PRECISION.match(part)
    if precision:
        return {"precision": precision[1].lower()}
    for pattern, make in _PATTERNS:
        match = pattern.fullmatch(part)
        if match:
            return make(match)
    return None


def _number(match: re.Match[str], first: int = 1) -> float:
    scale = _SCALE[(match[first + 1] or "").lower()]
    return float(match[first].replace(",", "").replace("_", "")) * scale


def _in(flag: str, factor: float = 1.0) -> Callable[[re.Match[str]], dict[str, Any]]:
    return lambda match: {flag: _number(match) * factor}


def _names(match: re.Match[str]) -> dict[str, Any]:
    said = re.sub(r"\s+only$", "", match[1] or match[2], flags=re.IGNORECASE)
    return {"on": [name.strip() for name in re.split(r"\bor\b|\+|/", said) if name.strip()]}


def _ms(flag: str) -> Callable[[re.Match[str]], dict[str, Any]]:
    return lambda match: {flag: _number(match) * (1e3 if match[3].lower() == "s" else 1.0)}


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_PATTERNS: list[tuple[re.Pattern[str], Callable[[re.Match[str]], dict[str, Any]]]] = [
    (_pattern(rf"{_NUMBER}\s*(?:users?|people|engineers|employees)"), _in("users")),
    (_pattern(rf"{_NUMBER}\s*%\s*active"), _in("active", 0.01)),
    (_pattern(rf"{_NUMBER}\s*(?:{_UNIT}\s*)?(?:/|per|a)\s*s(?:ec(?:ond)?)?|{_NUMBER}\s*[rq]ps"),
     lambda match: {"rate": _number(match) if match[1] else _number(match, 3)}),
    (_pattern(rf"{_NUMBER}\s*(?:req(?:uest)?s?|docs?|documents)\s*(?:/|per)\s*day"),
     _in("requests_per_day")),
    (_pattern(rf"{_NUMBER}\s*req(?:uest)?s?\s*(?:/|per)\s*(?:user\s*/?\s*)?h(?:our)?"),
     _in("requests_per_hour")),
    (_pattern(r"(\d[\d_]*)\s*/\s*(\d[\d_]*)\s*(?:tokens?)?"),
     lambda match: {"input_tokens": int(match[1]), "output_tokens": int(match[2])}),
    (_pattern(rf"ttft(?:\s*p95)?\s*(?:<=?|≤|of)?\s*{_NUMBER}\s*(ms|s)"), _ms("ttft_p95_ms")),
    (_pattern(rf"(?:tpot|itl)(?:\s*p95)?\s*(?:<=?|≤|of)?\s*{_NUMBER}\s*(ms|s)"),
     _ms("tpot_p95_ms")),
    (_pattern(rf"(?:budget\s*)?{_NUMBER}\s*(?:usd)?\s*(?:/|per|a)\s*month"), _in("budget")),
    (_pattern(rf"{_NUMBER}\s*kw(?:\s+site|\s+of power)?"), _in("power_kw")),
    (_pattern(r"on\s+(.+)|(tpu|amd|nvidia|cpu|gaudi|trainium)s?\s+only"), _names),
    (_pattern(r"(?:in\s+(?:the\s+)?)?(?:eu|europe(?:an union)?)(?:\s+regions?)?(?:\s+only)?"),
     lambda _: {"region": ["EU"]}),
    (_pattern(r"(?:with\s+)?spot"), lambda _: {"spot": True}),
    (_pattern(r"(?:fine-?tun(?:e|ing)\s*(?:with\s+)?)?(lora|qlora)"),
     lambda match: {"method": match[1].lower()}),
    (_pattern(rf"{_NUMBER_B}\s*tokens"), lambda match: {"tokens": _number(match)}),
    (_pattern(rf"{_NUMBER}\s*epochs?"), _in("epochs")),
    (_pattern(rf"(?:in|within)\s+{_NUMBER}\s*days?"), _in("deadline_days")),
    (_pattern(rf"(?:in|within)\s+{_NUMBER}\s*h(?:ours?)?"), _in("deadline_days", 1 / 24)),
    (_pattern(r"(?:n\+1|survive\s+replica)"), lambda _: {"survive": "replica"}),
    (_pattern(r"survive\s+(?:a\s+)?(gpu|node|rack|zone)"), lambda m: {"survive": m[1].lower()}),
]  # fmt: skip


def _fill(tree: Tree, said: Mapping[str, Any], use_name: str | None) -> list[Assumption]:
    """Put in what the use says, and note each value with its flag."""
    use = USES[use_name or "chat"]
    why = f"usual for {use_name or 'chat'}" + ("" if use_name else ", as no use was named")
    wanted: list[tuple[str, str, Any]] = [
        ("prompt length", "input_tokens", use.input_tokens),
        ("answer length", "output_tokens", use.output_tokens),
    ]
    if use.prefix_hit_frac:
        what = "share of the prompt in the prefix cache"
        wanted.append((what, "prefix_cache_hit_rate", use.prefix_hit_frac))
    if "e2e_p95_s" not in said:
        wanted += [(f"promise {key}", key, limit) for key, limit in use.slo.items()]
    notes = []
    for what, flag, value in wanted:
        if flag not in said:
            set_key(tree, KEYS[flag], value)
            note = Assumption(what=what, value=f"{value:g}", why=why, change=option_of(flag))
            notes.append(note)
    return notes
