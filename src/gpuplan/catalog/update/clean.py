"""Rows made fit to keep, in: rows of a source; out: one price per machine and region.

Which accelerator a cloud means, in: its name for it; out: the ids it may stand for.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import NamedTuple

from gpuplan.catalog.update.rows import PriceRow, RawRow
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.money.market import InstanceShape
from gpuplan.errors import CatalogError, Problem
from gpuplan.units import GBIT, GIB

# A slice's name ends in a number: of cores up to v4 and in v5p, of chips in v5e and v6e.
SLICE = re.compile(r"tpu-(v[0-9]+(?:e|p|litepod)?)-([0-9]+)")
CORES_PER_CHIP = {"v2": 2, "v3": 2, "v4": 2, "v5p": 2, "v5litepod": 1, "v5e": 1, "v6e": 1}


class Identity(NamedTuple):
    """The accelerators that a name may stand for, and how many of them one count is."""

    ids: tuple[str, ...]  # empty: nothing that we plan with
    share: float
    note: str


class Rule(NamedTuple):
    """One line of the table of names."""

    cloud: str
    name: str
    instance: re.Pattern[str]
    identity: Identity


SAFE_TEXT = re.compile(r"[A-Za-z0-9(][A-Za-z0-9 ._:$()+,/&-]*")
MAX_NAME_CHARS = 120
# A price outside is a fault of the source, not an offer: the dearest rented accelerator is at
# $54 an hour, the cheapest share of an old card at five cents.
PLAUSIBLE_USD_PER_ACCELERATOR_H = (0.01, 150.0)
PLAUSIBLE_USD_PER_MACHINE_H = (0.001, 400.0)
ROUNDING_FRAC = 1e-4
NO_REAL_SPOT = frozenset({"runpod", "mithril"})  # these repeat the on-demand price as spot
BID_FLOOR = frozenset({"mithril"})  # an auction: the published figure is the lowest bid
SHARED_TYPE_SPREAD = 4  # sizes this far apart at one price are a placeholder
COUNTED = re.compile(r"^\d+x_")  # names that begin with the number of accelerators
RAM_GROWTH = 1.9  # of memory per accelerator over the smallest machine of the kind; more is a fault

NOT_OURS = "not an accelerator that we plan with"
NO_PRICE = "no on-demand price"
IMPLAUSIBLE = "price outside the plausible band"
FLAT = "one price for every size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What is kept, and how much was left out for which reason."""

    rows: tuple[PriceRow, ...]
    dropped: Mapping[str, int]


def clean(cloud: str, rows: Iterable[RawRow]) -> Cleaned:
    """One price per machine and region; unsafe or impossible figures refuse the whole source."""
    dropped: Counter[str] = Counter()
    groups: dict[tuple[str, str, float | None], list[tuple[RawRow, Identity]]] = defaultdict(list)
    problems: list[Problem] = []
    for row in rows:
        problems += _faults(row)
        identity = _identity(cloud, row)
        if row.accelerator and not identity.ids:
            dropped[NOT_OURS] += 1
        else:
            # A broker lists a machine's spot price as a machine of its own.
            named = row._replace(instance=row.instance.removesuffix("__SPOT"))
            groups[named.instance, row.region, row.ram_gib].append((named, identity))
    if problems:
        raise CatalogError(cloud, problems[:5])
    retained: list[PriceRow] = []
    for zones in groups.values():
        reason, price = _one_price(cloud, zones)
        if price is None:
            dropped[reason] += 1
        else:
            retained.append(price)
    sound = _with_plain_ram(_without_flat(retained))
    if len(sound) < len(retained):
        dropped[FLAT] += len(retained) - len(sound)
    return Cleaned(rows=tuple(sorted(sound, key=_order)), dropped=dict(dropped))


def _identity(cloud: str, row: RawRow) -> Identity:
    if not row.accelerator:
        return Identity((), 1.0, "")
    return identify(cloud, row.accelerator, row.instance)


def _faults(row: RawRow) -> list[Problem]:
    faults = []
    for what, text in (("instance", row.instance), ("accelerator", row.accelerator)):
        if text and (not SAFE_TEXT.fullmatch(text) or len(text) > MAX_NAME_CHARS):
            faults.append(Problem(what, f"unsafe name {text[:40]!r}", "the source must be fixed"))
    # A marketplace prints an unnamed place as ", US, NA".
    if row.region and not SAFE_TEXT.fullmatch(row.region.lstrip(", ") or "-"):
        faults.append(
            Problem("region", f"unsafe name {row.region[:40]!r}", "the source must be fixed")
        )
    numbers = (row.n_accelerators, row.n_vcpu, row.ram_gib, row.usd_per_h, row.spot_usd_per_h)
    for value in numbers:
        if value is not None and not (math.isfinite(value) and value >= 0):
            where = row.instance[:40] or row.accelerator[:40]
            faults.append(Problem(where, f"got {value}", "must be finite and not negative"))
    return faults


def _one_price(cloud: str, zones: Sequence[tuple[RawRow, Identity]]) -> tuple[str, PriceRow | None]:
    """The price over a region's zones: the median, which no single odd zone can move."""
    prices = [row.usd_per_h for row, _ in zones if row.usd_per_h]
    if not prices:
        return NO_PRICE, None
    usd_per_h = median(prices)
    row, identity = zones[0]
    shape = _shape(cloud, row, identity)
    if not _is_plausible(shape, usd_per_h):
        return IMPLAUSIBLE, None
    spots = [row.spot_usd_per_h for row, _ in zones if row.spot_usd_per_h]
    spot = _spot(cloud, usd_per_h, spots)
    return "", PriceRow(shape, row.region.lstrip(", "), usd_per_h, spot)


