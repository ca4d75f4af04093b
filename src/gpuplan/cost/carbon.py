"""Energy, carbon, water, in: draws, a place and hardware; out: accounts that say their meaning."""

from collections.abc import Collection

from gpuplan.domain.carbon import CarbonAccount, Embodied, EnergyUse, OperationalCarbon
from gpuplan.domain.market import CarbonIntensity
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range, exactly
from gpuplan.errors import InputError, one
from gpuplan.units import KWH

# Litres per kWh of the machines: dry coolers draw none, open towers 1.8 [wue-ranges].
WATER_KG_PER_KWH = Range(low=0.0, mid=0.4, high=1.8)
# A server of eight without its accelerators: 5.7 t in one model [ecologits]; plain servers a
# tonne or less. Assumption: nobody publishes one for such a machine.
SERVER_KG = Range(low=1_000.0, mid=3_000.0, high=5_700.0)


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
    water_kg_per_j: Range | None = None,
) -> CarbonAccount:
    """Emissions of the facility's energy in every meaning given, embodied part, water on site."""
    assumptions: list[Assumption] = []
    if water_kg_per_j is None:
        water_kg_per_j = WATER_KG_PER_KWH.times(1 / KWH)
        assumptions.append(_water_assumption())
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
        assumptions=tuple(assumptions),
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


def server_assumption() -> Assumption:
    """What is assumed where nobody publishes the footprint of a server."""
    return Assumption(
        what="embodied carbon of a server without accelerators",
        value=f"{SERVER_KG.low:,.0f} to {SERVER_KG.high:,.0f} kg CO2e",
        why="models differ; no maker publishes a figure for such a machine",
        change="site.embodied_server_kg",
        source="ecologits",
    )


def _water_assumption() -> Assumption:
    return Assumption(
        what="water drawn on site",
        value=f"{WATER_KG_PER_KWH.low:g} to {WATER_KG_PER_KWH.high:g} litres per kWh of machines",
        why="depends on the cooling: none for dry coolers, most for open towers",
        change="site.water_l_per_kwh",
        source="wue-ranges",
    )
