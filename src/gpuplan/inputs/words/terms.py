"""Phrases of terms: hardware, clouds, regions, purchase options, failures, precision, layout."""

import re
from math import gcd
from typing import Any

from gpuplan.inputs.words.phrases import MARKS, Facts, Phrase, Rule, means
from gpuplan.units import MONTH

NODE = 8  # accelerators of a usual server
CONSUMER = ("RTX 3090", "RTX 4090", "RTX 5090")
CHOICES = {
    "cards": ("policy.accelerators", "card"),
    "clouds": ("policy.clouds", "cloud"),
    "places": ("policy.regions", "place"),
}


def _chosen(list_name: str) -> Any:
    """Names that may be used, or may not."""

    def make(phrase: Phrase) -> Facts:
        group = next(group for group in CHOICES if phrase.get(group))
        return {f"{CHOICES[group][0]}.{list_name}": tuple(phrase.names(group))}

    return make


def _limited(phrase: Phrase) -> Facts:
    [card] = phrase.names("card")
    return {
        "policy.accelerators.allowed": (card,),
        "policy.max_accelerators": int(phrase.number()),
    }


def _limited_nodes(phrase: Phrase) -> Facts:
    [card] = phrase.names("card")
    return {
        "policy.accelerators.allowed": (card,),
        "policy.max_accelerators": int(phrase.number() * phrase.number("m")),
    }


def _lot(card: str, n: int) -> tuple[str, int, int]:
    """So many accelerators as whole servers."""
    return card, n // gcd(n, NODE), gcd(n, NODE)


def _owned(phrase: Phrase) -> Facts:
    """Every count with its accelerator: 8 H100 and 16 A100."""
    counts = re.findall(rf"(\d[\d,]*){_X}{MARKS['card']}", phrase.match["lot"])
    lots = zip(phrase.names("lot"), counts, strict=True)
    return {"owned": tuple(_lot(card, int(n.replace(",", ""))) for card, n in lots)}


def _owned_cards(phrase: Phrase) -> Facts:
    [card] = phrase.names("card")
    return {"owned": (_lot(card, int(phrase.number())),)}


def _owned_nodes(phrase: Phrase) -> Facts:
    [card] = phrase.names("card")
    return {"owned": ((card, int(phrase.number()), int(phrase.number("m"))),)}


def _owned_servers(phrase: Phrase) -> Facts:
    [card] = phrase.names("card")
    return {"owned": ((card, int(phrase.number()), NODE),)}


def _layout(phrase: Phrase) -> Facts:
    return {f"layout.{phrase.get('kind')}": int(phrase.get("ways"))}


def _rank(phrase: Phrase) -> Facts:
    method = {"kind": "finetuning", "method": phrase.get("method")} if phrase.get("method") else {}
    return {"training.lora_rank": int(phrase.get("ways")), **method}


def _formats(phrase: Phrase) -> Facts:
    stated = phrase.get("format")
    bits = re.fullmatch(r"q?([48])(?:[\s-]?bit|_\w+)?", stated)
    return {"precision": f"int{bits[1]}" if bits else stated}


def _term(phrase: Phrase) -> Facts:
    """The term of a commitment is the time that is planned for."""
    return {"budget.horizon_months": phrase.seconds() / MONTH}


def _options(phrase: Phrase) -> Facts:
    """Purchase options of which the cheapest is to be found."""
    stated = phrase.get("options")
    words = {"on_demand": "demand", "reserved": "reserved|commit", "spot": "spot|preempt"}
    found = [name for name, pattern in words.items() if re.search(pattern, stated)]
    spot = {"policy.spot_allowed": True} if "spot" in found else {}
    return {"policy.purchases": found, **spot}


