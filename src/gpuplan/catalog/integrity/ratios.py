"""Dense peaks against the 16-bit peak: what is usual, and the exceptions that makers document."""

from collections.abc import Mapping
from types import MappingProxyType

RATIO_TOLERANCE = 0.1
USUAL_RATIOS: Mapping[str, float] = MappingProxyType(
    {"fp16": 1, "tf32": 0.5, "fp8": 2, "int8": 2, "fp4": 4}
)
"""Dense rate against bf16 where each halving of the width doubles the rate."""

KNOWN_RATIOS: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        ("b300-sxm", "fp4"): 5.83,  # Blackwell Ultra traded integer units for fp4
        ("b300-sxm", "int8"): 0.068,
        ("gb300", "fp4"): 6,
        ("gb300", "int8"): 0.066,
        ("gaudi3", "fp8"): 1,  # the matrix engine has one rate; fp16 goes elsewhere
        ("gaudi3", "fp16"): 0.274,
        ("trainium1", "fp8"): 1,
        ("trainium1", "tf32"): 1,
        ("inferentia2", "fp8"): 1,
        ("inferentia2", "tf32"): 1,
        ("trainium2", "tf32"): 1,
        ("trainium3", "tf32"): 1,
        ("trainium3", "fp8"): 3.75,
        ("tpu-v6e", "fp8"): 1,
        ("tpu-v4", "int8"): 1,
        ("mi210", "int8"): 1,  # CDNA 2 gains nothing from int8
        ("mi250", "int8"): 1,
        ("mi250x", "int8"): 1,
        ("vr200", "fp8"): 4.375,  # Rubin grew its narrow units past its 16-bit ones
        ("vr200", "fp4"): 8.75,
        ("vr200", "int8"): 0.625,
        ("mi455x", "int8"): 1,
        ("rx-7900-xtx", "int8"): 1,  # RDNA 3 multiplies bytes at the rate of 16 bits
    }
)
"""Documented exceptions: anything else off the usual ratio is a sparse or a vector figure."""

GEFORCE_RATIOS: Mapping[str, float] = MappingProxyType({**USUAL_RATIOS, "int8": 4, "fp4": 8})
"""GeForce halves the floating-point rates that accumulate in 32 bits, down to fp8."""
