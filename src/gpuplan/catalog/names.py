"""What people call accelerators, in: text as typed or printed by a tool; out: a catalog item.

Ambiguity is told: the usual variant is taken with an assumption that names the others, and where
no variant is usual the text is refused with the list.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from gpuplan.catalog.families import FAMILIES, NOISE, REWRITES, Family
from gpuplan.catalog.offers import machines_named
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.hardware.catalog import AcceleratorChoice, Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.units import GIB

MAX_LENGTH = 200
N_SHOWN = 3
KEPT_BACK = 0.08  # of the memory on a board, at most
_COUNT_FIRST = re.compile(  # 8 x H100, 8x 4090; 3090 4090 counts nothing
    r"(?i)^(?P<n>\d{1,6})\s*(?:[x×*]\s*|\s)(?=\D*[a-z]|(?<!\d{4}\s)\d{4})(?P<name>.+)$"
)
_COUNT_LAST = re.compile(  # H100 x8, H100:8, MI300X 8x
    r"(?i)^(?P<name>.+?)(?:\s*[x×*:]\s*|\s+(?=\d+\s*[x×]$))(?P<n>\d{1,6})(?:\s*[x×])?$"
)
_SLICE = re.compile(r"^(?:tpu[\s_-]*)?(v4|v5p|v5e|v5litepod|v6e)-(\d{1,6})$", re.IGNORECASE)
_REMARK = re.compile(r"\(([^()]*)\)")
_MEMORY = re.compile(r"^(\d{2,3})$|^(\d{1,4})gi?b?$")  # 40, 40g, 40GB
_FORM = re.compile(r"^(sxm|pcie|nvl|oam)\d*$")
_MEMORY_KIND = re.compile(r"^(?:hbm|gddr)\d\w?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stated:
    """What a text says: which family, and which properties narrow it down."""

    family: Family
    memory_gib: int | None = None
    form: str = ""
    memory_kind: str = ""
    ignored: tuple[str, ...] = ()


def find_accelerator(text: str, catalog: Catalog) -> AcceleratorChoice:
    """The accelerator and count that the text means; InputError where it means none."""
    wanted = " ".join(text.split())
    if not wanted or len(wanted) > MAX_LENGTH:
        raise _refusal(text, "empty" if not wanted else "too long", _examples(catalog))
    try:
        choice = _chosen(wanted, catalog, text=text)
    except InputError as error:
        rented = _rented(wanted, catalog)
        if rented is None and not wanted.endswith("s"):
            raise error from None
        choice = rented or _chosen(wanted.removesuffix("s"), catalog, text=text)  # a plural
    return _with_status(choice)


def _chosen(wanted: str, catalog: Catalog, *, text: str) -> AcceleratorChoice:
    exact = _exact(wanted, catalog)
    if exact is not None:
        return AcceleratorChoice(accelerator=exact, n_accelerators=1)
    sliced = _tpu_slice(wanted, catalog)
    if sliced is not None:
        return sliced
    return _counted(wanted, catalog) or _described(wanted, catalog, text=text)


def _rented(wanted: str, catalog: Catalog) -> AcceleratorChoice | None:
    """What a cloud's machine of this name carries; None where no one accelerator is meant.

    `p5.48xlarge` is a machine and its eight accelerators, `p5` or `ND H100 v5` a kind of machine.
    """
    machines = machines_named(wanted)
    carried = {name for machine in machines for name in machine.accelerators}
    found = catalog.accelerators.get(AcceleratorId(next(iter(carried), "")))
    if found is None or len(carried) > 1:
        return None
    n = int(machines[0].n_accelerators) if len(machines) == 1 else 1
    names = ", ".join(sorted({f"{machine.cloud} {machine.name}" for machine in machines})[:3])
    note = Assumption(
        what=f"machine {wanted!r}",
        value=f"{n} x {found.id}" if n > 1 else str(found.id),
        why=f"what {names} carries",
        change=f"--on {found.id}",
    )
    return AcceleratorChoice(accelerator=found, n_accelerators=max(1, n), assumptions=(note,))


def _with_status(choice: AcceleratorChoice) -> AcceleratorChoice:
    """The choice with a word where its figures are those of an announcement."""
    card = choice.accelerator
    if not card.is_announced:
        return choice
    note = Assumption(
        what=f"figures of {card.name}",
        value="announced",
        why="no shipment is known; the maker's figures before release may change",
        change=f"an overlay with what was measured on {card.id}",
    )
    return replace(choice, assumptions=(*choice.assumptions, note))


def nearest_ids(text: str, catalog: Catalog, n: int = 3) -> list[str]:
    """Catalog ids that look most like the text."""
    words = {_key(item): str(item) for item in catalog.accelerators}
    words |= {_key(a.name): str(a.id) for a in catalog.accelerators.values()}
    words |= {w: str(f.ids[0]) for w, f in _FAMILY_BY_WORD if f.ids[0] in catalog.accelerators}
    close = get_close_matches(_key(text), words, n=2 * n, cutoff=0.6)
    return list(dict.fromkeys(words[word] for word in close))[:n]


def _exact(wanted: str, catalog: Catalog) -> Accelerator | None:
    found = catalog.accelerators.get(AcceleratorId(wanted.lower()))
    if found is not None:
        return found
    key = _key(wanted)
    same = [a for a in catalog.accelerators.values() if key in (_key(a.id), _key(a.name))]
    return same[0] if len(same) == 1 and key else None


def _counted(wanted: str, catalog: Catalog) -> AcceleratorChoice | None:
    """The choice where the text carries a count, such as 8xH100 or H100:8."""
    for pattern in (_COUNT_FIRST, _COUNT_LAST):
        match = pattern.match(wanted)
        if match is None:
            continue
        name, n_accelerators = match["name"].strip(), int(match["n"])
        exact = _exact(name, catalog)
        if exact is None and _family(_tokens(name))[0] is None:
            continue  # the x of RTX6000 counts nothing
        if n_accelerators < 1:
            raise _refusal(wanted, "a count of 0", "count from 1")
        if exact is not None:
            return AcceleratorChoice(accelerator=exact, n_accelerators=n_accelerators)
        return replace(_described(name, catalog, text=wanted), n_accelerators=n_accelerators)
    return None


def _tpu_slice(wanted: str, catalog: Catalog) -> AcceleratorChoice | None:
    """Google's slice names: v4-N and v5p-N count cores, two to a chip; v5e-N and v6e-N chips."""
    match = _SLICE.match(wanted)
    if match is None:
        return None
    version, n = match[1].lower().replace("litepod", "e"), int(match[2])
    found = catalog.accelerators.get(AcceleratorId(f"tpu-{version}"))
    cores_per_chip = 2 if version in ("v4", "v5p") else 1
    if found is None or n < cores_per_chip or n % cores_per_chip:
        return None
    n_chips = n // cores_per_chip
    note = Assumption(
        what=f"slice {wanted}",
        value=f"{n_chips} chips",
        why="the name counts cores, two to a chip" if cores_per_chip == 2 else "it counts chips",
        change=f"--on {n}x{found.id} for {n} chips",
    )
    return AcceleratorChoice(accelerator=found, n_accelerators=n_chips, assumptions=(note,))