_OPTION = r"(?:spot|preemptible|on[\s-]demand|reserved|committed(?:[\s-]use)?|commitments?)"
_OPTION += r"(?:\s+(?:instances?|prices?|pricing|capacity|vms?))?"
_VERSUS = r"\s*(?:,|/|\b(?:or|and|vs|versus|than|against|compared\s+(?:to|with))\b\.?)+\s*"
_ENGINE = r"(?:vllm|sglang|tensorrt-?llm|trt-?llm)"
_BOXES = r"(?:nodes?|servers?|machines?|boxes)\b"
_OWN = (
    r"(?:(?:we|i|they|company|already|currently|do|which|that)\s+)*"
    r"\b(?:own(?:s|ed|ing)?|have|has|got|possess|existing|our(?:\s+own)?|already\s+have|(?<=we\s)(?:run|operate))\s+"
    r"(?:(?:already|own|a|an|existing|current|cluster|fleet|of|with|about|some)\s+)*"
)
_NOT = (
    r"(?:\b(?:not|no|without|w/o|except(?:\s+for)?|excluding|avoid(?:ing)?|never|but\s+not|don'?t\s+use"
    r"|do\s+not\s+use|anything\s+but|other\s+than)\s+(?:(?:on|in|use|using|any|the|from)\s+)*)"
)
_ON = r"(?:\b(?:on|using|use|with|via|from|at|in|prefer(?:ably)?|only(?:\s+on)?|allow(?:ed)?)\s+)?"
_FORMATS = (
    r"(?P<format>nvfp4|mxfp4|fp4|fp8|int8|int4|w4a16|w8a8|w8a16|nf4|bf16|fp16|fp32|awq|gptq|bfloat16"
    r"|float16|float32|[48][\s-]?bit|q[48](?:_[k01](?:_[sml])?)?)"
)
_X = r"\s*(?:x|×|\*)?\s*"
_LOT = rf"\d[\d,]*{_X}{MARKS['card']}+(?:\s+(?:gpus?|cards?|accelerators?))?"
_AND = r"(?:\s*(?:,|and|plus|\+|&)+\s*)"

