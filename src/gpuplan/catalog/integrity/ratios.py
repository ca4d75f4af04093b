"""Dense peaks against the 16-bit peak: what is usual, and the exceptions that makers document."""

from collections.abc import Mapping
from types import MappingProxyType

from gpuplan.csv_rows import packaged_rows

RATIO_TOLERANCE = 0.1
USUAL_RATIOS: Mapping[str, float] = MappingProxyType(
    {"fp16": 1, "tf32": 0.5, "fp8": 2, "int8": 2, "fp4": 4}
)
"""Dense rate against bf16 where each halving of the width doubles the rate."""

KNOWN_RATIOS: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        (row["accelerator"], row["precision"]): float(row["ratio"])
        for row in packaged_rows("gpuplan.catalog", "data/peak_ratios.csv")
    }
)
"""Documented exceptions: anything else off the usual ratio is a sparse or a vector figure."""

GEFORCE_RATIOS: Mapping[str, float] = MappingProxyType({**USUAL_RATIOS, "int8": 4, "fp4": 8})
"""GeForce halves the floating-point rates that accumulate in 32 bits, down to fp8."""
