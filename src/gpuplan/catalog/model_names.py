"""What people call models, in: a name as typed; out: its words, and which entries could be meant.

A name is taken apart in one way whoever wrote it: `llama3.1:8b`, `Llama 3.1 8B` and
`meta-llama/Llama-3.1-8B-Instruct` share their words. An entry can be meant when it has every word
that was typed; what it has beside them decides between entries. Names in wide use that share no
words with the publisher's stand in `data/aliases.csv`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from gpuplan.csv_rows import meanings, packaged_rows, words
from gpuplan.domain.model.precision import FORMATS

QUIET = frozenset(words("catalog", "model_quiet"))
SOFT = frozenset(words("catalog", "model_soft"))
SIZES = frozenset(words("catalog", "model_size"))
NEUTRAL = SIZES | SOFT | QUIET  # words that say nothing of which family is meant
LETTERS = {"s": "small", "b": "base", "l": "large", "h": "huge", "g": "giant"}
APART = SIZES | frozenset(words("catalog", "model_apart"))  # what makes a fine-tune another network
TRAINED = frozenset(words("catalog", "model_trained"))  # stages of training: the layers stay
PRECISIONS = meanings("catalog", "model_precision")
# The table's order: a format before the method that made it, AWQ-BF16-INT8 is stored in INT8.
STRENGTH = {word: n for n, word in enumerate(PRECISIONS)}
PRECISION_NOISE = frozenset(words("catalog", "model_precision_noise"))
N_TEXTS = 4096  # names typed that are remembered; the catalog's own among them
MIN_LETTERS = 3  # of a word that can carry a name alone
_FILE_TYPE = re.compile(r"(?:^|[\s_\-.:])(i?q[1-8]_(?:k(?:_[a-z]{1,2})?|[01]|xxs|xs|nl|s|m))\b")
_SPOKEN_SIZE = re.compile(r"(\d)\s*(?:billion|bn)\b|(\d)\s+b\b")
_BREAKS = re.compile(r"[\s_\-()\[\]:,+/]+|(?<!\d)\.|\.(?!\d)")
_LETTERS_FIRST = re.compile(r"([a-z]{2,}?)v?(\d[\d.]*)([a-z].*)?")
_NUMBER_FIRST = re.compile(r"(\d+(?:\.\d+)?)([a-z]{2,})")
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bmt]")
_ACTIVE = re.compile(r"a\d+(?:\.\d+)?b")
_DATE = re.compile(r"\d{4}|\d{6}")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


class Name(NamedTuple):
    """A name taken apart."""

    owner: str
    words: tuple[str, ...]
    quiet: tuple[str, ...]  # words that change nothing: instruct, hf
    precision: str

    @property
    def key(self) -> str:
        """The name without separators, so that `llama3.1-8b` is `Llama 3.1 8B`."""
        return "".join(self.words)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The numbers of parameters in it, such as 70b or 8x7b."""
        return tuple(word for word in self.words if _SIZE.fullmatch(word))

    @property
    def generation(self) -> tuple[int, ...]:
        """The first number that is neither size nor date; empty where there is none."""
        found = (w for w in self.words if _NUMBER.fullmatch(w) and not _DATE.fullmatch(w))
        return tuple(int(part) for part in next(found, "").split(".") if part)

    @property
    def date(self) -> str:
        """The release in it: 2411, 0528."""
        return max((word for word in self.words if _DATE.fullmatch(word)), default="")


class Meant(NamedTuple):
    """The model that a name without all its words stands for, and why."""

    id: str
    why: str


class Beside(NamedTuple):
    """What an entry has beside the words typed: the fewer, the nearer."""

    n_words: int  # that make it another model, sizes among them
    n_numbers: int  # generations
    n_soft: int  # base, thinking, active parameters
    n_dates: int


