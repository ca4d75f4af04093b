"""Find a model: by catalog id, by the name that people type, or by the path of a `config.json`.

Never a network call. Ambiguity is told; a precision in the name is kept as the stored one.
"""

import json
import re
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.config_files import config_path, from_file, refused
from gpuplan.catalog.contexts import with_context
from gpuplan.catalog.model_names import (
    NEUTRAL,
    Meant,
    Name,
    beside,
    is_letter_apart,
    is_made_of,
    is_other_stage,
    is_tuned_from,
    meant_by,
    other_spellings,
    spelled_out,
    take_apart,
    without_part,
    without_size,
)
from gpuplan.domain.model.layers import Experts
from gpuplan.domain.model.network import Checkpoint, Model, Part
from gpuplan.domain.model.precision import FORMATS, NumberFormat
from gpuplan.domain.provenance import Assumption

MAX_NAME = 300
SAME_LAYERS = "all that match have the same layers"
RECALLED = "recalled; parameter count agrees with the published one"
VOCABULARY_SLACK = 0.005
ROUNDED_SIZE = 0.06  # 14b for 14.7 billion parameters
N_SHOWN = 3
MIN_TYPED = 3  # letters of a word that may be mistyped
TUNED = {"instruct", "chat", "it"}  # what people serve
LINEAR: tuple[Part, ...] = ("attention", "feed_forward", "experts", "shared_experts")


class Entry(NamedTuple):
    """A line of the catalog's table."""

    id: str
    name: Name
    line: str


def find_model(text: str) -> Model:
    """The model that this id, name or path means."""
    wanted = spelled_out(text.strip())
    if not wanted or len(wanted) > MAX_NAME or not wanted.isprintable():
        raise refused(wanted[:40], "is no name of a model", "give an id, a name or a config.json")
    exact = _by_id().get(text.strip().lower()) or _by_id().get(wanted.lower())
    if exact is not None:
        return _with_precision(_read(exact), exact.name.precision)
    path = config_path(wanted)
    if path is not None:
        return from_file(path)
    return _by_name(wanted)


def is_model_name(text: str) -> bool:
    """Whether the text is a model's whole name, or a common name of one."""
    return meant_by(text) is not None or _plain(text) in _by_spelling()


def may_be_model(text: str) -> bool:
    """Whether a text means some model or file; cheaper than the refusal that names the nearest."""
    wanted = text.strip()
    is_known = wanted.lower() in _by_id() or config_path(wanted) is not None
    return is_known or meant_by(wanted) is not None or bool(_nearest_of(wanted, take_apart(wanted)))


def models_in_catalog() -> tuple[str, ...]:
    """Ids of all models whose figures are in the package."""
    return tuple(entry.id for entry in _entries())


@cache
def _entries() -> tuple[Entry, ...]:
    path = files("gpuplan.catalog").joinpath("data/models.jsonl")
    lines = [line for line in path.read_text("utf-8").splitlines() if line]
    # Each line opens with its id: one is parsed, not all.
    ids = [line.split('"', 4)[3] for line in lines]
    return tuple(Entry(id, take_apart(id), line) for id, line in zip(ids, lines, strict=True))


@cache
def _by_id() -> dict[str, Entry]:
    return {entry.id.lower(): entry for entry in _entries()}


def _by_name(text: str) -> Model:
    name = take_apart(text)
    meant = None if _plain(text) in _by_spelling() else meant_by(text)
    if meant is not None:
        return _reported(text, name, _read(_by_id()[meant.id.lower()]), meant=meant)
    found = _nearest_of(text, name)
    if not found:
        raise refused(text, "is not in the catalog", _nearest(name))
    models = [_read(entry) for entry in found]
    if not all(_is_alike(model, models[0]) for model in models):
        shown = list(dict.fromkeys(without_part(model.name) for model in models))
        more = f" and {len(shown) - N_SHOWN} more" if len(shown) > N_SHOWN else ""
        fix = f"say which: {', '.join(shown[:N_SHOWN])}{more}"
        raise refused(text, "could be several models", fix)
    return _reported(text, name, models[0], meant=Meant(found[0].id, _why(name, found[0])))


@cache
def _by_spelling() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in _entries():
        found.setdefault(_plain(entry.id), []).append(entry)
    return found


def _why(name: Name, entry: Entry) -> str:
    if any(_is_base(entry, spelling) for spelling in (name, *other_spellings(name))):
        return "its name says that it is made of this; its own configuration is not in the catalog"
    if not name.generation and entry.name.generation:
        family = [e for e in _entries() if e.name.words[:1] == entry.name.words[:1]]
        same = {e.id for e in family if e.name.sizes == entry.name.sizes}
        older = sorted(
            i for i in same if _by_id()[i.lower()].name.generation < entry.name.generation
        )
        return "the newest generation in this size" + (
            f"; older: {', '.join(older[:3])}" if older else ""
        )
    return SAME_LAYERS


