"""A scenario that is being assembled: facts are used once, what is assumed is noted."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import Understood
from gpuplan.errors import Problem
from gpuplan.inputs.documents.document import KeyPath, set_key, show_path
from gpuplan.inputs.words.flags import KEYS, how_to_set
from gpuplan.inputs.words.scan import Fact
from gpuplan.units import DAY

COLLECTED = ("use", "kind", "owned")  # may be stated several times, as lists of names may


class Draft:
    """A tree in the making; every fact is used once, or stays visible."""

    def __init__(self, name: str, facts: Mapping[str, Fact], given: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.given = {KEYS[flag]: value for flag, value in given.items() if value is not None}
        self.tree: dict[str, Any] = {"version": 1, "name": name, "workloads": []}
        self.understood: list[Understood] = []
        self.assumed: list[Assumption] = []

    def value(self, field: str) -> Any:
        """The value of a fact that is not used yet, or None."""
        return self.facts[field].value if field in self.facts else None

    def take(self, field: str) -> Fact | None:
        """A fact, which counts as used from now on."""
        return self.facts.pop(field, None)

    def move(self, field: str, path: KeyPath, factor: float = 1.0) -> bool:
        """Set a key to the value of a fact; False where it was not stated."""
        fact = self.take(field)
        if fact is not None:
            value = fact.value if factor == 1.0 else fact.value * factor
            self.put(path, value, fact.words)
        return fact is not None

    def move_keys(self, at: KeyPath, prefixes: tuple[str, ...]) -> None:
        """Facts that are keys of a workload under their own names."""
        for field in [name for name in self.facts if name.startswith(prefixes)]:
            self.move(field, (*at, *field.split(".")))

    def put(self, path: KeyPath, value: Any, words: str) -> None:
        """Set a key that was stated in these words."""
        plain, change = _plain(value), how_to_set(path)
        self.assumed = [note for note in self.assumed if note.change != change]
        set_key(self.tree, path, plain)
        self.read_as(show_path(path), plain, words)

    def read_as(self, key: str, value: Any, words: str) -> None:
        """Note how words were understood."""
        self.understood.append(Understood(key=key, value=value, words=words))

    def has(self, path: KeyPath) -> bool:
        """Whether a key is set, or will be by a flag."""
        inner: Any = self.tree
        for step in path:
            is_there = step in inner if isinstance(inner, dict) else isinstance(step, int)
            if not is_there:
                return path in self.given
            inner = inner[step]
        return True

    def request(self, at: KeyPath) -> dict[str, Any]:
        """The shape of a workload's requests, by words and by flags."""
        flags = {path[-1]: v for path, v in self.given.items() if path[:-1] == (*at, "request")}
        return {**self.tree["workloads"][at[1]].get("request", {}), **flags}

    def assume(self, path: KeyPath, value: Any, what: str, why: str) -> None:
        """Set a key that neither words nor flags state, and note it."""
        if self.has(path):
            return
        set_key(self.tree, path, value)
        shown = value if isinstance(value, str) else f"{value:g}"
        self.note(what, shown, why, how_to_set(path))

    def note(self, what: str, value: str, why: str, change: str) -> None:
        """Note an assumption."""
        self.assumed.append(Assumption(what=what, value=value, why=why, change=change))


def merged(facts: Iterable[Fact]) -> tuple[dict[str, Fact], list[Problem]]:
    """Facts by field; names are collected, and values that contradict each other are problems."""
    found: dict[str, Fact] = {}
    problems = []
    for fact in facts:
        first = found.get(fact.field)
        if fact.field in COLLECTED or type(fact.value) is tuple:
            found[fact.field] = _joined(first, fact)
        elif first is None:
            found[fact.field] = fact
        elif first.value != fact.value:
            what = f"contradicts {first.words!r}"
            problems.append(Problem(place_of(fact.words, fact.start), what, "keep one of them"))
    for field in [name for name in found if name.startswith(("mean.", "peak."))]:
        _with_peak(found, field.partition(".")[2])
    return found, problems


def _with_peak(found: dict[str, Fact], unit: str) -> None:
    """Rates said to be those of the peak or the mean: the ratio, or that of whole days alone."""
    rate, peak, mean = (found.pop(f"{name}.{unit}", None) for name in ("rate", "peak", "mean"))
    peak, mean = (peak, mean or rate) if peak else (rate, mean)
    if peak is not None and mean is not None:
        ratio = round(max(1.0, peak.value.per_s / max(mean.value.per_s, 1e-9)), 6)
        found.setdefault("demand.peak_to_mean", mean._replace(value=ratio))
    elif mean is not None:
        peak = mean._replace(value=mean.value._replace(period_s=max(DAY, mean.value.period_s)))
    if peak is not None:
        found[f"rate.{unit}"] = peak


def place_of(words: str, start: int) -> str:
    """Words and where they stand, as a person finds them."""
    return f"{words!r} at character {start + 1}"


def _joined(first: Fact | None, fact: Fact) -> Fact:
    value = fact.value if isinstance(fact.value, tuple) else (fact.value,)
    if first is None:
        return fact._replace(value=value)
    both = tuple(dict.fromkeys((*first.value, *value)))
    return first._replace(value=both, words=f"{first.words}, {fact.words}")


def _plain(value: Any) -> Any:
    """Whole numbers without a point, lists for tuples."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value
