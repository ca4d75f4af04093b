"""Phrases of terms: hardware, clouds, regions, purchase options, failures, precision, layout."""

import re
from math import gcd
from typing import Any

from gpuplan.inputs.words.phrases import MARKS, Facts, Phrase
from gpuplan.inputs.words.tables import named, pattern_of, rules_of
from gpuplan.units import MONTH, WEEK

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


def _limit(phrase: Phrase, n: float) -> Facts:
    """At most so many of the accelerator that is named."""
    [card] = phrase.names("card")
    return {"policy.accelerators.allowed": (card,), "policy.max_accelerators": int(n)}


def _lot(card: str, n: int) -> tuple[str, int, int]:
    """So many accelerators as whole servers."""
    return card, n // gcd(n, NODE), gcd(n, NODE)


def _owned(phrase: Phrase) -> Facts:
    """Every count with its accelerator: 8 H100 and 16 A100."""
    counts = re.findall(rf"(\d[\d,]*){pattern_of('<x>')}{MARKS['card']}", phrase.match["lot"])
    lots = zip(phrase.names("lot"), counts, strict=True)
    return {"owned": tuple(_lot(card, int(n.replace(",", ""))) for card, n in lots)}


def _owned_nodes(phrase: Phrase, per_node: float) -> Facts:
    [card] = phrase.names("card")
    return {"owned": ((card, int(phrase.number()), int(per_node)),)}


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


def _engine(phrase: Phrase) -> Facts:
    """The inference engine, and its version where one is named."""
    name = {"t": "tensorrt-llm"}.get(phrase.get("engine")[0], phrase.get("engine"))
    version = phrase.get("version")
    stated = {"site.software.framework_version": version} if version else {}
    return {"site.software.framework": name, **stated}


def _survive(phrase: Phrase) -> Facts:
    return {"policy.survive": phrase.get("what").replace("server", "node")}


def _lead_time(phrase: Phrase) -> Facts:
    return {
        "growth.lead_time_weeks": phrase.seconds() / WEEK if phrase.get("t") else phrase.number()
    }


TERMS = rules_of(
    "terms",
    named(
        *(_owned, _layout),
        *(_rank, _formats, _term, _options, _engine, _survive, _lead_time),
        forbidden=_chosen("forbidden"),
        allowed=_chosen("allowed"),
        limited=lambda p: _limit(p, p.number()),
        limited_nodes=lambda p: _limit(p, p.number() * p.number("m")),
        limited_boxes=lambda p: _limit(p, (p.number() if p.get("n") else 1) * NODE),
        owned_cards=lambda p: {"owned": (_lot(p.names("card")[0], int(p.number())),)},
        owned_nodes=lambda p: _owned_nodes(p, p.number("m")),
        owned_servers=lambda p: _owned_nodes(p, NODE),
        any_of=lambda p: {"policy.accelerators.allowed": tuple(p.names("lot"))},
        consumer=lambda _: {"policy.accelerators.allowed": CONSUMER},
    ),
)
