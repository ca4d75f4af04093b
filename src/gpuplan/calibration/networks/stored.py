"""Stored fit of networks: kind, model, software and board in, constants, ranges and rates out."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from math import exp, log
from typing import Any, NamedTuple

from gpuplan.calibration.networks.fit import (
    base_name,
    constants_of,
    devices,
    family_of,
    network_labels,
)
from gpuplan.calibration.tables import priors, read_constants, read_rows, stored_fit
from gpuplan.domain.calibration.constants import FittedConstants, Labels
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.other import (
    DenoiserShape,
    Device,
    NetworkConstants,
    NetworkKind,
)
from gpuplan.domain.provenance import Estimate, Tier
from gpuplan.errors import InputError, one

COLUMNS_PER_LAYER = 60.0
SAME_WIDTH = 1.1
# Work borrowed from kin errs by so much more: 532 training rows whose work is not published.
BORROWED_RATIO = 1.25
# Submissions of one board about their median: four of five of 955 offline runs [MLPerf].
SAME_BOARD_RANGE = (0.90, 1.15)


class VisionShape(NamedTuple):
    """The work of one image of a vision network."""

    n_macs: float
    n_activations: float
    n_params: float
    is_borrowed: bool = False  # scaled from kin: the range widens


def network_constants(
    kind: NetworkKind, model: str, stack: str, *, accelerator: Accelerator
) -> NetworkConstants:
    """Constants of this model's family on this software; common values where never measured.

    Stacks: eager-nchw, eager-nhwc, compiled-nchw (vision), tensorrt-fp16, tensorrt-int8,
    tensorrt-sparse, served-fused, served-eager (encoders), xdit (denoisers).
    """
    values = _fitted(kind).values(_labels(model, stack, accelerator))
    return constants_of(values, kind)


def network_estimate(
    seconds: float, kind: NetworkKind, *, model: str, accelerator: Accelerator
) -> Estimate:
    """The predicted time with its 80 % range; wider for new models, families and boards."""
    stored = _stored()["kinds"][kind]
    labels = _labels(model, "", accelerator)
    is_family = not stored["families"] or labels["family"] in stored["families"]
    is_model = base_name(model) in stored["models"]
    if labels["device"] not in stored["devices"]:
        name = "new_device" if is_family else "new_family"
    else:
        name = "known" if is_model else "new_model" if is_family else "new_family"
    low, high = stored["ranges"][name]
    tier: Tier = "fitted" if name in ("known", "new_model") else "estimated"
    sources = tuple(stored["sources"])
    return Estimate(
        value=seconds, low=seconds * low, high=seconds * high, tier=tier, sources=sources
    )


def is_no_wider(kind: str, estimate: Estimate) -> bool:
    """Whether a range is about as narrow as that of a new model on boards that were measured."""
    stored = _stored()["kinds"].get(kind)
    if stored is None:
        return False
    low, high = stored["ranges"]["new_model"]
    return log(estimate.high / estimate.low) <= SAME_WIDTH * log(high / low)


def denoiser_shape(model: str, n_params: float | None = None) -> DenoiserShape:
    """Shape of a known diffusion transformer, or a plain one of as many parameters."""
    for row in read_rows("denoisers.csv"):
        if row["name"].lower() in model.lower():
            return DenoiserShape(
                n_layers=int(row["n_layers"]),
                hidden_size=int(row["hidden_size"]),
                matrix_ratio=float(row["matrix_ratio"]),
                n_text_tokens=int(row["n_text_tokens"]),
                n_attentions_per_layer=float(row["n_attentions_per_layer"]),
                n_passes=int(row["n_passes"]),
                pixels_per_token=int(row["pixels_per_token"]),
                frames_per_token=int(row["frames_per_token"]),
                has_linear_attention=row["has_linear_attention"] == "1",
            )
    if n_params is None:
        fix = "give its parameters, or use a model of calibration/data/denoisers.csv"
        raise one(InputError, "network", model, "is no known denoiser", fix)
    # Assumption: twelve parameters per layer and square of the width, sixty columns a layer.
    hidden = round((n_params * COLUMNS_PER_LAYER / 12) ** (1 / 3))
    return DenoiserShape(n_layers=max(1, round(hidden / COLUMNS_PER_LAYER)), hidden_size=hidden)


def has_vision_kin(model: str) -> bool:
    """Whether the table of shapes holds a network of this family."""
    return family_of(model) in {family_of(name) for name, _ in _vision_shapes()}


def vision_shape(model: str, image_px: int, n_params: float) -> VisionShape:
    """Work of one image: as published, or that of the nearest kin scaled by area and parameters."""
    shapes = _vision_shapes()
    name = model.split(".", maxsplit=1)[0]
    if (name, image_px) in shapes:
        return shapes[name, image_px]
    kin = [key for key in shapes if family_of(key[0]) == family_of(name)] or list(shapes)

    def distance(key: tuple[str, int]) -> float:
        unlike = abs(log(shapes[key].n_params / n_params)) + abs(log(key[1] / image_px))
        return unlike + (0.0 if key[0] == name else 0.5)

    nearest = min(kin, key=distance)
    near = shapes[nearest]
    scale = (image_px / nearest[1]) ** 2 * n_params / near.n_params
    return VisionShape(near.n_macs * scale, near.n_activations * scale, n_params, True)


@cache
def _vision_shapes() -> Mapping[tuple[str, int], VisionShape]:
    return {
        (row["model"], int(row["image_px"])): VisionShape(
            float(row["gmacs"]) * 1e9, float(row["macts_m"]) * 1e6, float(row["params_m"]) * 1e6
        )
        for row in read_rows("vision_shapes.csv")
    }


def widened(estimate: Estimate, shape: VisionShape) -> Estimate:
    """The estimate as it is, or with the wider range of borrowed work."""
    if not shape.is_borrowed:
        return estimate
    low, high = estimate.low / BORROWED_RATIO, estimate.high * BORROWED_RATIO
    return replace(estimate, low=low, high=high, tier="estimated")


def benchmarks() -> tuple[str, ...]:
    """Pipelines whose rate is known on some boards."""
    return tuple(dict.fromkeys(row["benchmark"] for row in read_rows("network_benchmarks.csv")))


def benchmark_rate(
    name: str,
    device: Device,
    *,
    known: Mapping[str, Device],
    speed_ratio: Callable[[Device, Device], float],
) -> Estimate:
    """Samples a second of a known pipeline on any board, carried over from boards that ran it.

    `known` holds the figures of boards by catalog id; a rate comes from the nearest in speed.
    """
    rates = {
        row["accelerator"]: float(row["rate_per_s"])
        for row in read_rows("network_benchmarks.csv")
        if row["benchmark"] == name and row["accelerator"] in known
    }
    if not rates:
        listed = ", ".join(benchmarks()[:10])
        raise one(InputError, "network", name, "was never measured", f"use one of {listed} …")
    weights = {card: 1 / (0.05 + abs(log(speed_ratio(device, known[card])))) for card in rates}
    total = sum(weights.values())
    carried = sum(
        weights[card] * (log(rate) + log(speed_ratio(device, known[card])))
        for card, rate in rates.items()
    )
    value = exp(carried / total)
    is_measured = any(known[card] == device for card in rates)
    low, high = SAME_BOARD_RANGE if is_measured else _stored()["benchmark_range"]
    return Estimate(
        value=value, low=value * low, high=value * high, tier="fitted", sources=("MLPerf",)
    )


def _labels(model: str, stack: str, accelerator: Accelerator) -> Labels:
    named = {
        row["accelerator"]: row["device"] for row in reversed(read_rows("network_devices.csv"))
    }
    name = named.get(accelerator.id, str(accelerator.id))
    family = devices()[name][0] if name in devices() else accelerator.family
    return network_labels(model, stack, name, device_family=family)


def _fitted(kind: NetworkKind) -> FittedConstants:
    return stored_fit(_stored()["kinds"][kind], priors("networks", kind))


def _stored() -> Mapping[str, Any]:
    return read_constants("other_networks.json")
