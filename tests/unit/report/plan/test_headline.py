"""Names of fleets in headlines and tables."""

import pytest

from gpuplan.report.plan.headline import with_names


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        ("6 x h100-sxm", "6 × H100 SXM"),
        ("1 x l4 + 3 x l40s", "1 × L4 + 3 × L40S"),
        ("1,404 x tpu-v5p as 3 x TP2", "1,404 × TPU v5p as 3 x TP2"),
        ("what you already have", "what you already have"),
    ],
)
def test_fleets_of_a_table_are_named_alike(ids, names):
    assert with_names(ids) == names