@lru_cache(maxsize=N_TEXTS)
def take_apart(text: str) -> Name:
    """Owner, words and precision of a name as people type it."""
    owner, _, rest = without_part(text).lower().strip().rpartition("/")
    file_type = _FILE_TYPE.search(rest)
    rest = rest.replace(file_type[0], " ") if file_type else rest
    rest = _SPOKEN_SIZE.sub(r"\1\2b ", re.sub(r"(?<![\d.])(\d+)_(?=\d)", r"\1.", rest))
    rest = re.sub(r"(?<=[a-z])\+(?!\w)", " plus", rest)  # Command R+
    raw = [word for word in _BREAKS.split(rest) if word]
    stated = {PRECISIONS[word]: STRENGTH[word] for word in raw[1:] if word in PRECISIONS}
    precision = min(stated, key=lambda form: stated[form], default="")
    stored = _stored_format(file_type[1]) if file_type and "unquantized" not in raw else ""
    precision = stored or precision
    dropped = {*PRECISIONS, *PRECISION_NOISE} if precision else set()
    retained = [word for word in raw if word not in dropped]
    loud = [word for word in retained if word not in QUIET] or retained
    words = [piece for word in loud for piece in _pieces(word)]
    quiet = tuple(word for word in retained if word in QUIET)
    return Name(owner, tuple(words), quiet, precision)


def _stored_format(file_type: str) -> str:
    """The format of a GGUF file type; of mixes like Q4_K_XL or IQ3_XS the one of as many bits."""
    bits = re.sub(r"^i?q(\d).*", r"q\1", file_type)
    same = ("q2_k", "q3_k_m", "q4_k_m", "q5_k_m", "q6_k", "q8_0")
    return file_type if file_type in FORMATS else next((f for f in same if f[:2] == bits), "q2_k")


def _pieces(word: str) -> list[str]:
    """`qwen2.5vl` is three words; `r1`, `8b`, `8x7b` and `a3b` are one each; `v3` is 3."""
    version = re.fullmatch(r"v(\d+(?:\.\d+)*)", word)
    if version:
        return _pieces(version[1])
    start = _LETTERS_FIRST.fullmatch(word)
    if start:
        return [start[1], *_pieces(start[2].strip(".") + (start[3] or ""))]
    number = _NUMBER_FIRST.fullmatch(word)
    if number:
        return [number[1], number[2]]
    whole = re.fullmatch(r"(\d+)\.0", word)
    return [whole[1] if whole else word.strip(".")]


def spelled_out(text: str) -> str:
    """A name without the command before it, a tower's size and patch in words.

    CLIP ViT-L/14 is clip-vit-large-patch14; GPTQ-4b-128g has 4 bits, not 4 billion parameters.
    """
    text = re.sub(r"(?i)^ollama\s+(?:run|pull)\s+", "", text)
    text = re.sub(r"(?i)(?<=[-_])([2-8])b(?=[-_]\d+g\b)", r"\1bit", text)
    return re.sub(
        r"(?i)(?<=\w[\s_-])vit[\s_-]?([bslhg])\s*[/_-]\s*(\d\d)\b",
        lambda found: f"vit-{LETTERS[found[1].lower()]}-patch{found[2]}",
        text,
    )


def is_made_of(typed: Name, entry: Name) -> bool:
    """Whether the typed name ends with all of the entry's: Hermes-3-Llama-3.1-8B is of the Llama.

    Words of size, towers and drafts before it make another network of it; a version after the
    base's size may be left out, as in dolphin-mixtral:8x7b.
    """
    bases = {entry.words, entry.words[:-1] if _NUMBER.fullmatch(entry.words[-1]) else entry.words}
    return bool(entry.sizes) and any(_ends_with(typed.words, base) for base in bases)


def _ends_with(words: tuple[str, ...], base: tuple[str, ...]) -> bool:
    first, last = words[: -len(base)], words[-len(base) :]
    is_named = any(len(word) >= MIN_LETTERS and word.isalpha() for word in first)
    return last == base and is_named and not APART & {*first}