def _nearest_of(text: str, name: Name) -> list[Entry]:
    """Entries that a name can mean and that have the least beside it, the best first."""
    published = _by_spelling().get(_plain(text), [])  # what a publisher writes so is itself
    for spelling in (name, *other_spellings(name), *_respelled(name)):
        found = published or _meanings(spelling, text)
        found = found or (_of_size(spelling, text) if name.sizes else [])  # phi-7 is no size
        if found:
            stored = _of_precision(name, found)
            own = [e for e in stored if name.owner and e.name.owner == name.owner] or stored
            retained = _as_typed(text, name, own)
            return sorted(retained, key=lambda entry: _rank(text, name, entry))
    is_one_word = len(text.split()) == 1  # in a sentence, what stands before is no name
    return _bases(text, name) if is_one_word else []


def _bases(text: str, name: Name) -> list[Entry]:
    """Entries that a fine-tune's name says it is made of, the best first."""
    spellings = (name, *other_spellings(name))
    made_of = [e for e in _entries() if any(_is_base(e, spelling) for spelling in spellings)]
    most = max((len(entry.name.words) for entry in made_of), default=0)
    longest = [entry for entry in made_of if len(entry.name.words) == most]
    return sorted(_of_precision(name, longest), key=lambda entry: _rank(text, name, entry))


def _is_base(entry: Entry, name: Name) -> bool:
    return is_made_of(name, entry.name) or is_tuned_from(name, entry.name)


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(w for e in _entries() for w in e.name.words if w.isalpha())


def _respelled(name: Name) -> list[Name]:
    """The name with its one unknown word as the catalog spells it, a letter apart: quen, lllama.

    Only beside a number, and with the same first letter: samba is no mamba.
    """
    known = _vocabulary()
    odd = [w for w in name.words if w.isalpha() and len(w) >= MIN_TYPED and w not in known]
    near = [w for w in known for typed in odd if is_letter_apart(typed, w)]
    if len(odd) != 1 or len(near) != 1 or not any(map(str.isdigit, name.key)):
        return []
    words = tuple(near[0] if word == odd[0] else word for word in name.words)
    return [name._replace(words=words)]


def _meanings(name: Name, text: str) -> list[Entry]:
    """The newest generation of what has all words typed and the fewest beside them.

    A whole id means its own checkpoint and never a relative.
    """
    all_of = [(beside(name, entry.name), entry) for entry in _entries()]
    found = [(more, entry) for more, entry in all_of if more is not None]
    if "/" in without_part(text):
        own = [entry for more, entry in found if not any(more)]
        return own or [entry for _, entry in found if is_other_stage(name, entry.name)]
    fewest = min((more.n_words for more, _ in found), default=0)
    nearest = [entry for more, entry in found if more.n_words == fewest]
    newest = max((entry.name.generation for entry in nearest), default=())
    if name.generation or not name.sizes:
        return nearest
    return [entry for entry in nearest if entry.name.generation == newest]


def _of_size(name: Name, text: str) -> list[Entry]:
    """Entries without a size in their name that have the parameters typed: `phi4:14b`."""
    parts = without_size(name)
    words = parts[0] if parts else name
    found = [entry for entry in _entries() if beside(words, entry.name) is not None]
    return [
        entry
        for entry in found
        if parts
        and not entry.name.sizes
        and abs(_read(entry).n_params - parts[1]) < ROUNDED_SIZE * parts[1]
    ]


def _of_precision(name: Name, found: list[Entry]) -> list[Entry]:
    for precision in (name.precision, ""):
        retained = [entry for entry in found if entry.name.precision == precision]
        if retained:
            return retained
    return found


def _as_typed(text: str, name: Name, found: list[Entry]) -> list[Entry]:
    """A name typed whole means that one, not its relatives; `instruct` means one that says so."""
    whole = [entry for entry in found if _plain(entry.id) == _plain(text)]
    tuned = [entry for entry in found if TUNED & {*name.quiet} & {*entry.name.quiet}]
    return whole or tuned or found


def _plain(text: str) -> str:
    return re.sub(r"[\s_:]+", "-", without_part(text).lower().strip().rpartition("/")[2])


def _joined(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _plain(text))


def _rank(text: str, name: Name, entry: Entry) -> tuple[object, ...]:
    """Names that begin as the user typed first, then what is served, then the newest."""
    more = beside(name, entry.name)
    date, begins = entry.name.date, _joined(entry.id).startswith(_joined(text))
    return (
        not begins,
        -len(set(name.quiet) & set(entry.name.quiet)),
        more.n_soft if more else 0,
        bool(date),
        -int(date or 0),
        not name.generation and not begins and not TUNED & set(entry.name.quiet),
        len(entry.id),
        entry.id,
    )


def _is_alike(one: Model, other: Model) -> bool:
    """Same layers and caches; a few more rows of vocabulary make no other model."""
    is_near = abs(one.n_params / other.n_params - 1) < VOCABULARY_SLACK
    return is_near and one.stacks == other.stacks


