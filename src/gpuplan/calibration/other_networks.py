"""Fitted networks, in: kind, model, software and board; out: constants, ranges, known rates."""

from collections.abc import Callable, Mapping
from math import exp, log
from typing import Any

from gpuplan.calibration.other_networks_fit import (
    CONSTANTS,
    basis_of,
    constants_of,
    devices,
    network_labels,
)
from gpuplan.calibration.tables import read_constants, read_rows
from gpuplan.domain.calibration import FittedConstants, Labels
from gpuplan.domain.hardware import Accelerator
from gpuplan.domain.networks import Device, NetworkConstants, NetworkKind, SpeedBasis
from gpuplan.domain.provenance import Estimate, Tier
from gpuplan.errors import InputError, one


def network_constants(
    kind: NetworkKind, model: str, stack: str, *, accelerator: Accelerator
) -> NetworkConstants:
    """Constants of this model's family on this software; common values where never seen.

    Stacks: eager-nchw, eager-nhwc, compiled-nchw (vision), tensorrt-fp16, tensorrt-int8,
    tensorrt-sparse, served-fused, served-eager (encoders), xdit (denoisers).
    """
    values = _fitted(kind).values(_labels(model, stack, accelerator))
    return constants_of(values, kind)


def network_basis(kind: NetworkKind) -> SpeedBasis:
    """How this kind of network follows its board."""
    return basis_of(kind)


def network_estimate(
    seconds: float, kind: NetworkKind, *, model: str, accelerator: Accelerator
) -> Estimate:
    """The predicted time with its 80 % range; wider for new families and new boards."""
    stored = _stored()["kinds"][kind]
    labels = _labels(model, "", accelerator)
    is_family = not stored["families"] or labels["family"] in stored["families"]
    is_board = labels["device"] in stored["devices"]
    name = "known" if is_family and is_board else "new_device" if is_family else "new_family"
    low, high = stored["ranges"][name]
    tier: Tier = "fitted" if name == "known" else "estimated"
    sources = tuple(stored["sources"])
    return Estimate(value=seconds, low=seconds * low, high=seconds * high, tier=tier,
                    sources=sources)  # fmt: skip


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
    low, high = _stored()["benchmark_range"]
    return Estimate(
        value=value, low=value * low, high=value * high, tier="fitted", sources=("MLPerf",)
    )


def _labels(model: str, stack: str, accelerator: Accelerator) -> Labels:
    name = next(
        (r["device"] for r in read_rows("network_devices.csv")
         if r["accelerator"] == accelerator.id),
        str(accelerator.id),
    )  # fmt: skip
    family = devices()[name][0] if name in devices() else accelerator.family
    return network_labels(model, stack, name, device_family=family)


def _fitted(kind: NetworkKind) -> FittedConstants:
    stored = _stored()["kinds"][kind]
    return FittedConstants(
        constants=CONSTANTS[kind],
        log_value=stored["log_value"],
        deviation=stored["deviation"],
        n_rows=stored["n_rows"],
        sources=tuple(stored["sources"]),
    )


def _stored() -> Mapping[str, Any]:
    return read_constants("other_networks.json")
