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


def _limited_boxes(phrase: Phrase) -> Facts:
    """So many whole servers of eight."""
    [card] = phrase.names("card")
    n_servers = int(phrase.number()) if phrase.get("n") else 1
    return {
        "policy.accelerators.allowed": (card,),
        "policy.max_accelerators": n_servers * NODE,
    }


def _lot(card: str, n: int) -> tuple[str, int, int]:
    """So many accelerators as whole servers."""
    return card, n // gcd(n, NODE), gcd(n, NODE)


def _owned(phrase: Phrase) -> Facts:
    """Every count with its accelerator: 8 H100 and 16 A100."""
    counts = re.findall(rf"(\d[\d,]*){pattern_of('<x>')}{MARKS['card']}", phrase.match["lot"])
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
        *(
            _limited,
            _limited_nodes,
            _limited_boxes,
            _owned,
            _owned_cards,
            _owned_nodes,
            _owned_servers,
            _layout,
        ),
        *(_rank, _formats, _term, _options, _engine, _survive, _lead_time),
        forbidden=_chosen("forbidden"),
        allowed=_chosen("allowed"),
        any_of=lambda p: {"policy.accelerators.allowed": tuple(p.names("lot"))},
        consumer=lambda _: {"policy.accelerators.allowed": CONSUMER},
    ),
)
