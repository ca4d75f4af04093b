"""What people call models, in: a name as typed; out: its words, and the one that is meant by it.

A common name and a size alone stand for one model of the catalog (`data/aliases.csv`); a family
with a size and no generation stands for the newest generation that has this size.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.model.precision import FORMATS

QUIET = {"instruct", "chat", "hf", "it", "meta", "base", "arch", "nvidia", "inst", "preview"}
PRECISIONS = {
    "fp8": "fp8",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "mxfp4": "mxfp4",
    "int8": "int8",
    "w8a8": "int8",
    "w8a16": "int8",
    "int4": "int4",
    "w4a16": "int4",
    "awq": "int4",
    "gptq": "int4",
    "4bit": "nf4",
    "f16": "fp16",
    "bnb": "nf4",
    "8bit": "int8",
    "bf16": "bf16",
    "fp16": "fp16",
}
PRECISION_NOISE = {"dynamic", "static", "quantized", "pertensor", "block", "kv", "g128", "marlin"}
_SIZE = re.compile(r"\d+(?:\.\d+)?[bm]")
_FAMILY = re.compile(r"([a-z]+)(\d+(?:\.\d+)?)?")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)?)")


class Name(NamedTuple):
    """A name taken apart."""

    owner: str
    words: tuple[str, ...]
    precision: str

    @property
    def key(self) -> str:
        """The name without separators, so that `llama3.1-8b` is `Llama 3.1 8B`."""
        return "".join(self.words)


class Meant(NamedTuple):
    """The model that a name without all its words stands for, and why."""

    id: str
    why: str


def take_apart(text: str) -> Name:
    """Owner, words and precision of a name as people type it."""
    owner, _, rest = without_part(text).lower().strip().rpartition("/")
    file_type = re.search(r"[\s_\-.](q[2-8]_(?:k_m|k|0))\b", rest)
    rest = rest.replace(file_type[0], "") if file_type else rest
    rest = re.sub(r"(?<=\d)_(?=\d)", ".", rest)
    raw = [word for word in re.split(r"[\s_\-()]+|(?<=quantized)\.", rest) if word]
    precision = next((PRECISIONS[word] for word in raw[1:] if word in PRECISIONS), "")
    precision = file_type[1] if file_type and file_type[1] in FORMATS else precision
    dropped = QUIET | (set(PRECISIONS) | PRECISION_NOISE if precision else set())
    words = [word for word in raw if len(raw) == 1 or word not in dropped]
    return Name(owner, tuple(words), precision)


def without_part(text: str) -> str:
    """Diffusion models are published in parts: people name the whole."""
    return re.sub(r"/(transformer|unet)$", "", text.strip(), flags=re.IGNORECASE)


@cache
def _aliases() -> dict[str, Meant]:
    return {
        _spelling(row["alias"]): Meant(row["id"], row["why"])
        for row in packaged_rows("gpuplan.catalog", "data/aliases.csv")
    }


def _spelling(text: str) -> str:
    """The words of a name without separators, owner and precision."""
    words = re.split(r"[\s_\-]+", without_part(text).lower().rpartition("/")[2])
    return "".join(word for word in words if word not in {*PRECISIONS, "instruct", "chat"})


def is_alias(text: str) -> bool:
    """Whether the text is a name in wide use."""
    return _spelling(text) in _aliases()


def meant_by(text: str, known: Iterable[tuple[str, Name]]) -> Meant | None:
    """The model of a common name, of a size alone, or of a family and a size; None: of none."""
    return _aliases().get(_spelling(text)) or _newest(take_apart(text), known)


def _newest(name: Name, known: Iterable[tuple[str, Name]]) -> Meant | None:
    """The newest generation of the family in this size, with the fewest words beside them."""
    family, typed = _family_of(name), [word for word in name.words[1:] if not _SIZE.fullmatch(word)]
    size = _size_of(name)
    if family is None or not size or family[1]:
        return None
    same = [
        (_generation(other), -len(other.words), id)
        for id, other in known
        if not other.precision
        and _size_of(other) == size
        and (_family_of(other) or ("", ""))[0] == family[0]
        and set(typed) <= set(other.words[1:])
    ]
    if not same:
        return None
    others = sorted({id for generation, _, id in same if generation < max(same)[0]})
    older = f"; older: {', '.join(others[:3])}" if others else ""
    return Meant(max(same)[2], f"the newest generation in this size{older}")


def _size_of(name: Name) -> str:
    return next((word for word in name.words[1:] if _SIZE.fullmatch(word)), "")


def _family_of(name: Name) -> tuple[str, str] | None:
    """Letters of the first word, and the generation that follows them or stands second."""
    match = _FAMILY.fullmatch(name.words[0]) if name.words else None
    if match is None:
        return None
    second = _VERSION.fullmatch(name.words[1]) if len(name.words) > 1 else None
    return match[1], match[2] or (second[1] if second else "")


def _generation(name: Name) -> float:
    """The number of the generation, 0 where the name has none."""
    family = _family_of(name)
    return float(family[1]) if family and family[1] else 0.0
