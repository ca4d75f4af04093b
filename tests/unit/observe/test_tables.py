"""Tables of every known kind: units from the schema, holes, torn rows, parts that add up."""

import json
import math

import numpy as np
import polars as pl
import pytest

from gpuplan.errors import InputError
from gpuplan.observe.formats import format_of, plain, unit_scale
from gpuplan.observe.read import read_telemetry, read_text

MIB = 2.0**20
# heading, one row, then what it says in base units
TABLES = {
    "nvidia-smi CSV": (
        "timestamp, index, utilization.gpu [%], memory.used [MiB], clocks.current.sm [MHz]",
        "2024/03/31 16:48:55.963, 0, 97 %, 1024 MiB, 1980 MHz",
        {"gpu_util_frac": 0.97, "memory_used_bytes": 1024 * MIB, "sm_clock_hz": 1.98e9},
    ),
    "amd-smi CSV": (
        "timestamp,gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,used_vram",
        "1700000000,0,80,40,600,2100,1000",
        {"gpu_util_frac": 0.8, "memory_util_frac": 0.4, "power_w": 600.0, "sm_clock_hz": 2.1e9,
         "memory_used_bytes": 1000 * MIB},
    ),
    "cluster by the minute": (
        "time,running_gpu_num,total_gpu_num,gpu_utilization,pending_gpu_num",
        "2023-03-01 00:00:00,6,8,0.75,2",
        {"allocated_frac": 0.75, "allocated_count": 6.0, "pending_count": 2.0},
    ),
    "cluster submissions": (
        "time,submit_gpu_num,start_gpu_num", "60,5,4", {"submitted_count": 5.0},
    ),
    "active nodes": (
        "time,active,total", "60,5,8", {"active_nodes_count": 5.0, "total_nodes_count": 8.0},
    ),
    "vLLM counters CSV": (
        "timestamp,kv_cache_usage_pct,num_requests_running,num_requests_waiting",
        "1700000000,55,12,3",
        {"kv_cache_frac": 0.55, "requests_running_count": 12.0, "requests_waiting_count": 3.0},
    ),
    "PCIe transfer CSV": (
        "timestamp,gpu,tx_pci_mb_per_sec,rx_pci_mb_per_sec", "5,0,12,34",
        {"pcie_tx_bytes_per_s": 12e6, "pcie_rx_bytes_per_s": 34e6},
    ),
    "requests of a load test": (
        "relative_time_sec,ttft_ms,tpot_ms,latency_ms", "5,250,20,3000",
        {"ttft_mean_s": 0.25, "tpot_mean_s": 0.02, "e2e_mean_s": 3.0},
    ),
    "requests for pictures": (
        "gmt_create,predict_type,exec_time_seconds", "2024-01-01 00:00:00,x,4.5",
        {"e2e_mean_s": 4.5},
    ),
    "requests by the minute": (
        "timestamp_utc,rpm_mid_calibrated", "2024-01-01 00:00:00,120", {"requests_per_s": 2.0},
    ),
    "rates by client": ("client,t_s,rate_rps,model", "c,60,2.5,m", {"requests_per_s": 2.5}),
    "board controller CSV": (
        "timestamp,phase,sys_power_w", "5,init,4000", {"node_power_w": 4000.0},
    ),
    "InfiniBand ports CSV": (
        "timestamp,ib0_tx_bytes_s,ib1_tx_bytes_s,ib0_rx_bytes_s,ib1_rx_bytes_s",
        "5,1e9,2e9,3e9,4e9",
        {"fabric_tx_bytes_per_s": 3e9, "fabric_rx_bytes_per_s": 7e9},
    ),
    "table of metrics": (
        "timestamp,gpu,gpu_util,sm_active,power_watts", "5,0,50,0.3,400",
        {"gpu_util_frac": 0.5, "sm_active_frac": 0.3, "power_w": 400.0},
    ),
    "DCGM summary by job": (
        "job_id,smutilization_pct_avg,powerusage_watts_avg,maxgpumemoryused_bytes",
        "7,40,250,1e9",
        {"gpu_util_frac": 0.4, "power_w": 250.0, "memory_used_bytes": 1e9},
    ),
}  # fmt: skip


def read(text: str, name: str = ""):
    return read_text(text, source="test", name=name)


def quirks(telemetry) -> dict[str, int]:
    return {quirk.what: quirk.n_cases for quirk in telemetry.quirks}


@pytest.mark.parametrize("kind", sorted(TABLES))
def test_a_row_in_base_units(kind):
    heading, row, expected = TABLES[kind]
    telemetry = read(f"{heading}\n{row}\n")
    assert telemetry.format == kind
    assert {one.metric: one.value[0] for one in telemetry.series} == pytest.approx(expected)


@pytest.mark.parametrize("kind", sorted(TABLES))
def test_a_row_that_ends_early_is_left_out_and_told(kind):
    heading, row, _ = TABLES[kind]
    telemetry = read(f"{heading}\n{row}\n{row.split(',')[0]}\n")
    assert quirks(telemetry) == {"a torn or empty row": 1}
    assert all(len(one.value) == 1 for one in telemetry.series)


