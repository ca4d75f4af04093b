"""Which words name which accelerators, and which variant people usually mean by the bare word."""

import re

from gpuplan.csv_rows import meanings, noun_from, packaged_rows, words
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Variants that share a word."""

    words: tuple[str, ...]
    ids: tuple[AcceleratorId, ...]
    usual: tuple[AcceleratorId, ...] = ()  # in order of preference; empty: never chosen for you
    why: str = ""
    noise: tuple[str, ...] = ()  # words that do not narrow this family down


FAMILIES = tuple(
    noun_from(Family, row) for row in packaged_rows("gpuplan.catalog", "data/accelerator_words.csv")
)
"""Every word that stands for accelerators of the catalog."""

NOISE = frozenset(words("catalog", "accelerator_noise"))
"""Words that makers and tools put around a name."""

REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in meanings("catalog", "accelerator_rewrite").items()
)
"""Spellings that are brought together before words are compared."""
