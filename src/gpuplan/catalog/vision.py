"""Published figures of image networks, from our table to nouns."""

import csv
from functools import cache
from importlib.resources import files

from gpuplan.domain.model.vision import VisionNetwork

FLOP_PER_MAC = 2.0
MEGA, GIGA = 1e6, 1e9


@cache
def vision_networks() -> tuple[VisionNetwork, ...]:
    """Every image network of the catalog, one entry per input size."""
    text = files("gpuplan.catalog").joinpath("data/timm.csv").read_text("utf-8")
    return tuple(_network(row) for row in csv.DictReader(text.splitlines()))


def _network(row: dict[str, str]) -> VisionNetwork:
    return VisionNetwork(
        name=row["name"],
        n_params=round(float(row["params_m"]) * MEGA),
        flop_per_sample=float(row["gmacs"]) * GIGA * FLOP_PER_MAC,
        activation_elements=round(float(row["activations_m"]) * MEGA),
        image_px=int(row["image_px"]),
        source=row["source"],
    )