def is_other_stage(typed: Name, entry: Name) -> bool:
    """Whether the entry has no more words than a stage of training, and a size."""
    is_sized = bool(entry.sizes or SIZES & {*entry.words})
    return is_sized and {*entry.words} - {*typed.words} <= TRAINED


def is_tuned_from(typed: Name, entry: Name) -> bool:
    """Whether another publisher's name begins as the entry's and has all its words in order.

    acme/Qwen3-8B-Support-v2 and acme/Llama-3.1-Storm-8B keep their base's layers.
    """
    more, rest = list(typed.words), iter(typed.words)
    has_all = all(word in rest for word in entry.words)
    if not has_all or not entry.sizes or typed.owner in ("", entry.owner):
        return False
    for word in entry.words:
        more.remove(word)
    is_other = any(
        word in APART or _SIZE.fullmatch(word) or _ACTIVE.fullmatch(word) for word in more
    )
    return typed.words[0] == entry.words[0] and typed.words[1] == entry.words[1] and not is_other


def without_part(text: str) -> str:
    """Diffusion models are published in parts: people name the whole."""
    return re.sub(r"/(transformer|unet)$", "", text.strip(), flags=re.IGNORECASE)


@cache
def _aliases() -> dict[str, Meant]:
    rows = packaged_rows("gpuplan.catalog", "data/aliases.csv")
    return {take_apart(row["alias"]).key: Meant(row["id"], row["why"]) for row in rows}


def meant_by(text: str) -> Meant | None:
    """The model of a name in wide use; None: it is no such name."""
    return _aliases().get(take_apart(text).key)


def beside(typed: Name, entry: Name) -> Beside | None:
    """What the entry has beside the words typed; None where it lacks one of them."""
    first = typed.words[0] if typed.words else ""
    if first not in entry.key and "x" not in first:  # 16x17b is 17b and 16e
        return None
    left = _left(typed.words, entry)
    if left is None:
        left = _left(_without_owner(typed.words, entry), entry)
    if left is None or not _is_named(typed, entry):
        return None
    numbers = [word for word in left if _NUMBER.fullmatch(word)]
    dates = [word for word in numbers if _DATE.fullmatch(word)]
    soft = [word for word in left if word in SOFT or _ACTIVE.fullmatch(word)]
    n_words = len(left) - len(numbers) - len(soft)
    return Beside(n_words, len(numbers) - len(dates), len(soft), len(dates))


def _without_owner(words: tuple[str, ...], entry: Name) -> tuple[str, ...]:
    """The words typed without those of the publisher: distil-whisper large v3."""
    published = {*re.split(r"[^a-z0-9]+", entry.owner)} - {*entry.words}
    return tuple(word for word in words if word not in published)


def _is_named(typed: Name, entry: Name) -> bool:
    """Whether the words typed carry a name: as the entry begins, or a longer word with a size.

    `nemotron super 49b` is of a name that begins with Llama; `roberta-large` is no `xlm-roberta`.
    """
    plain = [word for word in typed.words if word not in SIZES | SOFT]
    is_long = any(len(word) >= MIN_LETTERS and word.isalpha() for word in plain)
    return bool(plain) and (entry.key.startswith(plain[0]) or (is_long and bool(typed.sizes)))


def _left(words: tuple[str, ...], entry: Name) -> tuple[str, ...] | None:
    """Words of the entry that are not typed; words may be joined or apart on either side."""
    if "".join(words) == entry.key and not _digits_meet(words) and not _digits_meet(entry.words):
        return ()  # deepseekr1
    left, rest = Counter(entry.words), list(words)
    while rest:
        taken = _taken(rest, left, entry.words)
        if taken is None:
            return None
        n_typed, used = taken
        left -= Counter(used)
        rest = rest[n_typed:]
    return tuple(left.elements())


