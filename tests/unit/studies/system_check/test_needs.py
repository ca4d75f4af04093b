"""The six needs: what each is counted in, the least headroom, and what is unknown."""

import pytest

from gpuplan import api
from gpuplan.domain.system.check import Need, next_bottleneck
from shared_data import ROOT

NAMES = ["compute", "memory", "speed", "storage", "network", "power"]


@pytest.fixture(scope="module")
def needs():
    def of(example):
        return {one.name: one for one in api.check(ROOT / "examples" / f"{example}.yaml").needs}

    return {name: of(name) for name in ("slow-disks", "power-shortfall")}


def need(demand, supply):
    return Need(name="n", what="", unit="", n_demand=demand, n_supply=supply)


def test_there_are_six_in_the_documents_order(needs):
    assert all(list(one) == NAMES for one in needs.values())


def test_disks_and_their_link_are_needs_of_their_own(needs):
    found = needs["slow-disks"]
    assert found["storage"].n_demand == pytest.approx(8 * 3000 * 110e3)
    # 3,600 random reads/s of 110 kB; the link of 1 Gbit/s is the network's need.
    assert found["storage"].headroom_frac == pytest.approx(1 - 2.64 / 0.396, rel=0.01)
    assert found["network"].headroom_frac == pytest.approx(1 - 2.64 / 0.11, rel=0.01)
    assert found["speed"].headroom_frac == pytest.approx(1 - 220 / 104)
    assert next_bottleneck(tuple(found.values())).name == "network"


def test_a_site_without_racks_says_nothing_of_power(needs):
    assert needs["slow-disks"]["power"].headroom_frac is None
    power = needs["power-shortfall"]["power"]
    assert power.headroom_frac == pytest.approx(1 - 10200 / (208 * 60 * 3**0.5 * 0.8))


def test_all_accelerators_in_use_leave_no_headroom(needs):
    compute = needs["power-shortfall"]["compute"]
    assert (compute.n_demand, compute.n_supply) == (32, 32)
    assert compute.headroom_frac == 0


@pytest.mark.parametrize(("demand", "supply"), [(None, 1.0), (1.0, None), (1.0, 0.0)])
def test_what_is_not_known_has_no_headroom(demand, supply):
    assert need(demand, supply).headroom_frac is None
    assert next_bottleneck((need(demand, supply),)) is None


def test_the_least_headroom_binds_next():
    tight = need(9.0, 10.0)
    assert next_bottleneck((need(1.0, 10.0), tight, need(None, 1.0))) is tight
