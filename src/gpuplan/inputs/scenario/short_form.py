"""A scenario in one line, in: "Llama-3.3-70B, 6000 users, chat" and flags; out: its document.

What neither the line nor a flag says is taken from the use case, and each such value is an
assumption that names its flag. The document then goes the way of every scenario file.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document, set_key, show_path
from gpuplan.inputs.documents.scalars import printable, shorten

Tree = dict[str, Any]
Make = Callable[[re.Match[str]], dict[str, Any]]
WORK = ("workloads", 0)


class Use(NamedTuple):
    """What is usual for a use case; assumptions, not measurements."""

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
    "chatbot": "chat",
    "assistant": "chat",
    "conversation": "chat",
    "search": "rag",
    "summaries": "summarization",
    "summarisation": "summarization",
    "code": "completion",
    "autocomplete": "completion",
    "agent": "agents",
    "coding agents": "agents",
    "embedding": "embeddings",
    "image generation": "images",
    "pictures": "images",
}
RUNS = {
    "fine-tune": "finetuning",
    "finetune": "finetuning",
    "fine-tuning": "finetuning",
    "finetuning": "finetuning",
    "full fine-tuning": "finetuning",
    "training": "pretraining",
    "train": "pretraining",
    "pretraining": "pretraining",
    "pretrain": "pretraining",
}
PARTS = (
    f"separate parts by commas: a model, {', '.join(USES)}, fine-tune, 6000 users, "
    "5 requests/s, 50M tokens, in 3 days, on H100, in EU, 10 kW, $2k/month, n+1 …"
)
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
    "indicative_prices": ("policy", "indicative_prices_allowed"),
    "method": (*WORK, "training", "method"),
    "tokens": (*WORK, "training", "tokens"),
    "epochs": (*WORK, "training", "epochs"),
    "deadline_days": (*WORK, "training", "deadline_days"),
}
_NUMBER = r"\$?\s*([\d][\d,_]*\.?\d*(?:e[+-]?\d+)?)\s*([kKmM](?![a-z]))?"
_NUMBER_B = _NUMBER.replace("[kKmM]", "[kKmMbBtT]")
_UNIT = r"(?:req(?:uest)?s?|docs?|documents?|embeddings?|images?|texts?|queries)"
_REQUESTS = r"(?:req(?:uest)?s?|docs?|documents)"
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
            fix = f"correct {show_path(KEYS[flag])} in {document.name} first"
            problems.append(Problem(option_of(flag), f"cannot be set: {error}", fix))
    if problems:
        raise InputError(document.name, problems)
    return document


def option_of(flag: str) -> str:
    """The flag as it is typed: --ttft-p95-ms."""
    return "--" + flag.replace("_", "-")


def _short_tree(text: str, given: Mapping[str, Any]) -> tuple[Tree, tuple[Assumption, ...]]:
    """The tree of a line: what it states, what flags state, and what is usual for the rest."""
    stated, use, run = _stated(text)
    stated |= {flag: value for flag, value in given.items() if value is not None}
    run = run or ("finetuning" if "method" in stated else None)
    _refuse_missing(stated, is_run=run is not None)
    service = {"name": use or "service", "kind": "online_inference"}
    tree: Tree = {
        "version": 1,
        "name": shorten(text.strip() or str(stated["model"]), 80),
        "workloads": [{"name": "run", "kind": run} if run else service],
    }
    for flag, value in stated.items():
        set_key(tree, KEYS[flag], value)
    assumed = _usual_run(run, stated) if run else _usual_service(use, stated)
    for default in assumed:
        set_key(tree, KEYS[default.flag], default.value)
    return tree, tuple(default.note for default in assumed)


class Default(NamedTuple):
    """A value that stands in for a flag that was not given."""

    flag: str
    value: Any
    what: str
    why: str
    change: str = ""

    @property
    def note(self) -> Assumption:
        """The assumption that is reported, with the flag that changes it."""
        value = self.value if isinstance(self.value, str) else f"{self.value:g}"
        change = self.change or option_of(self.flag)
        return Assumption(what=self.what, value=value, why=self.why, change=change)


def _refuse_missing(stated: Mapping[str, Any], *, is_run: bool) -> None:
    """Refuse a line without its model, or without the amount of work."""
    load = {"users", "rate", "requests_per_day"} & set(stated)
    fix = 'write e.g. "6000 users" or "5 requests/s", or give --users or --rate'
    wanted = {"load": ("is missing", fix)} if not is_run and not load else {}
    if is_run:
        wanted |= {
            "tokens": ("are missing", 'write e.g. "50M tokens"'),
            "deadline_days": ("is missing", 'write e.g. "in 3 days"'),
        }
    wanted = {"model": ("is not named", "begin with it, or give --model"), **wanted}
    problems = [Problem(flag, *what) for flag, what in wanted.items() if flag not in stated]
    if problems:
        raise InputError("plan", problems)


def _usual_run(run: str, stated: Mapping[str, Any]) -> list[Default]:
    """All weights are trained unless LoRA is named."""
    if run != "finetuning" or "method" in stated:
        return []
    why = "LoRA is a choice of quality: never made unasked"
    return [Default("method", "full", "method of fine-tuning", why, 'the word "lora"')]


def _usual_service(use_name: str | None, stated: Mapping[str, Any]) -> list[Default]:
    """What is usual for the use case, where neither the line nor a flag says."""
    use = USES[use_name or "chat"]
    why = f"usual for {use_name or 'chat'}" + ("" if use_name else ", as no use case was named")
    usual = [
        Default("input_tokens", use.input_tokens, "prompt length", why),
        Default("output_tokens", use.output_tokens, "output length", why),
    ]
    if use.prefix_hit_frac:
        hit_rate = use.prefix_hit_frac
        usual.append(Default("prefix_cache_hit_rate", hit_rate, "prefix cache hit rate", why))
    if "e2e_p95_s" not in stated:
        usual += [Default(key, limit, f"SLO {key}", why) for key, limit in use.slo.items()]
    return [default for default in usual if default.flag not in stated]


def _stated(text: str) -> tuple[dict[str, Any], str | None, str | None]:
    """The flags that the line stands for, its use case, and the kind of its run."""
    stated: dict[str, Any] = {}
    use: str | None = None
    run: str | None = None
    problems: list[Problem] = []
    for part in filter(None, (piece.strip() for piece in _parts(text))):
        word = USE_WORDS.get(part.lower(), part.lower())
        found = _figure(part)
        if use is None and "images" in word.split("/")[0].split():
            use = "images"
            stated |= found or {}
        elif word in USES and use is None:
            use = word
        elif word in RUNS and run is None:
            run = RUNS[word]
        elif found:
            stated |= found
        elif "model" not in stated:
            stated["model"] = part
        else:
            problems.append(
                Problem(f"{shorten(printable(part), 40)!r}", "is not understood", PARTS)
            )
    if problems:
        raise InputError("plan", problems)
    return stated, use, run


def _parts(text: str) -> list[str]:
    # A comma inside a number separates thousands, not parts.
    return re.split(r",(?!\d{3}\b)|;|\n", text)


def _figure(part: str) -> dict[str, Any] | None:
    precision = _PRECISION.match(part)
    if precision:
        return {"precision": precision[1].lower()}
    for pattern, make in _PATTERNS.items():
        match = re.fullmatch(pattern, part, re.IGNORECASE)
        if match:
            return make(match)
    return None


def _number(match: re.Match[str]) -> float:
    scale = _SCALE[(match[2] or "").lower()]
    return float(match[1].replace(",", "").replace("_", "")) * scale


def _in(flag: str, factor: float = 1.0) -> Make:
    return lambda match: {flag: _number(match) * factor}


def _names(match: re.Match[str]) -> dict[str, Any]:
    named = re.sub(r"\s+only$", "", match[1] or match[2], flags=re.IGNORECASE)
    return {"on": [name.strip() for name in re.split(r"\bor\b|\+|/", named) if name.strip()]}


def _ms(flag: str) -> Make:
    return lambda match: {flag: _number(match) * (1e3 if match[3].lower() == "s" else 1.0)}


_AT_MOST = r"(?:\s*p95)?\s*(?:<=?|≤|of)?\s*"
_PATTERNS: dict[str, Make] = {
    rf"{_NUMBER}\s*(?:users?|people|engineers|employees)": _in("users"),
    rf"{_NUMBER}\s*%\s*active": _in("active", 0.01),
    rf"{_NUMBER}\s*(?:{_UNIT}\s*)?(?:/|per|a)\s*s(?:ec(?:ond)?)?": _in("rate"),
    rf"{_NUMBER}\s*[rq]ps": _in("rate"),
    rf"{_NUMBER}\s*{_REQUESTS}\s*(?:/|per)\s*day": _in("requests_per_day"),
    rf"{_NUMBER}\s*req(?:uest)?s?\s*(?:/|per)\s*(?:user\s*/?\s*)?h(?:our)?": _in(
        "requests_per_hour"
    ),
    r"(\d[\d_]*)\s*/\s*(\d[\d_]*)\s*(?:tokens?)?": (
        lambda match: {"input_tokens": int(match[1]), "output_tokens": int(match[2])}
    ),
    rf"ttft{_AT_MOST}{_NUMBER}\s*(ms|s)": _ms("ttft_p95_ms"),
    rf"(?:tpot|itl){_AT_MOST}{_NUMBER}\s*(ms|s)": _ms("tpot_p95_ms"),
    rf"(?:budget\s*)?{_NUMBER}\s*(?:usd)?\s*(?:/|per|a)\s*month": _in("budget"),
    rf"{_NUMBER}\s*kw(?:\s+site|\s+of power)?": _in("power_kw"),
    r"on\s+(.+)|(tpu|amd|nvidia|cpu|gaudi|trainium)s?\s+only": _names,
    r"(?:in\s+(?:the\s+)?)?(?:eu|europe(?:an union)?)(?:\s+regions?)?(?:\s+only)?": (
        lambda _: {"region": ["EU"]}
    ),
    r"(?:with\s+)?spot": lambda _: {"spot": True},
    r"(?:fine-?tun(?:e|ing)\s*(?:with\s+)?)?(lora|qlora)": (
        lambda match: {"method": match[1].lower()}
    ),
    rf"{_NUMBER_B}\s*tokens": _in("tokens"),
    rf"{_NUMBER}\s*epochs?": _in("epochs"),
    rf"(?:in|within)\s+{_NUMBER}\s*days?": _in("deadline_days"),
    rf"(?:in|within)\s+{_NUMBER}\s*h(?:ours?)?": _in("deadline_days", 1 / 24),
    r"(?:n\+1|survive\s+replica)": lambda _: {"survive": "replica"},
    r"survive\s+(?:a\s+)?(gpu|node|rack|zone)": lambda match: {"survive": match[1].lower()},
}
