"""Energy, carbon and water of a fleet, and the hours in which deferrable work emits least."""

from collections.abc import Collection, Sequence

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.money.carbon import (
    CarbonAccount,
    Embodied,
    EnergyUse,
    OperationalCarbon,
    ShiftPlan,
)
from gpuplan.domain.money.market import CarbonIntensity
from gpuplan.domain.ranges import Range, total
from gpuplan.errors import InfeasibleError, InputError, one
from gpuplan.units import HOUR, KWH


def energy_use(average_w: float, seconds: float, pue_ratio: float) -> EnergyUse:
    """The energy of servers with this average draw, and of the facility, which is PUE times it."""
    if pue_ratio < 1:
        fix = "facility energy is never below the servers': use 1 or more"
        raise one(InputError, "energy", "pue_ratio", f"got {pue_ratio}", fix)
    servers_j = average_w * seconds
    return EnergyUse(machines_j=servers_j, facility_j=servers_j * pue_ratio)


def carbon_account(
    energy: EnergyUse,
    *,
    intensities: Collection[CarbonIntensity],
    embodied_kg: Range,
    water_kg_per_j: Range,
) -> CarbonAccount:
    """Emissions of the facility's energy by each intensity, beside embodied carbon and water."""
    operational = tuple(
        OperationalCarbon(
            boundary=figure.boundary,
            method=figure.method,
            emitted_kg=energy.facility_j * figure.kg_per_j,
            intensity=figure,
        )
        for figure in intensities
    )
    return CarbonAccount(
        energy=energy,
        operational=operational,
        embodied_kg=embodied_kg,
        water_kg=water_kg_per_j.times(energy.machines_j),
    )


def embodied_kg(hardware: Embodied, seconds: float) -> Range:
    """The share of manufacturing emissions that falls on this time, evenly over life."""
    parts = (
        hardware.accelerator_kg.times(hardware.n_accelerators),
        hardware.server_kg.times(hardware.n_servers),
    )
    return total(parts).times(seconds / hardware.life_s)


def shifted(
    name: str, energy_j: float, max_w: float, *, kg_per_j: Sequence[float], meaning: str
) -> ShiftPlan:
    """The hours that emit least for so much energy at so much power: the cleanest ones first.

    With prices in place of carbon the answer has the least cost, in that unit.
    """
    weights, most_j = np.asarray(kg_per_j, dtype=np.float64), max_w * HOUR
    allowed_j = most_j * len(weights)
    if energy_j > allowed_j * (1 + 1e-9):
        what = f"needs {energy_j / KWH:,.1f} kWh, its hours allow {allowed_j / KWH:,.1f}"
        raise one(InfeasibleError, "shifting", name, what, "give it more hours or more power")

    def filled(order: Sequence[int]) -> Floats:
        """Watts by hour when hours are filled in this order."""
        power_w = np.zeros(len(weights))
        before_j = most_j * np.arange(len(weights))
        power_w[list(order)] = np.clip(energy_j - before_j, 0.0, most_j) / HOUR
        return power_w

    at_once = filled(range(len(weights)))
    best = filled(sorted(range(len(weights)), key=weights.__getitem__))
    return ShiftPlan(
        name=name,
        power_w=floats(best),
        at_once_kg=float((at_once * weights).sum() * HOUR),
        shifted_kg=float((best * weights).sum() * HOUR),
        meaning=meaning,
    )
