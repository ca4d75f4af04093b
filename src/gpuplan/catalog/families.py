"""Which words name which accelerators, and which variant people usually mean by the bare word."""

import re

from gpuplan.csv_rows import packaged_rows
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
    Family(
        words=tuple(row["words"].split()),
        ids=tuple(map(AcceleratorId, row["ids"].split())),
        usual=tuple(map(AcceleratorId, row["usual"].split())),
        why=row["why"],
        noise=tuple(row["noise"].split()),
    )
    for row in packaged_rows("gpuplan.catalog", "data/accelerator_words.csv")
)
"""Every word that stands for accelerators of the catalog."""

NOISE = frozenset(
    {
        "nvidia",
        "tesla",
        "amd",
        "instinct",
        "intel",
        "google",
        "aws",
        "amazon",
        "geforce",
        "habana",
        "cloud",
        "gpu",
        "gpus",
        "accelerator",
        "card",
        "chip",
        "server",
        "dlc",
        "oam",
        "tensor",
        "core",
        "ac",
        "lc",
        "mega",
        "slice",
        "podslice",
    }
)
"""Words that makers and tools put around a name."""

REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bgrace[\s_-]*hopper\b", r"gh200"),
        (r"\bgrace[\s_-]*blackwell\b", r"gb200"),
        (r"\bponte[\s_-]*vecchio\b", r"pvc"),
        (r"\bv5[\s_-]+lite\b", r"v5lite"),
        (r"\bgaudi[\s_-]+(\d)", r"gaudi\1"),
        (r"\bhl-(\d)", r"hl\1"),
        (r"\btpu[\s_-]*v?(\d)", r"tpuv\1"),
        (r"\b(trainium|trn|inferentia|inf)[\s_-]+(\d)", r"\1\2"),
        (r"\bmi[\s_-]+(\d{3})", r"mi\1"),
        (
            r"\brtx[\s_-]*pro[\s_-]*6000(?:[\s_-]*(?:blackwell|bw))?[\s_-]*max[\s_-]*q\b",
            r"rtxpro6000maxq",
        ),
        (
            r"\brtx[\s_-]*pro[\s_-]*6000(?:[\s_-]*(?:blackwell|bw))?[\s_-]+(?:workstation|ws)\b",
            r"rtxpro6000ws",
        ),
        (
            r"\brtx[\s_-]*pro[\s_-]*6000(?:[\s_-]*(?:blackwell|bw))?[\s_-]+(?:server|se)\b",
            r"rtxpro6000se",
        ),
        (r"\brtx[\s_-]*pro[\s_-]*([456][05]00)\b", r"rtxpro\1"),
        (r"\bquadro[\s_-]*rtx[\s_-]*6000\b", r"quadrortx6000"),
        (r"\b(?:rtx[\s_-]*)?(2000|4000|5880)[\s_-]*ada", r"rtx\1ada"),
        (r"\b([345]0\d0)[\s_-]*ti(?:[\s_-]*(super))?\b", r"\1ti\2"),
        (r"\b(m[1-5])[\s_-]+(ultra|max|pro)\b", r"\1\2"),
        (r"\bdgx[\s_-]+spark\b", r"dgxspark"),
        (r"\b(?:rx[\s_-]*)?7900[\s_-]*xtx\b", r"7900xtx"),
        (r"\b(?:rtx[\s_-]*)?6000[\s_-]*ada", r"rtx6000ada"),
        (r"\brtx[\s_-]+(a?\d{4})", r"rtx\1"),
        (r"\b(?:max|pvc)[\s_-]+1550", r"pvc1550"),
        (r"\bepyc[\s_-]+(\d)", r"epyc\1"),
        (r"\bxeon[\s_-]+(?:platinum[\s_-]+)?(\d)", r"xeon\1"),
        (r"(\d)[\s_]+(gi?b?)\b", r"\1\2"),
    )
)
"""Spellings that are brought together before words are compared."""
