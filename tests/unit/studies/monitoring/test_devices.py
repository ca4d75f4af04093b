"""Facts of monitored devices: found by the names that exporters give, or told to be unknown."""

from statistics import median

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.offers import read_offers, rentable
from gpuplan.domain.telemetry.diagnosis import DeviceFacts, DiagnoseRequest
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError
from gpuplan.studies.monitoring.devices import (
    device_facts,
    facts_of_fleet,
    mean_price,
    power_limits_w,
    refuse_empty,
)

ASKED = DiagnoseRequest()


def scene(*models: str) -> Telemetry:
    made = Scene(n_samples=4)
    for gpu, model in enumerate(models):
        made.device(gpu, model=model, gpu_util=0.5)
    return made.telemetry()


def test_a_board_is_found_by_the_name_that_its_driver_gives():
    facts, notes = device_facts(scene("NVIDIA H100 80GB HBM3"), ASKED)
    board = read_catalog().accelerators["h100-sxm"]
    assert facts[0].tdp_w == board.power.limit_w == 700.0
    assert facts[0].memory_bytes == board.memory.driver_bytes
    assert facts[0].link_bytes_per_s == board.scale_up.bytes_per_s
    assert any("price" in note.what for note in notes)


def test_a_cloud_counts_once_however_many_regions_it_lists():
    prices = {}
    for offer in rentable(read_offers()):
        if offer.accelerator == "h100-sxm" and offer.usd_per_accelerator_h:
            prices.setdefault(offer.cloud, []).append(offer.usd_per_accelerator_h)
    facts, notes = device_facts(scene("NVIDIA H100 80GB HBM3"), ASKED)
    assert facts[0].usd_per_h == median(median(of) for of in prices.values())
    assert 2.0 < facts[0].usd_per_h < 5.0  # what an H100 hour costs, not a hyperscaler's list
    assert any(f"{len(prices)} clouds" in note.why for note in notes)


def test_an_unknown_board_is_told_and_has_no_limits():
    facts, notes = device_facts(scene("NVIDIA Q9000 Quantum"), ASKED)
    assert facts[0] == DeviceFacts()
    assert [note.value for note in notes] == ["not in the catalog"]


def test_a_board_that_the_user_names_must_be_known():
    with pytest.raises(InputError, match="Q9000"):
        device_facts(scene("x"), DiagnoseRequest(accelerator="Q9000"))


def test_the_users_price_wins_and_nothing_is_assumed_of_it():
    asked = DiagnoseRequest(usd_per_h=1.25)
    facts, notes = device_facts(scene("NVIDIA H100 80GB HBM3"), asked)
    assert facts[0].usd_per_h == 1.25
    assert not any("price" in note.what for note in notes)


def test_two_boards_of_a_name_are_looked_up_once_and_noted_once():
    once, _ = device_facts(scene("NVIDIA H100 80GB HBM3"), ASKED)
    twice, notes = device_facts(scene("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"), ASKED)
    assert twice[0] == twice[1] == once[0]
    assert len(notes) == len({note.what for note in notes})


def test_a_fleet_keeps_one_row_for_each_device_in_order():
    models = ["NVIDIA H100 80GB HBM3", "", "NVIDIA L4"]
    facts, _ = facts_of_fleet(models, ASKED)
    assert [one.tdp_w for one in facts] == [700.0, None, 72.0]
    assert np.isnan(power_limits_w(facts)[1])
    assert power_limits_w(facts)[[0, 2]].tolist() == [700.0, 72.0]


def test_the_price_of_a_mixed_fleet_is_the_mean_of_what_is_known():
    facts = [DeviceFacts(usd_per_h=2.0), DeviceFacts(), DeviceFacts(usd_per_h=4.0)]
    assert mean_price(facts, ASKED) == 3.0
    assert mean_price(facts, DiagnoseRequest(usd_per_h=1.0)) == 1.0
    assert mean_price([DeviceFacts()], ASKED) is None


def test_silence_is_refused():
    empty = Telemetry(source="x.csv", format="table", subjects=(), series=())
    with pytest.raises(InputError, match="nothing that can be judged"):
        refuse_empty(empty)
    assert refuse_empty(scene("NVIDIA L4")).series
