"""Energy, emissions and water of a plan, each with the meaning that its figure has."""

from gpuplan.domain.columns import Floats
from gpuplan.domain.money.market import Boundary, CarbonIntensity, Method
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyUse:
    """Energy of the machines and of the whole place, cooling and losses with it."""

    machines_j: float
    facility_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationalCarbon:
    """Emissions of the energy, in one of the several meanings."""

    boundary: Boundary
    method: Method
    emitted_kg: float
    intensity: CarbonIntensity


@dataclass(frozen=True, slots=True, kw_only=True)
class Embodied:
    """What making the hardware emitted; models differ by more than two."""

    accelerator_kg: Range  # of one
    server_kg: Range  # of one, without its accelerators
    n_accelerators: float
    n_servers: float
    life_s: float  # over which it is written off


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonAccount:
    """Energy, carbon and water of a stretch of time. Meanings stand side by side, never added."""

    energy: EnergyUse
    operational: tuple[OperationalCarbon, ...]
    embodied_kg: Range  # the part of this time
    water_kg: Range  # drawn on site; that of power plants is not in it
    assumptions: tuple[Assumption, ...] = ()

    def operational_of(self, boundary: Boundary, method: Method) -> OperationalCarbon | None:
        """Emissions of that meaning, or None: another never stands in."""
        for figure in self.operational:
            if (figure.boundary, figure.method) == (boundary, method):
                return figure
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftPlan:
    """When deferrable work runs, and what waiting gains over running at once."""

    name: str
    power_w: Floats  # of each hour
    at_once_kg: float  # emissions of running as soon as possible
    shifted_kg: float
    meaning: str  # what the weights are: kg CO2e, location, marginal …

    @property
    def saved_frac(self) -> float:
        """Share of emissions that waiting saves."""
        return 1.0 - self.shifted_kg / self.at_once_kg if self.at_once_kg else 0.0
