"""Energy, carbon and water of a fleet: accounts in which every figure states its meaning."""

from collections.abc import Collection

from gpuplan.domain.money.carbon import CarbonAccount, Embodied, EnergyUse, OperationalCarbon
from gpuplan.domain.money.market import CarbonIntensity
from gpuplan.domain.ranges import Range, total
from gpuplan.errors import InputError, one


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
