"""The sizes that all parts of a decoder share, under the many names that configurations use.

Checked reading of a configuration: every figure is validated, every problem kept for one report.

Reading goes on after a bad field with a harmless stand-in, so that one pass finds all of them;
`Fields.raise_problems` ends the reading if there were any.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from json import loads
from typing import cast

from gpuplan.catalog.architectures.families import Family, canonical, family_of
from gpuplan.csv_rows import words
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, Problem

MAX_COUNT = 10**8  # no width, vocabulary or expert count comes near
MAX_LIST = 4096  # no network is that deep
STAND_IN = 1
# Sizes without which a configuration describes no network.
CORE = frozenset(words("catalog", "core_size"))


class Notes:
    """What one reading gathers: problems to raise, assumptions to carry."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.assumptions: list[Assumption] = []

    def problem(self, where: str, what: str, fix: str) -> None:
        """Keep a problem, once."""
        found = Problem(where, what, fix)
        if found not in self.problems:
            self.problems.append(found)

    def assume(self, what: str, value: object, why: str, *, change: str = "") -> None:
        """Keep an assumption, once."""
        made = Assumption(
            what=what,
            value=str(value),
            why=why,
            change=change or "give it in config.json",
            source=self.source,
        )
        if made not in self.assumptions:
            self.assumptions.append(made)

    def raise_problems(self) -> None:
        """End here if anything was wrong."""
        if self.problems:
            raise InputError(self.source or "config.json", self.problems)