@pytest.mark.parametrize("cell", ["", "N/A", "[N/A]", "nan", "[Not Supported]", "null"])
def test_cells_that_say_nothing_are_missing(cell):
    (series,) = read(f"timestamp,gpu,gpu_util_frac\n1,0,0.5\n2,0,{cell}\n3,0,0.7\n").series
    assert series.is_given.tolist() == [True, False, True]


def test_a_word_where_a_number_belongs_is_told():
    telemetry = read("timestamp,gpu,gpu_util_frac\n1,0,0.5\n2,0,busy\n")
    assert quirks(telemetry) == {"not a number": 1}
    assert math.isnan(telemetry.series[0].value[1])


def test_of_two_columns_for_one_metric_the_first_of_the_format_counts():
    head = "timestamp,index,utilization.gpu [%],power.draw.instant [W],power.draw [W]\n"
    (power,) = read(head + "1,0,50 %,111 W,222 W\n").of("power_w")
    assert power.value.tolist() == [222.0]


def test_devices_of_a_table_are_told_apart():
    text = "timestamp,node,gpu,gpu_util_frac\n1,a,0,0.1\n1,a,1,0.2\n1,b,0,0.3\n2,a,0,0.4\n"
    telemetry = read(text)
    assert [(one.node, one.device) for one in telemetry.subjects] == [
        ("a", "0"), ("a", "1"), ("b", "0"),
    ]  # fmt: skip
    assert [one.value.tolist() for one in telemetry.series] == [[0.1, 0.4], [0.2], [0.3]]


def test_phases_change_with_their_label():
    text = "timestamp,phase,sys_power_w\n0,init,1\n5,init,1\n10,steady,1\n20,steady,1\n"
    spans = [(one.label, one.begin_s, one.end_s) for one in read(text).spans]
    assert spans == [("init", 0.0, 10.0), ("steady", 10.0, 20.0)]


@pytest.mark.parametrize(
    ("column", "name", "scale"),
    [
        ("memory.used [MiB]", "memory.used", MIB), ("Power.Draw [W]", "power.draw", 1.0),
        ('"gpu"', "gpu", 1.0), ("x [GiB]", "x", 2.0**30), ("x [parsec]", "x", 1.0),
    ],
)  # fmt: skip
def test_units_in_brackets(column, name, scale):
    assert (plain(column), unit_scale(column)) == (name, scale)


def test_a_table_without_a_time_is_unknown():
    assert format_of(("gpu", "gpu_util_frac")) is None
    with pytest.raises(InputError, match="none holds a time"):
        read("gpu,gfx_activity,socket_power\n0,50,300\n")


def test_rows_as_json_say_the_same_as_rows_of_text():
    rows = [{"timestamp": k, "gpu": "0", "gpu_util": 10 * k, "power_w": None} for k in range(3)]
    text = "timestamp,gpu,gpu_util,power_w\n" + "".join(f"{k},0,{10 * k},\n" for k in range(3))
    one, other = read(json.dumps(rows)), read(text)
    assert one.of("gpu_util_frac")[0].value.tolist() == other.of("gpu_util_frac")[0].value.tolist()
    assert not one.of("power_w")[0].is_given.any()


def test_parquet_says_the_same_as_text(tmp_path):
    frame = pl.DataFrame(
        {"timestamp": [1, 2, 3], "gpu": ["0"] * 3, "DCGM_FI_DEV_GPU_UTIL": [10, None, 30]}
    )
    frame.write_parquet(tmp_path / "t.parquet")
    (series,) = read_telemetry(tmp_path / "t.parquet").series
    assert series.is_given.tolist() == [True, False, True]
    assert series.mean() == pytest.approx(0.2)


def test_parquet_with_one_metric_in_a_row(tmp_path):
    pl.DataFrame(
        {
            "timestamp": ["2023-11-14T22:13:20Z"] * 2,
            "metric_name": ["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"],
            "value": [50.0, 2.0],
            "gpu_id": ["3", "3"],
        }
    ).write_parquet(tmp_path / "t.parquet")
    telemetry = read_telemetry(tmp_path / "t.parquet")
    values = {one.metric: one.value[0] for one in telemetry.series}
    assert values == {"gpu_util_frac": 0.5, "memory_used_bytes": 2 * MIB}
    assert telemetry.subjects[0].device == "3"


def test_parquet_of_something_else_is_refused(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="are not known"):
        read_telemetry(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no such file"):
        read_telemetry(tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("name", "step_s"), [("day", 86_400), ("week", 604_800), ("month", 2_628_000)]
)
def test_days_weeks_and_months_may_be_counted(name, step_s):
    rows = "\n".join(f"{i},{40 + i}" for i in range(1, 9))
    found = read_text(f"{name},gpus\n{rows}\n", source="counted.csv")
    [series] = [one for one in found.series if one.metric == "allocated_count"]
    assert np.diff(series.at_s).tolist() == [step_s] * 7
