"""A chart as values: series over an axis with units, drawn by whoever shows it."""

from typing import Literal

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass

Style = Literal["bars", "line", "step", "points"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is counted along one side."""

    label: str
    unit: str = ""  # empty: a bare number

    @property
    def title(self) -> str:
        """Label and unit as they stand beside the axis."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSeries:
    """Values over places of equal number, in the units of the axes."""

    name: str
    x: Floats
    y: Floats
    style: Style = "line"
    labels: tuple[str, ...] = ()  # of each point; empty: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture."""

    title: str
    x: Axis
    y: Axis
    series: tuple[ChartSeries, ...]
    top: tuple[float, ...] = ()  # highest value that the axis must show; empty: as the values go
    note: str = ""  # one line below