class Fields:
    """One configuration, or a nested part of it."""

    def __init__(
        self,
        values: Mapping[str, object],
        notes: Notes,
        *,
        where: str = "",
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self.values = values
        self.notes = notes
        self.where = where
        self.defaults = defaults if defaults is not None else {}

    def raw(self, *names: str) -> tuple[str, object]:
        """The first of these names that is given, else that has a default, with its value."""
        for name in names:
            if self.values.get(name) is not None:
                return name, self.values[name]
        if any(name in self.values for name in names):
            return names[0], None  # said to be absent: the usual figure is not meant
        for name in names:
            if self.defaults.get(name) is not None:
                return name, self.defaults[name]
        return names[0], None

    def given(self, *names: str) -> bool:
        """Whether the configuration itself says something here."""
        return any(self.values.get(name) is not None for name in names)

    def maybe(self, *names: str, least: int = 0) -> int | None:
        """A whole number, or None where nothing is said."""
        name, value = self.raw(*names)
        if value is None:
            return None
        number = _whole(value)
        if number is None or not least <= number <= MAX_COUNT:
            found = _shown(value)
            self.bad(name, f"got {found}", f"must be a whole number from {least} to {MAX_COUNT:,}")
            return max(least, STAND_IN)
        return number

    def count(self, *names: str, default: int | None = None) -> int:
        """A positive number; missing is a problem unless a default is given."""
        number = self.maybe(*names, least=1)
        if number is not None and not (default is None and self._is_unsaid(names, number)):
            return number
        if default is not None:
            return default
        self.bad(names[0], "missing", _also(names))
        return STAND_IN

    def _is_unsaid(self, names: Sequence[str], number: int) -> bool:
        """A size that stands in no file: wrong at the top, an assumption in a nested part."""
        if self.given(*names) or not CORE.intersection(names):
            return False
        if self.where and self.values.get("model_type"):
            self.notes.assume(self.path(names[0]), number, "not given; the usual one of its type")
            return False
        return True

    def whole(self, *names: str, default: int = 0) -> int:
        """A number from zero up."""
        number = self.maybe(*names)
        return default if number is None else number

    def number(self, *names: str, default: float = 0.0) -> float:
        """A finite number, not negative."""
        name, value = self.raw(*names)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and math.isfinite(cast(float, value)) and 0 <= cast(float, value) < MAX_COUNT:
            return float(cast(float, value))
        self.bad(name, f"got {_shown(value)}", "must be a finite number, not negative")
        return default or 1.0

    def flag(self, *names: str, default: bool = False) -> bool:
        """A yes or no."""
        name, value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if isinstance(value, int) and value in (0, 1):
            return bool(value)
        self.bad(name, f"got {_shown(value)}", "must be true or false")
        return default

    def text(self, *names: str, default: str = "") -> str:
        """A word."""
        name, value = self.raw(*names)
        if value is None:
            return default
        if isinstance(value, str) and len(value) <= 4096:
            return value
        self.bad(name, f"got {_shown(value)}", "must be a short text")
        return default

    def wholes(self, *names: str) -> tuple[int, ...]:
        """A list of numbers from zero up; a single number is a list of one; empty where absent."""
        name, value = self.raw(*names)
        items = self._list(name, value)
        numbers = [_whole(item) for item in items]
        if all(n is not None and 0 <= n <= MAX_COUNT for n in numbers):
            return tuple(cast(list[int], numbers))
        self.bad(name, f"got {_shown(value)}", "must be a list of whole numbers, none negative")
        return ()

    def texts(self, *names: str) -> tuple[str, ...]:
        """A list of words; empty where absent."""
        name, value = self.raw(*names)
        items = self._list(name, value)
        if all(isinstance(item, str) for item in items):
            return tuple(str(item) for item in items)
        self.bad(name, f"got {_shown(value)}", "must be a list of texts")
        return ()

    def rows(self, name: str) -> tuple["Fields", ...]:
        """A list of nested configurations."""
        items = self._list(name, self.raw(name)[1])
        if all(isinstance(item, Mapping) for item in items):
            nested = [cast(Mapping[str, object], item) for item in items]
            return tuple(
                Fields(item, self.notes, where=self.path(f"{name}[{i}]"))
                for i, item in enumerate(nested)
            )
        self.bad(name, "got something else", "must be a list of objects")
        return ()

    def child(self, *names: str) -> "Fields | None":
        """A nested configuration, with the defaults of its own type."""
        name, value = self.raw(*names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.bad(name, f"got {_shown(value)}", "must be an object")
            return None
        kind = value.get("model_type")
        defaults = class_defaults(kind) if isinstance(kind, str) else {}
        nested_default = self.defaults.get(name)
        if not defaults and isinstance(nested_default, Mapping):
            defaults = nested_default
        return Fields(value, self.notes, where=self.path(name), defaults=defaults)

    def bad(self, name: str, what: str, fix: str) -> None:
        """Keep a problem with this field."""
        self.notes.problem(self.path(name), what, fix)

    def path(self, name: str) -> str:
        """The field as the user finds it in the file."""
        return f"{self.where}.{name}" if self.where else name

    def _list(self, name: str, value: object) -> Sequence[object]:
        if value is None:
            return ()
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
        if isinstance(value, list | tuple) and len(value) <= MAX_LIST:
            return value
        self.bad(name, f"got {_shown(value)}", f"must be a list of at most {MAX_LIST} items")
        return ()


HIDDEN = words("catalog", "hidden_size")
LAYERS = words("catalog", "layers")
HEADS = words("catalog", "heads")
KV_HEADS = words("catalog", "kv_heads")
HEAD_DIM = words("catalog", "head_size")
INNER = words("catalog", "inner_width")
VOCAB = words("catalog", "vocabulary")
CONTEXT = words("catalog", "context")
# Families whose inner width is four times the hidden one when nothing is said.
FOURFOLD = words("catalog", "fourfold_family")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of a decoder and the configuration that they came from."""

    f: Fields
    model_type: str
    family: Family
    hidden: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    v_head_dim: int
    max_context: int | None
    cross_tokens: int | None = None  # what cross-attention layers see of the other stack

    def biases(self, letters: str) -> bool:
        """Whether any projection among these letters has a bias."""
        if any(letter in self.family.bias for letter in letters):
            return True
        flags = self.family.flags
        return any(
            self.f.flag(name) for name, where in flags if any(letter in where for letter in letters)
        )

    def norm(self, width: int) -> int:
        """Parameters of one norm over this many channels."""
        return self.family.norm_terms * width


def read_shape(f: Fields, model_type: str) -> Shape:
    """The sizes, each checked; heads must divide as the arithmetic needs."""
    kind = canonical(model_type)
    hidden = f.count(*HIDDEN)
    n_layers = _n_layers(f)
    n_heads = 1 if kind in ATTENTION_FREE else f.count(*HEADS)
    head_dim = _head_dim(f, hidden, n_heads)
    n_kv_heads = _n_kv_heads(f, kind, n_heads)
    shape = Shape(
        f=f,
        model_type=kind,
        family=family_of(model_type),
        hidden=hidden,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        v_head_dim=f.count("v_head_dim", default=head_dim),
        max_context=f.maybe(*CONTEXT, least=1),
    )
    _check_heads(f, shape)
    return shape


ATTENTION_FREE = ("mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm")


def _n_layers(f: Fields) -> int:
    listed = max(len(f.texts("layers_block_type")), len(f.text("hybrid_override_pattern")))
    n_layers = f.count(*LAYERS, default=listed or None)
    if n_layers > 4096:
        f.bad(LAYERS[0], f"got {n_layers:,}", "no network has more than 4,096 layers")
        return 1
    return n_layers


def _head_dim(f: Fields, hidden: int, n_heads: int) -> int:
    if f.given("head_dim") or not hidden % n_heads:
        return f.count(*HEAD_DIM, default=max(1, hidden // n_heads))
    found = f.maybe(*HEAD_DIM, least=1)
    is_known = hidden != STAND_IN  # else the width itself is the problem, and told
    if found is None and is_known and not f.given("kv_lora_rank"):
        f.bad(HEADS[0], f"{n_heads} heads do not divide {hidden} channels", "fix it or head_dim")
    return found or 1


def _n_kv_heads(f: Fields, kind: str, n_heads: int) -> int:
    if kind == "falcon" and is_new_falcon(f, n_heads):
        return f.count(*KV_HEADS, default=n_heads)
    if kind in ("falcon", "gpt_bigcode"):
        return 1 if f.flag("multi_query", default=True) else n_heads
    if kind == "chatglm" and not f.flag("multi_query_attention"):
        return n_heads
    config = f.child("attn_config")
    if config is not None and config.given("kv_n_heads"):
        return config.count("kv_n_heads")
    found = f.maybe(*KV_HEADS, least=1)
    is_misfit = found is not None and not f.given(*KV_HEADS) and n_heads % found
    return n_heads if found is None or is_misfit else found


def is_new_falcon(f: Fields, n_heads: int) -> bool:
    """The decoder of Falcon 40B and 180B: grouped heads, two norms."""
    n_kv_heads = f.maybe(*KV_HEADS, least=1) if f.given(*KV_HEADS) else None
    is_grouped = n_kv_heads is not None and 1 < n_kv_heads < n_heads
    return f.flag("new_decoder_architecture", default=is_grouped) or (
        is_grouped and not f.given("new_decoder_architecture")
    )


def _check_heads(f: Fields, shape: Shape) -> None:
    is_known = shape.n_heads != STAND_IN or f.given(*HEADS)
    if is_known and shape.n_heads % shape.n_kv_heads and "latent" not in shape.family.mixer:
        f.bad(
            KV_HEADS[0],
            f"{shape.n_heads} query heads are not a multiple of {shape.n_kv_heads}",
            "each KV head serves the same number of query heads",
        )


@cache
def _default_lines() -> dict[str, str]:
    path = files("gpuplan.catalog").joinpath("data/model_defaults.jsonl")
    # Each line opens with its type, so that one is parsed and not seven hundred.
    return {line.split('"', 4)[3]: line for line in path.read_text("utf-8").splitlines() if line}


@cache
def class_defaults(model_type: str) -> Mapping[str, object]:
    """Figures that a configuration of this type leaves out when they are the usual ones."""
    line = _default_lines().get(model_type)
    return loads(line) if line else {}


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _also(names: Sequence[str]) -> str:
    others = f" (or {', '.join(names[1:4])})" if len(names) > 1 else ""
    return f"add it{others}"
