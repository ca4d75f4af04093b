"""Fractional GPUs: MIG geometries from placement rules, and time-slicing."""

from collections import Counter
from collections.abc import Sequence

from gpuplan.domain.hardware.devices import MigProfile
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.selection import SliceGeometry


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRule:
    """Where a slice may lie: first places, and how many places it takes from there."""

    kind: str
    starts: tuple[int, ...]
    n_places: int


def mig_rules(profiles: Sequence[MigProfile]) -> tuple[SliceRule, ...]:
    """Where the MIG profiles of one accelerator may lie: at multiples of their own size.

    Places are slices of memory: eight where there are seven of compute [mig-parted].
    """
    whole = max((profile.memory_bytes for profile in profiles), default=0.0)
    rules = []
    for profile in profiles:
        total = profile.n_compute_slices_total
        n_places = round(profile.memory_bytes / whole * (8 if total == 7 else total))
        starts = tuple(n_places * i for i in range(profile.n_max))
        rules.append(SliceRule(kind=profile.name, starts=starts, n_places=n_places))
    return tuple(rules)


def maximal_geometries(rules: Sequence[SliceRule], *, pool: str) -> tuple[SliceGeometry, ...]:
    """Every set of slices that fits and to which nothing can be added.

    Sets that leave room are never better: slices that nobody asked for cost nothing. Adding up
    sizes is not enough to tell what fits, because places are fixed [mig-parted].
    """
    sets = _placeable(rules)
    kinds = [rule.kind for rule in rules]
    retained = [
        found
        for found in sorted(sets, reverse=True)
        if not any(_adds_to(other, found) for other in sets)
    ]
    return tuple(
        SliceGeometry(
            pool=pool,
            name="+".join(f"{n}x{kind}" for kind, n in zip(kinds, found, strict=True) if n),
            counts=tuple((kind, n) for kind, n in zip(kinds, found, strict=True) if n),
        )
        for found in retained
    )


def time_slices(kind: str, n_per_accelerator: int, *, pool: str) -> SliceGeometry:
    """An accelerator shared in turns: equal slices, no memory of their own."""
    return SliceGeometry(
        pool=pool, name=f"{n_per_accelerator}x{kind}", counts=((kind, n_per_accelerator),)
    )


def _placeable(rules: Sequence[SliceRule]) -> set[tuple[int, ...]]:
    """Counts of every kind, for every way to place slices without overlap."""
    spots = [
        (i, frozenset(range(start, start + rule.n_places)))
        for i, rule in enumerate(rules)
        for start in rule.starts
    ]
    found: set[tuple[int, ...]] = set()

    def place(first: int, taken: frozenset[int], counts: Counter[int]) -> None:
        found.add(tuple(counts[i] for i in range(len(rules))))
        for at in range(first, len(spots)):
            kind, places = spots[at]
            if not places & taken:
                place(at + 1, taken | places, counts + Counter([kind]))

    place(0, frozenset(), Counter())
    return found - {tuple([0] * len(rules))}


def _adds_to(other: tuple[int, ...], found: tuple[int, ...]) -> bool:
    return other != found and all(a >= b for a, b in zip(other, found, strict=True))
