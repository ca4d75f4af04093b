"""Which accelerator a cloud means, in: its name for it; out: the ids it may stand for."""

import csv
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

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
    text = files("gpuplan.catalog").joinpath("data", "offers_names.csv").read_text("utf-8")
    rules = []
    for row in csv.DictReader(text.splitlines()):
        ids = () if row["ids"] == "-" else tuple(row["ids"].split("|"))
        identity = Identity(ids, float(row["share"] or 1.0), row["note"])
        pattern = re.compile(row["instance"], re.IGNORECASE)
        rules.append(Rule(row["cloud"], _plain(row["name"]), pattern, identity))
    return tuple(rules)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
