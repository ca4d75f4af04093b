"""SGLang's defaults by version and device, as its sources have them."""

import pytest

from gpuplan.performance.serving.sglang import (
    VERSIONS,
    chunk_tokens,
    most_sequences,
    sglang_version,
)
from gpuplan.units import GIB


@pytest.mark.parametrize(
    ("version", "memory_gib", "expected"),
    [
        ("0.5.23", 15.7, 2048), ("0.5.23", 23.6, 4096), ("0.5.19", 23.6, 2048),
        ("0.5.23", 44.4, 4096), ("0.5", 79.1, 8192), ("", 139.8, 8192), ("0.5.22", 178.0, 16384),
        ("0.4.6", 23.6, 2048), ("0.4.6", 178.0, 8192), ("0.6.1", 268.0, 16384),
    ],
)  # fmt: skip
def test_a_prefill_batch_is_as_large_as_the_memory_allows(version, memory_gib, expected):
    assert chunk_tokens(sglang_version(version), memory_gib * GIB) == expected


def test_a_version_takes_the_last_row_that_is_not_newer():
    assert [row.since for row in VERSIONS] == sorted(row.since for row in VERSIONS)
    assert sglang_version("v0.5.21").since == (0, 5, 20)
    assert sglang_version("0.5").since == sglang_version("unknown").since == (0, 5, 22)
    assert not sglang_version("0.5.21").knows_ends
    assert sglang_version("0.3.6").is_ahead
    assert not sglang_version("0.4").is_longest_first


def test_more_sequences_run_where_the_cache_holds_many_contexts():
    assert most_sequences(450_000, 131_072) == 2048
    assert most_sequences(450_000, 65_536) == 3515
    assert most_sequences(450_000, 8192) == 4096
    assert most_sequences(450_000, None) == 2048
