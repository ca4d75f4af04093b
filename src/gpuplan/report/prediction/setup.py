"""What a prediction is about: layout, precision, estimates, the same in every document."""

from collections.abc import Iterable

from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Table
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.report.document import Document, pick
from gpuplan.report.formats import three
from gpuplan.report.table import table

# Label, unit, the estimate, and what one unit is in base units.
Measure = tuple[str, str, Estimate, float]


def precision_name(storage: StorageFormats) -> str:
    """The format that most of the weights are stored in."""
    return storage.quantized.name if storage.quantized else storage.base.name


def layout_document(layout: ServingLayout | ParallelLayout) -> Document:
    """How a replica is sharded."""
    return pick(layout, "tp", "pp", "dp", "ep")


def measures_table(measures: Iterable[Measure]) -> Table:
    """Estimates with their ranges, each in its unit."""
    columns = {
        "quantity": lambda m: m[0],
        ">value": lambda m: three(m[2].value / m[3]),
        ">low": lambda m: three(m[2].low / m[3]),
        ">high": lambda m: three(m[2].high / m[3]),
        "unit": lambda m: m[1],
        "tier": lambda m: m[2].tier,
    }
    return table("Predicted, with the 80 % range", measures, columns)