def _shape(cloud: str, row: RawRow, identity: Identity) -> InstanceShape:
    return InstanceShape(
        cloud=cloud,
        name=row.instance,
        accelerators=identity.ids,
        n_accelerators=row.n_accelerators * identity.share if row.accelerator else 0.0,
        n_vcpu=None if row.n_vcpu is None else round(row.n_vcpu),
        ram_bytes=None if row.ram_gib is None else row.ram_gib * GIB,
        network_bytes_per_s=(
            None if row.network_gbit_per_s is None else row.network_gbit_per_s * GBIT
        ),
        basis="bid-floor" if cloud in BID_FLOOR else row.basis,
        note="; ".join(note for note in (identity.note, row.note) if note),
    )


def _is_plausible(shape: InstanceShape, usd_per_h: float) -> bool:
    if shape.n_accelerators == 0:
        low, high = PLAUSIBLE_USD_PER_MACHINE_H
        return low <= usd_per_h <= high
    low, high = PLAUSIBLE_USD_PER_ACCELERATOR_H
    return low <= usd_per_h / shape.n_accelerators <= high


def _spot(cloud: str, usd_per_h: float, spots: Sequence[float]) -> float | None:
    """The median over zones; None where the source has none, or repeats another price as spot."""
    if cloud in NO_REAL_SPOT or not spots:
        return None
    spot = median(spots)
    if usd_per_h < spot <= usd_per_h * (1 + ROUNDING_FRAC):
        return usd_per_h
    return spot if spot <= usd_per_h else None


def _without_flat(rows: Sequence[PriceRow]) -> list[PriceRow]:
    """Without prices that do not grow with the machine: a source's placeholder."""
    sizes: dict[tuple[object, ...], set[float]] = defaultdict(set)
    for row in rows:
        sizes[_flat_key(row)].add(row.shape.n_accelerators)
    return [row for row in rows if not _is_flat(sizes[_flat_key(row)])]


def _flat_key(row: PriceRow) -> tuple[object, ...]:
    return row.shape.accelerators, row.region, row.usd_per_h


def _is_flat(sizes: set[float]) -> bool:
    positive = [size for size in sizes if size > 0]
    return len(positive) > 1 and max(positive) / min(positive) >= SHARED_TYPE_SPREAD


def _with_plain_ram(rows: Sequence[PriceRow]) -> list[PriceRow]:
    """Memory of machines that differ by their count alone, as that of the smallest times the count.

    A source that multiplies twice lists eight times eight shares for a machine of eight.
    """
    least: dict[str, tuple[float, float]] = {}
    for row in rows:
        n, ram = row.shape.n_accelerators, row.shape.ram_bytes
        family = COUNTED.sub("", row.shape.name)
        if ram is not None and n and family != row.shape.name:
            least[family] = min(least.get(family, (n, ram / n)), (n, ram / n))
    return [_plain_ram(row, least.get(COUNTED.sub("", row.shape.name))) for row in rows]


def _plain_ram(row: PriceRow, least: tuple[float, float] | None) -> PriceRow:
    shape = row.shape
    if least is None or shape.ram_bytes is None or not shape.n_accelerators:
        return row
    (n_least, each), n = least, shape.n_accelerators
    if n <= n_least or shape.ram_bytes / n <= RAM_GROWTH * each:
        return row
    note = "; ".join(filter(None, (shape.note, "memory from the smallest of its kind")))
    return row._replace(shape=replace(shape, ram_bytes=each * n, note=note))


def _order(row: PriceRow) -> tuple[str, float, str, float]:
    return row.shape.name, row.shape.ram_bytes or 0.0, row.region, row.usd_per_h


def identify(cloud: str, name: str, instance: str) -> Identity:
    """What the cloud's name stands for; several ids where the name hides the board or memory."""
    slices = SLICE.fullmatch(name)
    if slices:
        return _slice_identity(slices[1], int(slices[2]))
    wanted = _plain(name)
    for rule in _rules():
        if (
            rule.name == wanted
            and rule.cloud in (cloud, "*")
            and rule.instance.search(instance) is not None
        ):
            return rule.identity
    return Identity((_slug(name),), 1.0, "")


def _slice_identity(generation: str, n_named: int) -> Identity:
    per_chip = CORES_PER_CHIP.get(generation)
    tpu = "tpu-v5e" if generation == "v5litepod" else f"tpu-{generation}"
    if per_chip is None:  # a generation we do not know: its number may count cores or chips
        return Identity((), 1.0, "")
    return Identity((tpu,), n_named / per_chip, "")


@cache
def _rules() -> tuple[Rule, ...]:
    rules = []
    for row in packaged_rows("gpuplan.catalog", "data/offers_names.csv"):
        ids = () if row["ids"] == "-" else tuple(row["ids"].split("|"))
        identity = Identity(ids, float(row["share"] or 1.0), row["note"])
        pattern = re.compile(row["instance"], re.IGNORECASE)
        rules.append(Rule(row["cloud"], _plain(row["name"]), pattern, identity))
    return tuple(rules)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