TERMS = (
    means(
        r"\b(?:(?:only|just|nothing\s+but)\s+(?:on\s+|with\s+|use\s+|using\s+)?(?:(?:what|the\s+\w+)\s+)?(?:we|i)"
        r"\s+(?:already\s+)?(?:have|own)|owned\s+(?:only|hardware\s+only)|only\s+(?:the\s+)?(?:owned|existing)"
        r"(?:\s+(?:hardware|gpus?|servers?|nodes?|ones))?|nothing\s+(?:else|more|new)(?:\s+(?:is|to\s+be)\s+bought)?"
        r"|no\s+(?:new|more|additional|further|other)\s+(?:hardware|gpus?|servers?|purchases?)"
        r"|without\s+(?:buying|adding)\s+(?:anything|more|hardware|gpus?))\b",
        existing_only=True,
    ),
    means(
        r"\b(?:(?:no|without|not|never|don'?t|do\s+not|avoid(?:ing)?)\s+(?:want\s+to\s+)?(?:any\s+|the\s+|public\s+|in\s+|use\s+)*"
        r"(?:cloud|rent(?:ing|al|ed)?|lease[ds]?|leasing)(?:\s+(?:anything|gpus?|hardware|capacity|instances?))?)\b",
        **{"policy.purchases": ["owned"]},
    ),
    means(
        rf"{_NOT}(?:spot|preemptible|interruptible)(?:\s+(?:instances?|capacity|vms?|nodes?))?\b",
        **{"policy.spot_allowed": False},
    ),
    *(Rule(rf"{_NOT}{{{group}}}", _chosen("forbidden")) for group in CHOICES),
    Rule(
        rf"\breplac(?:e|ing)\s+(?:(?:our|the|my|all|old)\s+)*(?:\d[\d,]*{_X})?{{cards}}(?:\s+(?:gpus?|cards?))?",
        _chosen("forbidden"),
    ),
    Rule(
        rf"{_OWN}{{n}}\s+(?:nodes?|servers?|boxes|hosts)\s+(?:of|with)\s+{{m}}{_X}{{card}}(?:\s+each)?",
        _owned_nodes,
    ),
    Rule(
        rf"{{n}}\s+(?:nodes?|servers?|boxes|hosts)\s+(?:of|with)\s+{{m}}{_X}{{card}}(?:\s+each)?",
        _limited_nodes,
    ),
    Rule(rf"{_OWN}{{n}}{_X}(?:dgx|hgx)[\s-]*{{card}}", _owned_servers),
    Rule(rf"{_OWN}{{n}}{_X}{{card}}\s+{_BOXES}", _owned_servers),
    Rule(rf"{{n}}{_X}(?:owned|existing|on-?prem(?:ises)?)\s+{{card}}\s+{_BOXES}", _owned_servers),
    Rule(
        rf"{_OWN}(?P<lot>{_LOT}(?:{_AND}{_LOT})*)(?:\s*(?:gpus?|cards?|accelerators?))?(?:\s+(?:already|today|now))?",
        _owned,
    ),
    Rule(rf"{_OWN}{{few}}{_X}{{card}}(?:\s*(?:gpus?|cards?|accelerators?))?", _owned_cards),
    Rule(
        rf"{{n}}{_X}(?:owned|existing|on-?prem(?:ises)?)\s+{{card}}(?:\s*(?:gpus?|cards?))?",
        _owned_cards,
    ),
    Rule(
        rf"{{n}}{_X}{{card}}\s*(?:gpus?\s+|cards?\s+)?(?:(?:that\s+)?we\s+(?:already\s+)?(?:own|have)"
        r"|owned|already|in\s+house|(?:in|at|under)\s+(?:the|our|my)\s+(?:own\s+)?(?:office|lab|basement|rack"
        r"|server\s*room|house|company|desk|university|institute))",
        _owned_cards,
    ),
    Rule(rf"{_ON}{_OWN}{{cards}}", _chosen("allowed")),
    Rule(
        rf"{_ON}(?P<lot>{_LOT}(?:\s*,?\s*(?:or|vs\.?|versus)\s+{_LOT})+)",
        lambda p: {"policy.accelerators.allowed": tuple(p.names("lot"))},
    ),
    Rule(
        rf"{_ON}(?:(?:at\s+most|up\s+to|max(?:imum)?|exactly|just|only)\s+)*{{n}}{_X}{{card}}"
        r"(?:\s*(?:gpus?|cards?|accelerators?))?(?:\s+only)?",
        _limited,
    ),
    Rule(
        rf"{_ON}(?:(?:just|only|a)\s+)*{{few}}{_X}{{card}}(?:\s*(?:gpus?|cards?|accelerators?))?",
        _limited,
    ),
    means(
        rf"{_ON}(?:only\s+)?(?:consumer|gaming|gamers'?|geforce)(?:[\s-]*grade)?\s+"
        r"(?:cards?|gpus?|graphics\s+cards?|hardware)(?:\s+only)?\b",
        **{"policy.accelerators.allowed": CONSUMER},
    ),
    *(
        Rule(
            r"(?:at\s+most|up\s+to|max(?:imum)?|no\s+more\s+than|limit(?:\s+of)?|<=?|on|with|using)\s+"
            rf"(?:(?:just|only|a)\s+)*{number}\s*(?:gpus?|accelerators?|cards?)\b",
            lambda p: {"policy.max_accelerators": int(p.number())},
        )
        for number in ("{n}", "{few}")
    ),
    *(
        Rule(
            rf"{_ON}(?:the\s+)?{{{group}}}(?:\s+(?:only|regions?|gpus?|cloud|data\s*cent(?:re|er)s?))*",
            _chosen("allowed"),
        )
        for group in CHOICES
    ),
    Rule(
        r"{t}[\s-]+(?:term\s+)?(?P<kept>(?:reserved|committed|reservations?|commitments?)\b)",
        _term,
    ),
    Rule(
        r"(?P<kept>\b(?:reserved|committed)(?:\s+(?:instances?|capacity))?\s+)(?:for\s+)?{t}"
        r"(?:\s+(?:term|commitment))?",
        _term,
    ),
    Rule(rf"\b(?P<options>{_OPTION}(?:{_VERSUS}{_OPTION})+)", _options),
    means(
        r"(?:\b(?:with|on|use|using|allow(?:ing)?|including|incl\.?|prefer|spot)\s+)*\b"
        r"(?:spot|preemptible|interruptible)(?:\s+(?:instances?|capacity|vms?|nodes?|gpus?|prices?))?"
        r"(?:\s+(?:is\s+)?(?:ok(?:ay)?|fine|allowed|only))?",
        **{"policy.spot_allowed": True},
    ),
    means(
        r"\b(?:only\s+)?on[\s-]demand(?:\s+(?:only|instances?|prices?|capacity))*\b",
        **{"policy.purchases": ["on_demand"]},
    ),
    means(
        r"\b(?:reserved|committed(?:[\s-]use)?)(?:\s+(?:instances?|prices?|capacity|discounts?))*"
        r"\s+(?:are\s+|is\s+)?(?:allowed|ok(?:ay)?|fine|possible|too)\b",
        **{"policy.purchases": ["on_demand", "reserved"]},
    ),
    means(
        r"\b(?:only\s+)?(?:reserved|committed(?:[\s-]use)?|reservations?|commitments?)"
        r"(?:\s+(?:only|instances?|prices?|capacity))*\b",
        **{"policy.purchases": ["reserved"]},
    ),
    Rule(
        r"\b(?:to\s+)?(?:rent|leas)(?:e|ing)?\s+(?P<kept>[^.;?]{1,40}?)\s+or\s+(?:to\s+)?(?:buy|purchas|own)(?:e|ing)?\b"
        r"(?:\s+(?:them|it|our\s+own))?",
        lambda _: {"policy.purchases": ["on_demand", "reserved", "owned"]},
    ),
    means(
        r"\b(?:(?:is\s+it\s+)?(?:cheaper|better|worth\s+it)\s+)?(?:to\s+)?(?:(?:buy|own|purchas)(?:e|ing)?"
        r"\s*(?:or|vs\.?|versus|against|than|/)\s*(?:to\s+)?(?:rent|leas)(?:e|ing)?"
        r"|(?:rent|leas)(?:e|ing)?\s*(?:or|vs\.?|versus|against|than|/)\s*(?:to\s+)?(?:buy|own|purchas)(?:e|ing)?)\b"
        r"(?:\s+(?:gpus?|hardware|servers?))?",
        **{"policy.purchases": ["on_demand", "reserved", "owned"]},
    ),
    means(
        r"\b(?:on[\s-]?prem(?:ises?)?|in[\s-]house|self[\s-]hosted|(?:in\s+)?our\s+own\s+data\s*cent(?:er|re)"
        r"|in\s+our\s+data\s*cent(?:er|re)|own\s+hardware|(?:bought|purchased|owned)\s+(?:gpus?|hardware|servers?)|buy(?:ing)?(?:\s+(?:gpus?|hardware|servers?))?"
        r"|purchas(?:e|ing)\s+(?:gpus?|hardware|servers?)|colocation|colo)\b",
        **{"policy.purchases": ["owned"]},
    ),
    means(
        r"\b(?:n\s*\+\s*1|highly[\s-]available|high\s+availability|fault[\s-]tolerant|redundan(?:t|cy)|ha)\b",
        **{"policy.survive": "replica"},
    ),
    Rule(
        r"\b(?:survives?|tolerates?|withstands?)\s+(?:the\s+)?(?:loss\s+of\s+|losing\s+|failure\s+of\s+)?"
        r"(?:an?\s+|one\s+|the\s+)?(?P<what>gpu|replica|node|server|rack|zone)(?:\s+(?:loss|failure|down))?\b",
        lambda p: {"policy.survive": p.get("what").replace("server", "node")},
    ),
    Rule(rf"\b{_FORMATS}\s+kv(?:[\s-]*cache)?\b", lambda p: {"kv_precision": p.get("format")}),
    Rule(
        rf"\bkv(?:[\s-]*cache)?(?:\s+(?:in|at|of))?\s+{_FORMATS}\b",
        lambda p: {"kv_precision": p.get("format")},
    ),
    Rule(
        rf"(?:\b(?:in|at|with|as|quanti[sz]ed\s+to|precision)\s+)*\b{_FORMATS}\b"
        r"(?:\s+(?:quanti[sz]ation|quanti[sz]ed|precision|weights?))*",
        _formats,
    ),
    means(
        r"\b(?:p/?d\s+)?disaggregat(?:ed|ion)\b(?:[\s/-]+(?:prefill|decode|serving|inference))*",
        **{"policy.disaggregation": "allowed"},
    ),
    Rule(r"\b(?P<kind>tp|pp|ep|dp|cp)\s*=?\s*(?P<ways>\d{1,5})(?![\w%])", _layout),
    Rule(
        r"\b(?:(?P<method>q?lora)\s+)?(?:with\s+|of\s+)?(?:rank|r)\s*(?:=|of)?\s*(?P<ways>\d{1,5})\b",
        _rank,
    ),
    Rule(
        rf"\b(?P<engines>{_ENGINE}(?:{_VERSUS}{_ENGINE})+)\b",
        lambda p: {"engines": p.get("engines")},
    ),
    Rule(
        r"\b(?:with|on|using|via)?\s*(?P<engine>vllm|sglang|tensorrt-?llm|trt-?llm)\b",
        lambda p: {
            "site.software.framework": {"t": "tensorrt-llm"}.get(
                p.get("engine")[0], p.get("engine")
            )
        },
    ),
    means(
        r"\b(?:cheapest|lowest\s+cost|minimi[sz]e\s+cost|as\s+cheap(?:ly)?\s+as\s+possible)\b",
        objective="cost",
    ),
    means(
        r"\b(?:greenest|lowest\s+carbon|(?:minimi[sz]e|reduce|least|low)\s+carbon)\b",
        objective="carbon",
    ),
    means(r"\b(?:lowest|least|minimi[sz]e)\s+energy\b", objective="energy"),
    means(r"\b(?:fastest|as\s+fast\s+as\s+possible|shortest\s+time)\b", objective="time"),
    Rule(
        r"\blead\s+times?(?:\s+(?:of|is)|:)?\s*{t}|{n}[\s-]*weeks?\s+lead\s+time",
        lambda p: {"growth.lead_time_weeks": p.seconds() / 604800 if p.get("t") else p.number()},
    ),
)