def _taken(
    rest: list[str], left: Counter[str], words: tuple[str, ...]
) -> tuple[int, tuple[str, ...]] | None:
    """How many typed words come next, and the entry's words that they stand for."""
    for n in range(1, len(rest) + 1):
        joined = "".join(rest[:n])
        if left[joined] and not _digits_meet(rest[:n]):  # gemma 3 1b is no 31b
            return n, (joined,)
    runs = (words[i : i + n] for n in (2, 3) for i in range(len(words) - n + 1))
    same = next((run for run in runs if "".join(run) == rest[0] and _has(left, run)), None)
    if same:
        return 1, same
    experts = re.fullmatch(r"(\d+)x(\d+b)", rest[0])  # 16x17b is published as 17B-16E
    pair = (experts[2], f"{experts[1]}e") if experts else ()
    return (1, pair) if pair and _has(left, pair) else None


def _digits_meet(words: Sequence[str]) -> bool:
    return any(a[-1:].isdigit() and b[:1].isdigit() for a, b in pairwise(words))


def _has(left: Counter[str], words: tuple[str, ...]) -> bool:
    return all(left[word] >= n for word, n in Counter(words).items())


def other_spellings(name: Name) -> list[Name]:
    """The name as other people would write it.

    3-1 or 31 for 3.1, 120 for 120b, L3.3 for Llama 3.3, without a stage of training beside a size
    or `open` before a name.
    """
    words, found = name.words, []
    for i, (one, two) in enumerate(pairwise(words)):
        if re.fullmatch(r"\d", one) and re.fullmatch(r"\d", two):
            found.append((*words[:i], f"{one}.{two}", *words[i + 2 :]))
    for i, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"\d{2}", word):
            found.append((*words[:i], f"{word[0]}.{word[1]}", *words[i + 1 :]))
    stages = TRAINED if name.owner else {"base"}  # "70B SFT on 50k samples" is a sentence
    plain = (*words[:1], *(word for word in words[1:] if word not in stages))
    if name.owner and name.sizes:  # a longer context has the same layers
        plain = tuple(word for word in plain if not re.fullmatch(r"\d+k", word))
    if plain != words and (name.sizes or name.date or SIZES & {*plain}):
        found.append(plain)
    short = next((word for word in words if re.fullmatch(r"l(?:2|3(?:\.\d)?)", word)), None)
    if short and name.sizes:
        i = words.index(short)
        found.append((*words[:i], "llama", short[1:], *words[i + 1 :]))
    if words[:1] == ("open",):
        found.append(words[1:])
    if len(words) > 1 and re.fullmatch(r"\d{2,3}", words[-1]) and not name.sizes:
        found.append((*words[:-1], f"{words[-1]}b"))
    return [name._replace(words=spelled) for spelled in found if spelled]


def is_letter_apart(one: str, other: str) -> bool:
    """Whether two words that begin alike differ by one letter more, less, other or swapped.

    Of three letters only two can be swapped: gtp is gpt, and phi is no pho.
    """
    if one[:1] != other[:1] or one == other or abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    i = min(len(one), len(other)) if start is None else start
    swapped = one[:i] + one[i + 1 : i + 2] + one[i : i + 1] + one[i + 2 :]
    rests = ((one[i + 1 :], other[i:]), (one[i:], other[i + 1 :]), (one[i + 1 :], other[i + 1 :]))
    is_long = len(one) > MIN_LETTERS
    return swapped == other or (is_long and any(a == b for a, b in rests))


def without_size(name: Name) -> tuple[Name, float] | None:
    """The name without its size, and that size in parameters; None: it has none, or several."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([bmt])", name.sizes[0]) if name.sizes else None
    if match is None or len(name.sizes) > 1:
        return None
    words = tuple(word for word in name.words if word != name.sizes[0])
    return name._replace(words=words), float(match[1]) * {"m": 1e6, "b": 1e9, "t": 1e12}[match[2]]
