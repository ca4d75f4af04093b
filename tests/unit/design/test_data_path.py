"""The way of data: reference arithmetic, other numbers, and what must always hold."""

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.load import read_catalog
from gpuplan.design.data_path import (
    busy_frac,
    chain,
    copy_stage,
    decode_stage,
    demand_of,
    link_stage,
    memory_stage,
    storage_stage,
)
from gpuplan.design.storage import capacity_growth, storage_rates
from gpuplan.domain.scenario.workload import DataPath, Loader, Storage
from gpuplan.domain.system.parts import Stage, StorageRates, StoredData
from gpuplan.units import DAY, GB, GBIT, KB, MONTH

JPEG = DataPath(sample_bytes=110 * KB)
DEMAND = demand_of(JPEG, 8, samples_per_s=3000)
CLASSES = read_catalog().storage
HDD, HDD_TOLD = storage_rates(Storage(kind="hdd_nfs"), CLASSES)
LOADER = Loader(n_cores=104, samples_per_s_per_core=120)


def stage(load: float, *, beside: bool = True, name: str = "x") -> Stage:
    return Stage(
        name=name, load_ratio=load, is_overlapped=beside, n_wanted=load, n_given=1, unit="", fix=""
    )


def test_top_accelerators_behind_slow_disks():
    assert pytest.approx(2.64 * GB) == DEMAND.bytes_per_s
    assert DEMAND.operations_per_s == 24_000
    assert DEMAND.open_operations_per_s == 24_000
    stages = (
        link_stage(DEMAND, HDD, 1 * GBIT, n_nodes=1),
        storage_stage(DEMAND, HDD, 1),
        decode_stage(DEMAND, LOADER, n_cores=104, n_nodes=1),
    )
    found = chain(stages)
    assert [b.stage.name for b in found] == ["storage network", "storage", "CPU decode"]
    assert [round(b.busy_frac, 2) for b in found] == [0.04, 0.15, 0.52]
    assert found[1].stage.unit == "reads/s"
    assert found[2].stage.n_wanted == pytest.approx(200)
    assert found[2].stage.n_given == 104
    assert found[-1].busy_after_frac == 1.0


def test_ten_gigabit_is_not_enough_either():
    faster = link_stage(DEMAND, HDD, 10 * GBIT, n_nodes=1)
    assert round(1 / faster.load_ratio, 2) == 0.42
    slow = link_stage(DEMAND, HDD, 1 * GBIT, n_nodes=1)
    told = {option.what: option.busy_frac for option in slow.options}
    assert round(told["10 Gbit/s"], 2) == 0.42
    assert told["25 Gbit/s"] == 1.0
    assert "25 Gbit/s" in slow.fix


def test_storage_alone_is_no_remedy():
    left = (decode_stage(DEMAND, LOADER, n_cores=104, n_nodes=1),)
    assert busy_frac(left) == pytest.approx(0.52)


def test_kind_without_measurement_is_told():
    assert "24 x" in HDD_TOLD[0].value
    measured, told = storage_rates(Storage(kind="hdd_nfs", bytes_per_s=2 * GB), CLASSES)
    assert measured.operations_per_s is None
    assert not told


def test_shards_turn_seeks_into_streams():
    sharded = demand_of(replace(JPEG, n_samples_per_file=10_000), 8, samples_per_s=3000)
    assert sharded.open_operations_per_s == pytest.approx(2.4)
    assert sharded.operations_per_s < DEMAND.operations_per_s / 9
    assert storage_stage(sharded, HDD, 1).load_ratio < 1 < storage_stage(DEMAND, HDD, 1).load_ratio


def test_small_objects_wait_for_latency_not_for_bytes():
    rates, _ = storage_rates(Storage(kind="object"), CLASSES)
    small = demand_of(DataPath(sample_bytes=10 * KB), 8, samples_per_s=3000)
    assert small.bytes_per_s < rates.bytes_per_s
    assert storage_stage(small, rates, 1).unit == "reads/s"


def test_large_samples_take_several_reads():
    assert demand_of(DataPath(sample_bytes=10_000 * KB), 1, samples_per_s=1).operations_per_s == 10


