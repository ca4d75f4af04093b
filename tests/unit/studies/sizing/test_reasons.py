"""What a smaller fleet would violate, in words."""

import pytest

from gpuplan.studies.sizing.reasons import _beyond


@pytest.mark.parametrize(
    ("reached_s", "limit_s", "text"),
    [
        (0.061, 0.04, "61 ms, not 40 ms"),
        (0.0402, 0.04, "40.2 ms, not 40.0 ms"),
        (26.3, 2.0, "26 s, not 2000 ms"),
        (0.04 + 1e-9, 0.04, "more, not 40 ms"),
    ],
)
def test_a_violation_is_seen_in_its_digits(reached_s, limit_s, text):
    assert _beyond(reached_s, limit_s) == text
