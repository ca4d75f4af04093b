"""What a description asks, in: its words and facts; out: the question to be answered first."""

import re
from collections.abc import Mapping

from gpuplan.domain.requests.plan import Question
from gpuplan.inputs.words.scan import Fact

_DURATION = re.compile(
    r"\bhow\s+(?:long|much\s+time|many\s+(?:\w+[\s-]+)?(?:days|hours|weeks|months|minutes))\b"
    r"|\bwhen\s+(?:will|would|is|can)\b|\b(?:duration|time\s+to\s+train|training\s+time)\b",
    re.IGNORECASE,
)
_COST = re.compile(
    r"\bhow\s+(?:much|expensive)\b(?!\s+(?:vram|memory|gpu\s+memory|ram|time|load|power|energy))"
    r"|\bwhat\b(?:[^.;?]|\.(?=\d))*\b(?:cost|price|bill|expense)s?\b"
    r"|\b(?:cost|price)s?\s+(?:of|per|to|for)\b|\b(?:monthly|total|the)\s+(?:bill|cost|price)\b",
    re.IGNORECASE,
)
_SPEED = re.compile(
    r"\bhow\s+(?:fast|many\s+tok(?:en)?s?\s*(?:/|per|a)\s*s)|\btok(?:en)?s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?\s*\?",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:vs\.?|versus|or|compared?|against|between|which|better|cheaper|faster|instead)(?!\w)",
    re.IGNORECASE,
)
_ENOUGH = re.compile(
    r"\b(?:enough|suffic\w+|feasible|possible|adequate|do\s+for|ok(?:ay)?\s+for|fits?)\b"
    r"|(?:^|[,;:.]\s*)(?:so\s+)?(?:is|are|can|could|will|would|does|do|may|should)\b",
    re.IGNORECASE,
)
_HARDWARE = {"policy.max_accelerators", "owned"}


def question_of(text: str, facts: Mapping[str, Fact]) -> Question:
    """The question that the words ask beside what the work needs; empty where they ask none."""
    if "largest" in facts:
        return ""
    cards = facts.get("policy.accelerators.allowed")
    if cards is not None and len(cards.value) > 1 and _CHOICE.search(text):
        return "choice"
    if _DURATION.search(text):
        return "duration"
    if _SPEED.search(text):
        return "speed"
    if _HARDWARE & set(facts) and _ENOUGH.search(text):
        return "enough"
    return "cost" if _COST.search(text) else ""