def test_one_server_feeds_all_nodes_and_local_disks_only_their_own():
    demand = demand_of(JPEG, 32, samples_per_s=3000)
    shared = link_stage(demand, HDD, 100 * GBIT, n_nodes=4)
    own = link_stage(demand, replace(HDD, is_one_server=False), 100 * GBIT, n_nodes=4)
    assert shared.load_ratio == pytest.approx(4 * own.load_ratio)
    local, _ = storage_rates(Storage(kind="local_nvme"), CLASSES)
    assert storage_stage(demand, local, 4).load_ratio == pytest.approx(
        storage_stage(DEMAND, local, 1).load_ratio
    )


def test_few_workers_leave_cores_idle_and_none_make_the_loop_wait():
    four = decode_stage(DEMAND, replace(LOADER, n_workers=4), n_cores=104, n_nodes=1)
    assert four.n_given == 4
    assert "workers" in four.fix
    none = decode_stage(DEMAND, replace(LOADER, n_workers=0), n_cores=104, n_nodes=1)
    assert not none.is_overlapped


def test_waits_add_and_neighbours_do_not():
    assert busy_frac([stage(0.3), stage(0.9)]) == 1.0
    assert busy_frac([stage(0.3, beside=False), stage(0.9)]) == pytest.approx(1 / 1.3)
    assert busy_frac([stage(0.3, beside=False), stage(2.0)]) == pytest.approx(0.5)


def test_pageable_copy_of_a_batch_takes_a_quarter():
    compute_s = 256 / 3000
    copied = copy_stage(3000 * 602_112, 25.7e-3, compute_s, is_overlapped=False, fix="pin")
    assert busy_frac([copied]) == pytest.approx(compute_s / (compute_s + 25.7e-3))
    assert busy_frac([replace(copied, is_overlapped=True)]) == 1.0


def test_host_memory_is_crossed_four_times():
    crossed = memory_stage(DEMAND, 602_112, n_nodes=1)
    assert crossed.n_wanted == pytest.approx(4 * 24_000 * 602_112)


LOADS = st.lists(st.tuples(st.floats(0.01, 50), st.booleans()), min_size=0, max_size=7).map(
    lambda rows: [stage(x, beside=b, name=str(i)) for i, (x, b) in enumerate(rows)]
)


@given(LOADS)
def test_gains_multiply_to_the_whole(stages):
    found = chain(stages)
    assert [b.busy_frac for b in found] == sorted(b.busy_frac for b in found)
    if not found:
        assert busy_frac(stages) >= 0.995
        return
    assert found[0].busy_frac == pytest.approx(busy_frac(stages))
    last = found[-1].busy_after_frac
    assert prod(b.gain_ratio for b in found) == pytest.approx(last / busy_frac(stages))
    assert last >= 0.995
    idle = sum(b.idle_frac for b in found)
    assert idle == pytest.approx(last - busy_frac(stages))


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_shares_do_not_know_the_second_or_the_byte(second, byte):
    path = DataPath(sample_bytes=110 * KB * byte, n_samples_per_file=100)
    rates = StorageRates(
        bytes_per_s=3e8 * byte / second, operations_per_s=None, is_shared=True, is_remote=True
    )
    resized = demand_of(path, 8, samples_per_s=3000 / second)
    assert storage_stage(resized, rates, 1).load_ratio == pytest.approx(2.64e9 / 3e8)
    linked = link_stage(resized, rates, 1.25e8 * byte / second, n_nodes=1)
    assert linked.load_ratio == pytest.approx(2.64e9 / (0.88 * 1.25e8))


@given(st.floats(0, 0.99))
def test_a_cache_takes_its_share_of_reads_alone(hit):
    cached = demand_of(replace(JPEG, cache_hit_frac=hit), 8, samples_per_s=3000)
    assert cached.bytes_per_s == pytest.approx((1 - hit) * DEMAND.bytes_per_s)
    assert cached.samples_per_s == DEMAND.samples_per_s


def test_data_grows_by_what_is_added_each_month():
    held = StoredData(
        dataset_bytes=100e12,
        dataset_growth_frac=0.1,
        checkpoint_bytes=3e12,
        artifacts_bytes_per_s=1e12 / MONTH,
        log_bytes_per_s=1e9 / DAY,
    )
    points = capacity_growth(held, 12 * MONTH)
    assert [round(point.after_s / MONTH) for point in points] == [0, 3, 6, 12]
    last = dict(points[-1].parts)
    assert last["dataset"] == pytest.approx(100e12 * 1.1**12)
    assert last["artifacts"] == pytest.approx(12e12)
    assert last["logs"] == pytest.approx(365e9)
    assert points[0].held_bytes == pytest.approx(103e12)