def _reported(text: str, name: Name, model: Model, *, meant: Meant) -> Model:
    entry, notes = _by_id()[meant.id.lower()], list(model.assumptions)
    if _plain(entry.id) != _plain(text):
        why = f"{text!r} is read as this: {meant.why}"
        notes.append(Assumption(what="model", value=entry.id, why=why, change="MODEL"))
    if "gguf" in name.quiet and not name.precision:
        form = model.checkpoint.quantized or model.checkpoint.base
        why = "a GGUF repository holds files of many; the name says none, such as Q4_K_M"
        notes.append(
            Assumption(what="stored precision", value=form.name, why=why, change="--precision")
        )
    assumed = replace(model, assumptions=tuple(notes))
    if entry.name.precision and not name.precision:
        return _unquantized(assumed, entry, text)
    is_other = name.precision != entry.name.precision
    is_others = is_other or name.owner not in ("", entry.name.owner)
    if is_others and entry.name.precision:  # how another build stores its KV cache says nothing
        assumed = replace(assumed, checkpoint=replace(assumed.checkpoint, cache=None))
    return _with_precision(assumed, name.precision, is_other=is_other)


def _unquantized(model: Model, entry: Entry, text: str) -> Model:
    """The model that a quantized build was made of, where only the build is in the catalog.

    It is stored as its relatives of one architecture are: some makers train in 8 or 4 bits.
    """
    relatives = [_read(e) for e in _entries() if _kind(e) == _kind(entry) and not e.name.precision]
    stored = next((m.checkpoint for m in relatives), Checkpoint(base=model.checkpoint.base))
    form = stored.quantized or stored.base
    why = f"the name says nothing of {entry.name.precision}; the layers are those of {entry.id}"
    note = Assumption(what="stored precision", value=form.name, why=why, change="--precision")
    plain = re.sub(f"-{entry.name.precision}", "", entry.id, flags=re.IGNORECASE)
    name = text.strip() if "/" in text else plain
    notes = (*model.assumptions, note)
    return replace(model, name=name, checkpoint=stored, assumptions=notes)


@cache
def _kind(entry: Entry) -> str:
    return str(json.loads(entry.line)["config"].get("model_type"))


def _with_precision(model: Model, precision: str, *, is_other: bool = False) -> Model:
    """The model stored as its name says, where its configuration is silent or of another."""
    if not precision or (model.checkpoint.quantized is not None and not is_other):
        return model
    form = FORMATS[precision]
    if form == model.checkpoint.base and model.checkpoint.quantized is None:
        return model
    rest = "; embeddings and head stay in 16 bits" if form.is_quantized else ""
    why = f"the name says so{rest}"
    note = Assumption(what="stored precision", value=precision, why=why, change="--precision")
    checkpoint = _stored_as(form, model)
    return replace(model, checkpoint=checkpoint, assumptions=(*model.assumptions, note))


def _stored_as(form: NumberFormat, model: Model) -> Checkpoint:
    if not form.is_quantized:
        return Checkpoint(base=form)
    # Four-bit floats are published with attention left as it was where experts hold the bulk.
    parts = LINEAR[1:] if model.is_moe and form.compute == "fp4" else LINEAR
    there = {part for part in parts if part in _linear_parts(model)}
    retained = tuple(part for part in parts if part in there)
    base = model.checkpoint.base
    return Checkpoint(base=base, quantized=form, parts=retained, cache=model.checkpoint.cache)


def _linear_parts(model: Model) -> set[Part]:
    found: set[Part] = {"attention"}
    for group in model.main.groups:
        feed = group.feed_forward
        if isinstance(feed, Experts):
            found |= {"experts", "shared_experts"} if feed.shared else {"experts"}
        elif feed is not None:
            found.add("feed_forward")
    return found


def _nearest(name: Name) -> str:
    """The three entries that share most words with the name; of a strange one, of its size."""
    keys = {entry.name.key: entry for entry in _entries()}
    near = [keys[key] for key in get_close_matches(name.key, keys, n=12, cutoff=0.5)]
    sized = [entry for entry in _entries() if {*entry.name.sizes} & {*name.sizes}]
    alike = [e for e in near if _shared(name, e)] or sized or near
    alike.sort(key=lambda entry: (-_shared(name, entry), entry not in sized))
    if not alike:
        return "list what is there, or give the path of its config.json"
    shown = dict.fromkeys(without_part(entry.id) for entry in alike)
    return "nearest: " + ", ".join([*shown][:N_SHOWN])


def _shared(name: Name, entry: Entry) -> int:
    """Words in both, beside those that any name can have."""
    return len({*name.words} & {*entry.name.words} - {*name.sizes} - NEUTRAL)


@lru_cache(maxsize=64)
def _read(entry: Entry) -> Model:
    row = json.loads(entry.line)
    config = row["config"]
    model = with_context(read_model(config, name=entry.id, source=row["source"]), config)
    if row["kind"] != RECALLED:
        return model
    note = Assumption(
        what="figures",
        value="recalled",
        why="entered from general knowledge and checked by its parameter count only",
        change="the path of its config.json",
    )
    return replace(model, assumptions=(*model.assumptions, note))