def _described(name: str, catalog: Catalog, *, text: str) -> AcceleratorChoice:
    stated = _read(name, catalog, text=text)
    ids = [i for i in stated.family.ids if i in catalog.accelerators]
    if not ids:
        raise _refusal(text, "in no catalog at hand", _examples(catalog))
    fitting = [catalog.accelerators[i] for i in ids if _fits(catalog.accelerators[i], stated)]
    if not fitting and len(ids) == 1 and _is_rounded(catalog.accelerators[ids[0]], stated):
        fitting = [catalog.accelerators[ids[0]]]
    if not fitting:
        raise _refusal(
            text, "no variant has these properties together", f"choose from {', '.join(ids)}"
        )
    chosen, assumptions = _one_of(fitting, stated, text=text)
    if stated.ignored:
        why = f"{' '.join(stated.ignored)!r} names no property of it"
        what, change = "words in the accelerator's name", f"--on {chosen.id}"
        assumptions += (Assumption(what=what, value="ignored", why=why, change=change),)
    return AcceleratorChoice(accelerator=chosen, n_accelerators=1, assumptions=assumptions)


def _one_of(
    fitting: list[Accelerator], stated: _Stated, *, text: str
) -> tuple[Accelerator, tuple[Assumption, ...]]:
    family = stated.family
    others = [a.id for a in fitting]
    if len(fitting) == 1:
        return fitting[0], ()
    usual = next((a for i in family.usual for a in fitting if a.id == i), None)
    if usual is None:
        what = f"stands for {', '.join(others)}"
        raise _refusal(text, what, f"say which, e.g. {others[0]}")
    others.remove(usual.id)
    note = Assumption(
        what=f"accelerator {text!r}",
        value=usual.id,
        why=f"{family.why}; it could also be {', '.join(others)}",
        change=" or ".join(f"--on {i}" for i in others),
    )
    return usual, (note,)


