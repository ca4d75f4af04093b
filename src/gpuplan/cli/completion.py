"""What TAB offers where a value is a name of the catalog; files are offered by the shell itself."""

import re
from collections.abc import Iterable
from typing import NamedTuple

COUNTED = re.compile(r"((?:.*,)?\s*(?:\d+x)?)(.*)", re.DOTALL)


class Offer(NamedTuple):
    """One completion, as the shell's protocol needs it."""

    value: str
    help: str
    type: str = "plain"


def model_names(incomplete: str) -> list[str]:
    """Models of the catalog that begin like this, with or without their owner."""
    from gpuplan.catalog.models import models_in_catalog

    ids = models_in_catalog()
    names = {*ids, *(name.rpartition("/")[2] for name in ids)}
    return _beginning(incomplete, sorted(names))


def accelerator_names(incomplete: str) -> list[str]:
    """Accelerators that begin like this; a count (8x) and names before a comma stay."""
    from gpuplan.catalog.load import read_catalog

    stays, name = COUNTED.fullmatch(incomplete).groups()  # type: ignore[union-attr]
    found = _beginning(name, [str(item) for item in read_catalog().accelerators])
    return [f"{stays}{item}" for item in found]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Names that begin with what was typed, whatever its case, continued after it as typed."""
    n_typed, typed = len(incomplete), incomplete.lower()
    return [incomplete + name[n_typed:] for name in names if name.lower().startswith(typed)]
