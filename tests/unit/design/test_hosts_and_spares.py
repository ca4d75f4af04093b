"""Hosts, spares, checkpoint rates: published pairs, theory, other numbers."""

import random
from math import exp, factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.design.hosts import (
    allocatable_bytes,
    allocatable_cores,
    cores_line,
    host_findings,
    memory_line,
    nvme_line,
)
from gpuplan.design.spares import (
    ACCELERATOR_MTBF_S,
    maintenance_findings,
    spare_need,
    sufficient_rate,
)
from gpuplan.domain.scenario.build import SpareRules
from gpuplan.domain.system.parts import CheckpointRate
from gpuplan.domain.training.time import CheckpointWrites, FailureRate
from gpuplan.errors import InputError
from gpuplan.performance.training.goodput import goodput
from gpuplan.units import DAY, GB, GIB, HOUR, TB


def test_what_is_advertised_is_not_what_pods_get():
    assert allocatable_cores(192) == pytest.approx(190.9, abs=0.1)
    assert allocatable_bytes(2048 * GIB) / GIB == pytest.approx(1891)


@given(st.floats(1, 1000), st.floats(1, 1000))
def test_more_cores_leave_more_and_never_all(a, b):
    small, large = sorted((a, b))
    assert allocatable_cores(small) <= allocatable_cores(large) < large


def test_host_parts_say_why_and_what_is_short():
    cores = cores_line(8, 200, 104, is_advertised=False)
    assert (cores.n_needed, cores.is_short) == (220, True)
    assert "200 to decode" in cores.reason
    unknown = cores_line(8, 200, None, is_advertised=True)
    assert not unknown.is_short
    memory = memory_line(80 * GB, 8, batch_bytes=0.0, given_bytes=1400 * GIB)
    assert memory.n_needed == pytest.approx(1280 * GB / GIB)
    assert not memory.is_short
    # Advertised memory would do; what is allocatable of it does not.
    tight = memory_line(80 * GB, 8, batch_bytes=0.0, given_bytes=1250 * GIB)
    assert tight.is_short
    pinned = memory_line(80 * GB, 8, batch_bytes=1 * GIB, given_bytes=None)
    assert pinned.n_needed == pytest.approx(memory.n_needed + 4 * 8)
    assert "32.0 GiB pinned" in pinned.reason
    drives = nvme_line(200 * TB, n_nodes=4, given_bytes=30.7 * TB)
    assert drives.n_needed == pytest.approx(50)
    found = host_findings((cores, memory, drives), "node")
    assert [finding.rule for finding in found] == ["host-cpu", "host-nvme"]


@pytest.mark.parametrize("n_nodes", [4, 64, 512])
def test_spares_are_the_fewest_by_the_poisson_formula(n_nodes):
    need = spare_need(n_nodes, node_mtbf_s=100 * DAY, rules=SpareRules(repair_s=3 * DAY))

    def reached(n_spares):
        mean = (n_nodes + n_spares) * 3 / 100
        return sum(exp(-mean) * mean**k / factorial(k) for k in range(n_spares + 1))

    assert need.kept_frac == pytest.approx(reached(need.n_spares))
    assert need.kept_frac >= 0.99
    assert need.n_spares == 0 or reached(need.n_spares - 1) < 0.99


def test_failures_scale_with_machines():
    assert pytest.approx(49.5, abs=0.1) == ACCELERATOR_MTBF_S / 1024 / HOUR


def test_spares_hold_the_promise_in_a_drawn_life():
    mtbf, repair, n_nodes = 60 * DAY, 3 * DAY, 40
    need = spare_need(n_nodes, node_mtbf_s=mtbf, rules=SpareRules(repair_s=repair))
    assert need.n_spares >= 1
    draws = random.Random(7)
    rate = (n_nodes + need.n_spares) / mtbf
    ends: list[float] = []
    now = kept = 0.0
    horizon = 100_000 * DAY
    while now < horizon:
        gap = draws.expovariate(rate)
        later = now + gap
        while ends and ends[0] <= later:
            upto = ends.pop(0)
            kept += (upto - now) * (len(ends) + 1 <= need.n_spares)
            now = upto
        kept += (later - now) * (len(ends) <= need.n_spares)
        now = later
        ends.append(now + repair)
    assert kept / now == pytest.approx(need.kept_frac, abs=0.004)


@given(st.integers(1, 2000), st.floats(1, 20))
def test_longer_repair_never_needs_fewer_spares(n_nodes, factor):
    short = spare_need(n_nodes, node_mtbf_s=300 * DAY, rules=SpareRules(repair_s=1 * DAY))
    long = spare_need(n_nodes, node_mtbf_s=300 * DAY, rules=SpareRules(repair_s=factor * DAY))
    assert long.n_spares >= short.n_spares
    assert short.kept_frac >= 0.99


def test_nonsense_is_refused():
    with pytest.raises(InputError):
        spare_need(0, node_mtbf_s=1.0)


def loss(size_bytes: float, mtbf_s: float, restart_s: float = 0.0):
    def of(rate: float) -> CheckpointRate:
        found = goodput(
            FailureRate(mtbf_s=mtbf_s, restart_s=restart_s),
            CheckpointWrites(size_bytes=size_bytes, write_bytes_per_s=rate),
        )
        return CheckpointRate(
            write_bytes_per_s=rate,
            write_s=found.write_s,
            interval_s=found.interval_s or 0.0,
            lost_frac=1.0 - (found.goodput_frac or 0.0),
        )

    return of


def test_storage_is_justified_by_goodput():
    enough, table = sufficient_rate(loss(1.4 * TB, 49.5 * HOUR))
    by_rate = {rate.write_bytes_per_s / GB: rate for rate in table}
    assert by_rate[2].interval_s / 60 == pytest.approx(263, abs=1.5)
    assert by_rate[20].interval_s / 60 == pytest.approx(83, abs=1)
    lost = [rate.lost_frac for rate in table]
    assert lost == sorted(lost, reverse=True)
    assert 10 <= enough.write_bytes_per_s / GB <= 50
    small, _ = sufficient_rate(loss(0.014 * TB, 49.5 * HOUR))
    assert small.write_bytes_per_s < enough.write_bytes_per_s


@pytest.mark.parametrize(("rate", "lost"), [(2, 0.092), (20, 0.031), (100, 0.016)])
def test_write_rates_of_a_large_run(rate, lost):
    one = loss(1.4 * TB, 49.5 * HOUR, restart_s=600.0)(rate * GB)
    assert one.lost_frac == pytest.approx(lost, abs=0.0006)


def test_updates_need_someone_to_stand_in():
    assert maintenance_findings(4, "none")[0].severity == "note"
    assert maintenance_findings(1, "none")[0].severity == "warning"
    assert not maintenance_findings(4, "node")