def _read(name: str, catalog: Catalog, *, text: str) -> _Stated:
    """What the words say; words in brackets are remarks and may be ignored, others may not."""
    plain, remarks = _REMARK.sub(" ", name), " ".join(_REMARK.findall(name))
    family, rest = _family(_tokens(plain))
    if family is None:
        family, rest = _family(_tokens(remarks))
        if family is None:
            raise _unknown(text, catalog)
        return _properties(rest, _Stated(family=family))
    stated = _properties(rest, _Stated(family=family))
    if "mig" in stated.ignored:
        raise _refusal(text, "a MIG slice", "name the whole accelerator, then choose a profile")
    if stated.ignored:
        known = ", ".join(i for i in family.ids if i in catalog.accelerators)
        raise _refusal(text, f"{' '.join(stated.ignored)!r} not understood", f"choose from {known}")
    return replace(stated, ignored=tuple(_tokens(remarks)))


def _family(tokens: list[str]) -> tuple[Family | None, list[str]]:
    """The family that the longest leading word names, and the other words."""
    for n, token in enumerate(tokens):
        for word, family in _FAMILY_BY_WORD:
            if token.startswith(word):
                rest = token.removeprefix(word)
                return family, [*tokens[:n], *([rest] if rest else []), *tokens[n + 1 :]]
    return None, tokens


def _properties(tokens: Iterable[str], stated: _Stated) -> _Stated:
    """The family narrowed by what the words say; words that say nothing are kept as ignored."""
    tokens = list(tokens)
    sizes = {found[1] or found[2] for found in map(_MEMORY.match, tokens) if found}
    for token in tokens:
        memory, form = _MEMORY.match(token), _FORM.match(token)
        if token in stated.family.noise or token in NOISE or (memory and len(sizes) > 1):
            continue  # of two sizes, none is stated
        if memory:
            stated = replace(stated, memory_gib=int(memory[1] or memory[2]))
        elif form:
            stated = replace(stated, form=form[1])
        elif token in ("hgx", "dgx"):
            stated = replace(stated, form="sxm")
        elif _MEMORY_KIND.match(token):
            stated = replace(stated, memory_kind=token)
        else:
            stated = replace(stated, ignored=(*stated.ignored, token))
    return stated


def _fits(accelerator: Accelerator, stated: _Stated) -> bool:
    memory_gib = round(accelerator.memory.marketed_bytes / GIB)
    return (
        stated.memory_gib in (None, memory_gib)
        and stated.form in ("", _form(accelerator))
        and stated.memory_kind in ("", accelerator.memory.kind.lower())
    )


def _is_rounded(accelerator: Accelerator, stated: _Stated) -> bool:
    """Whether only the memory differs, by as much as is kept back: B200 has 192 GB, 180 to use."""
    share = (stated.memory_gib or 0) * GIB / accelerator.memory.marketed_bytes
    return abs(share - 1) < KEPT_BACK and _fits(accelerator, replace(stated, memory_gib=None))


def _form(accelerator: Accelerator) -> str:
    if "nvl" in accelerator.id:
        return "nvl"
    return re.sub(r"\d|\W.*$", "", accelerator.form_factor.lower())


def _tokens(text: str) -> list[str]:
    lowered = text.lower()
    for pattern, replacement in REWRITES:
        lowered = pattern.sub(replacement, lowered)
    return [token for token in re.split(r"[^a-z0-9+]+", lowered) if token]


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _unknown(text: str, catalog: Catalog) -> PlannerError:
    gone = next((row for row in RETIRED if _key(row["accelerator"]) in _key(text)), None)
    if gone is not None:
        what = f"{gone['accelerator']} is retired and has no figures here ({gone['why']})"
        return _refusal(text, what, "name one of its successors, or describe it in an overlay")
    close = _of_architecture(text, catalog)[:N_SHOWN] or nearest_ids(text, catalog)
    fix = f"did you mean {', '.join(close)}" if close else _examples(catalog)
    return _refusal(text, "no such accelerator in the catalog", fix)


def _of_architecture(text: str, catalog: Catalog) -> list[str]:
    """Boards of the architecture that the text names, those with its other words first: Hopper."""
    words = {*_tokens(text)}
    made = [a for a in catalog.accelerators.values() if a.family.lower() in words]
    near = sorted(made, key=lambda a: -sum(word in _key(a.name) for word in words))
    return [str(a.id) for a in near]


def _examples(catalog: Catalog) -> str:
    some = ", ".join(list(catalog.accelerators)[:3])
    return f"give one of the catalog, such as {some}; list them with `gpuplan catalog list`"


def _refusal(text: str, what: str, fix: str) -> PlannerError:
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return one(InputError, "accelerator", repr(shown), what, fix)


RETIRED = packaged_rows("gpuplan.catalog", "data/retired.csv")
_FAMILY_BY_WORD = sorted(
    ((word, family) for family in FAMILIES for word in family.words),
    key=lambda pair: -len(pair[0]),
)
