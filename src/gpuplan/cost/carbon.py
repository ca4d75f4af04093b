"""Energy, carbon, water, in: draws, a place and hardware; out: accounts that say their meaning."""

from collections.abc import Collection

from gpuplan.domain.money.carbon import CarbonAccount, Embodied, EnergyUse, OperationalCarbon
from gpuplan.domain.money.market import CarbonIntensity
from gpuplan.domain.ranges import Range, exactly
from gpuplan.errors import InputError, one


def energy_use(average_w: float, seconds: float, pue_ratio: float) -> EnergyUse:
    """Energy of machines that draw so much on average; PUE lies on energy as it does on power."""
    if pue_ratio < 1:
        fix = "facility energy is never below the machines': use 1 or more"
        raise one(InputError, "energy", "pue_ratio", f"got {pue_ratio}", fix)
    machines = average_w * seconds
    return EnergyUse(machines_j=machines, facility_j=machines * pue_ratio)


def carbon_account(
    energy: EnergyUse,
    seconds: float,
    *,
    intensities: Collection[CarbonIntensity],
    embodied: Embodied | None = None,
    water_kg_per_j: Range,
) -> CarbonAccount:
    """Emissions of the facility's energy in every meaning given, embodied part, water on site."""
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
        embodied_kg=exactly(0.0) if embodied is None else embodied_kg(embodied, seconds),
        water_kg=water_kg_per_j.times(energy.machines_j),
    )


def embodied_kg(hardware: Embodied, seconds: float) -> Range:
    """The part of manufacture that falls on this time, evenly over life."""
    share = seconds / hardware.life_s
    one_card, one_server = hardware.accelerator_kg, hardware.server_kg
    n, m = hardware.n_accelerators, hardware.n_servers
    return Range(
        low=(one_card.low * n + one_server.low * m) * share,
        mid=(one_card.mid * n + one_server.mid * m) * share,
        high=(one_card.high * n + one_server.high * m) * share,
    )


def joules_per_token(energy: EnergyUse, n_tokens: float) -> tuple[float, float]:
    """Energy of one token at the machines and at the meter of the whole place."""
    if n_tokens <= 0:
        fix = "give the tokens that were served"
        raise one(InputError, "energy", "n_tokens", f"got {n_tokens}", fix)
    return energy.machines_j / n_tokens, energy.facility_j / n_tokens
