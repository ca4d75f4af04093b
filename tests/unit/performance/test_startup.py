"""Start-up by phase: what each depends on, and the published breakdowns."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.calibration.startup import start_constants, start_estimates
from gpuplan.domain.inference.startup import StartConditions
from gpuplan.errors import InputError
from gpuplan.performance.serving.startup import load_time_s, startup_phases
from gpuplan.units import GB, GBIT

SEVEN_B = StartConditions(weight_bytes=13.5 * GB, n_layers=32)
CONSTANTS = start_constants()


def test_warm_start_of_a_seven_billion_model() -> None:
    """vLLM 0.10 on H100 NVL, everything cached: 8.7 + 1.6 + 10 + 1.9 + 1.1 s [Kabakibo2026]."""
    warm = replace(SEVEN_B, source="page-cache", is_compile_cached=True)
    phases = startup_phases(warm, CONSTANTS)
    assert phases.total_s == pytest.approx(23.5, rel=0.2)
    assert phases.compile_s == pytest.approx(10.0, rel=0.2)


def test_cold_start_pays_disk_and_compiler() -> None:
    """The same machine, first run of a 14 B: 52 s from a 0.55 GB/s disk, 29 s of compiling."""
    cold = StartConditions(weight_bytes=28.3 * GB, n_layers=40, storage_bytes_per_s=0.573 * GB)
    phases = startup_phases(cold, CONSTANTS)
    assert phases.load_s == pytest.approx(52, rel=0.05)
    assert phases.compile_s == pytest.approx(29, rel=0.1)
    assert phases.total_s == pytest.approx(97, rel=0.2)


def test_streams_add_until_the_disk_is_full() -> None:
    """16 GB from a 1 GiB/s network disk: 48 s by one stream, 14.4 s by four or more [Run:ai]."""
    disk = StartConditions(
        weight_bytes=16.06 * GB, n_layers=32, source="network-disk", storage_bytes_per_s=1.17 * GB
    )
    assert load_time_s(disk, CONSTANTS) == pytest.approx(48, rel=0.1)
    for n in (4, 16):
        found = load_time_s(replace(disk, n_readers=n), CONSTANTS)
        assert found == pytest.approx(14.4, rel=0.1)


def test_eager_starts_skip_compiler_and_graphs() -> None:
    eager = startup_phases(replace(SEVEN_B, is_eager=True), CONSTANTS)
    assert (eager.compile_s, eager.capture_s) == (0.0, 0.0)


def test_several_ranks_capture_slowly() -> None:
    """Eighty layers, 67 graphs, eight ranks: about a minute [Red Hat]."""
    large = StartConditions(weight_bytes=70 * GB, n_layers=80, tp=8)
    assert 20 < startup_phases(large, CONSTANTS).capture_s < 80


def test_image_and_download_need_a_line() -> None:
    fresh = replace(SEVEN_B, image_bytes=10 * GB, download_bytes=13.5 * GB)
    with pytest.raises(InputError, match="10 Gb/s"):
        startup_phases(fresh, CONSTANTS)
    phases = startup_phases(replace(fresh, network_bytes_per_s=10 * GBIT), CONSTANTS)
    assert phases.image_pull_s == pytest.approx(16.0)
    assert phases.download_s == pytest.approx(21.6)


def test_no_stream_is_refused() -> None:
    with pytest.raises(InputError, match="1 or more"):
        load_time_s(replace(SEVEN_B, n_readers=0), CONSTANTS)


def test_total_is_the_sum_and_so_is_its_range() -> None:
    phases = startup_phases(SEVEN_B, CONSTANTS)
    found = start_estimates(phases)
    parts = [estimate for name, estimate in found.items() if name != "total"]
    assert found["total"].value == pytest.approx(sum(part.value for part in parts))
    assert found["total"].low < found["total"].value < found["total"].high


@given(
    weights=st.floats(1e8, 1e12), layers=st.integers(1, 200), more=st.floats(1.0, 10.0),
    cached=st.booleans(), tp=st.sampled_from([1, 8]),
)  # fmt: skip
def test_more_to_do_never_takes_less(
    weights: float, layers: int, more: float, cached: bool, tp: int
) -> None:
    start = StartConditions(
        weight_bytes=weights, n_layers=layers, tp=tp, is_compile_cached=cached,
        storage_bytes_per_s=1e9,
    )  # fmt: skip
    base = startup_phases(start, CONSTANTS).total_s
    for harder in (
        replace(start, weight_bytes=weights * more),
        replace(start, n_layers=layers + 1),
        replace(start, is_compile_cached=False),
    ):
        assert startup_phases(harder, CONSTANTS).total_s >= base
    quicker = replace(start, storage_bytes_per_s=1e9 * more, n_readers=4)
    assert startup_phases(quicker, CONSTANTS).total_s <= base


@given(weights=st.floats(1e8, 1e12), rate=st.floats(1e8, 1e11), n=st.integers(1, 64))
def test_no_load_beats_its_storage(weights: float, rate: float, n: int) -> None:
    start = replace(SEVEN_B, weight_bytes=weights, storage_bytes_per_s=rate, n_readers=n)
    assert load_time_s(start, CONSTANTS) >= weights / rate
