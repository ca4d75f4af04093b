"""Whole fleets in batches: the same figures as a plain loop gives, however the files are cut."""

import numpy as np
import polars as pl
import pytest

from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.errors import InputError
from gpuplan.observe.fleet import read_fleet
from gpuplan.pipeline.diagnose import diagnose_file

N, STEPS = 12, 600


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    random = np.random.default_rng(0)
    parts = []
    for k in range(N):
        util = np.zeros(STEPS, int) if k < 3 else random.integers(10, 100, STEPS)
        parts.append(
            pl.DataFrame(
                {
                    "timestamp": 1_760_000_000 + 30 * np.arange(STEPS),
                    "gpu": np.full(STEPS, k % 4),
                    "hostname": [f"n{k // 4}"] * STEPS,
                    "namespace": [f"team-{k % 2}"] * STEPS,
                    "modelName": ["NVIDIA H100 80GB HBM3"] * STEPS,
                    "DCGM_FI_DEV_GPU_UTIL": util,
                    "DCGM_FI_DEV_POWER_USAGE": 100.0 + 5.0 * util,
                    "DCGM_FI_DEV_FB_USED": np.full(STEPS, 20_000 if k < 2 else 0),
                }
            )
        )
    return pl.concat(parts)


def written(frame: pl.DataFrame, folder, *, by: str):
    for k, (_, part) in enumerate(frame.group_by(by, maintain_order=True)):
        part.write_parquet(folder / f"{k:03d}.parquet")
    return folder


def test_figures_are_those_of_a_loop(frame, tmp_path):
    digest = read_fleet(written(frame, tmp_path, by="hostname"))
    assert digest.n_rows == N * STEPS
    for name, mean, high, peak in zip(
        digest.devices.name, digest.devices.mean_frac, digest.devices.p95_frac,
        digest.devices.peak_frac, strict=True,
    ):  # fmt: skip
        host, gpu = name.split(" ")
        own = frame.filter((pl.col("hostname") == host) & (pl.col("gpu") == int(gpu)))
        values = own["DCGM_FI_DEV_GPU_UTIL"].to_numpy() / 100.0
        assert mean == pytest.approx(values.mean())
        assert high == pytest.approx(np.quantile(values, 0.95, method="inverted_cdf"))
        assert peak == pytest.approx(values.max())


def test_ratios_under_the_old_name_say_the_same(frame, tmp_path):
    first, second = tmp_path / "percent", tmp_path / "ratio"
    first.mkdir()
    second.mkdir()
    ratio = frame.with_columns(pl.col("DCGM_FI_DEV_GPU_UTIL") / 100.0)
    old = read_fleet(written(frame, first, by="hostname"))
    new = read_fleet(written(ratio, second, by="hostname"))
    assert new.devices.mean_frac == pytest.approx(old.devices.mean_frac)
    assert new.devices.peak_frac == pytest.approx(old.devices.peak_frac)


def test_files_cut_by_time_say_the_same(frame, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    by_node = read_fleet(written(frame, first, by="hostname"))
    late = frame.with_columns((pl.col("timestamp") // 3600).alias("hour"))
    by_time = read_fleet(written(late, second, by="hour"))
    assert by_node.devices.name == by_time.devices.name
    assert by_node.devices.mean_frac == pytest.approx(by_time.devices.mean_frac)
    assert by_node.hour_peak_frac == pytest.approx(by_time.hour_peak_frac)


def test_a_folder_is_diagnosed(frame, tmp_path):
    found = diagnose_file(written(frame, tmp_path, by="hostname"), DiagnoseRequest(usd_per_h=2.0))
    causes = {verdict.cause: verdict.subjects for verdict in found.verdicts}
    assert causes["idle_allocated"] == ("n0 0", "n0 1")
    assert causes["idle_free"] == ("n0 2",)
    assert {waste.cause for waste in found.waste} >= {"allocated and idle", "free and idle"}
    assert {team.team for team in found.teams} == {"team-0", "team-1"}
    assert sum(band.time_frac for band in found.use.bands) == pytest.approx(1.0)


def test_a_folder_without_telemetry_is_refused(tmp_path):
    with pytest.raises(InputError, match="no Parquet"):
        read_fleet(tmp_path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="lack a time"):
        read_fleet(tmp_path)
