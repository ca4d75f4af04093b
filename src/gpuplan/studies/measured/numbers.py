"""How measured tables write numbers, and cells that say nothing."""

import re

EMPTY = frozenset({"", "-", "–", "n/a"})  # what people write into a cell that says nothing
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)


def whole_text(text: str) -> str | None:
    """A count as plain digits: `1,024` is 1024, a cell that says nothing is empty; else None."""
    plain = text.strip()
    if plain.lower() in EMPTY:
        return ""
    if THOUSANDS.fullmatch(plain):
        return plain.replace(",", "")
    return plain if NUMBER.fullmatch(plain) else None
