"""What the package ships for calibration: measured tables, priors of constants, stored fits."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.calibration.constants import Constant, Effect, FittedConstants


def read_rows(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a measured table that the package ships, as text by column."""
    return packaged_rows("gpuplan.calibration", f"data/measured/{name}")


@cache
def read_constants(name: str) -> Mapping[str, Any]:
    """A file of fitted constants that the package ships."""
    stored: Mapping[str, Any] = json.loads(_text(name))
    return stored


@cache
def priors(model: str, section: str = "constants") -> tuple[Constant, ...]:
    """The constants of a model before the fit: values, widths, and what each may depend on."""
    stored = tomllib.loads(_text(f"priors/{model}.toml"))
    deviations = stored.get("deviations", {})
    return tuple(
        Constant(
            name=name,
            effects=tuple(_effect(found, deviations) for found in of.pop("effects", ())),
            **of,
        )
        for name, of in stored[section].items()
    )


def _effect(found: Mapping[str, Any], deviations: Mapping[str, Mapping[str, float]]) -> Effect:
    prior = deviations[found["prior"]] if "prior" in found else {}
    kinds = tuple(found["by"].split("+"))
    return Effect(kinds=kinds, log_sd=found["log_sd"], prior=tuple(prior.items()))


def stored_fit(stored: Mapping[str, Any], constants: Sequence[Constant]) -> FittedConstants:
    """The fitted constants of a stored fit."""
    return FittedConstants(
        constants=tuple(constants),
        log_value=stored["log_value"],
        deviation=stored["deviation"],
        n_rows=stored["n_rows"],
        sources=tuple(stored["sources"]),
    )


def _text(name: str) -> str:
    return files("gpuplan.calibration").joinpath("data", name).read_text("utf-8")
