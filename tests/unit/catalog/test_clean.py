"""Rows of a price source made fit to keep: one price a machine and place, faults refused."""

import math

import pytest

from gpuplan.catalog.update.clean import (
    FLAT,
    IMPLAUSIBLE,
    NO_PRICE,
    NOT_OURS,
    Cleaned,
    clean,
    identify,
)
from gpuplan.catalog.update.rows import RawRow, number_cell, shape_cells, shape_from
from gpuplan.errors import CatalogError
from gpuplan.units import GBIT, GIB


def row(usd: float | None = 30.0, *, n: float = 8, **changes: object) -> RawRow:
    plain = RawRow(
        instance="gpu_8x_h100_sxm5",
        accelerator="H100",
        n_accelerators=n,
        n_vcpu=96,
        ram_gib=1800,
        region="us-east-1",
        usd_per_h=usd,
        spot_usd_per_h=None,
    )
    return plain._replace(**changes)


def cleaned(*rows: RawRow, cloud: str = "verda") -> Cleaned:
    return clean(cloud, rows)


def refused(*rows: RawRow) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        cleaned(*rows)
    return caught.value


def test_a_sound_row_is_kept_in_our_units():
    (kept,) = cleaned(row(network_gbit_per_s=3200.0)).rows
    assert kept.shape.accelerators == ("h100-sxm",)
    assert kept.shape.ram_bytes == 1800 * GIB
    assert kept.shape.network_bytes_per_s == 3200 * GBIT
    assert (kept.region, kept.usd_per_h, kept.spot_usd_per_h) == ("us-east-1", 30.0, None)


def test_zones_of_a_region_have_one_price_that_an_odd_zone_cannot_move():
    found = cleaned(row(30.0), row(31.0), row(900.0))
    assert [kept.usd_per_h for kept in found.rows] == [31.0]
    assert found.dropped == {}


def test_regions_and_sizes_of_memory_are_machines_of_their_own():
    found = cleaned(row(30.0), row(33.0, region="eu-1"), row(36.0, ram_gib=900))
    assert sorted(kept.usd_per_h for kept in found.rows) == [30.0, 33.0, 36.0]


@pytest.mark.parametrize("usd", [None, 0.0])
def test_no_price_is_left_out_and_counted(usd: float | None):
    found = cleaned(row(usd), row(33.0, region="eu-1"))
    assert [kept.region for kept in found.rows] == ["eu-1"]
    assert found.dropped == {NO_PRICE: 1}


@pytest.mark.parametrize(
    ("usd", "is_kept"),
    [(8 * 0.0099, False), (8 * 0.0101, True), (8 * 149.0, True), (8 * 151.0, False)],
)
def test_the_band_of_plausible_prices_is_of_one_accelerator(usd: float, is_kept: bool):
    found = cleaned(row(usd))
    assert len(found.rows) == is_kept
    assert found.dropped == ({} if is_kept else {IMPLAUSIBLE: 1})


def test_a_machine_without_accelerators_has_a_band_of_its_own():
    plain = row(0.005, accelerator="", n=0, instance="n1-standard-8")
    (kept,) = cleaned(plain).rows
    assert (kept.shape.n_accelerators, kept.shape.accelerators) == (0.0, ())
    assert cleaned(plain._replace(usd_per_h=0.0005)).dropped == {IMPLAUSIBLE: 1}


def test_what_we_do_not_plan_with_is_counted():
    found = cleaned(row(), row(accelerator="tpu-v9-8", instance="v9"))
    assert len(found.rows) == 1
    assert found.dropped == {NOT_OURS: 1}


@pytest.mark.parametrize(
    ("spot", "kept"),
    [(12.0, 12.0), (30.0, 30.0), (30.002, 30.0), (30.5, None), (None, None)],
)
def test_spot_is_at_most_the_price_on_demand(spot: float | None, kept: float | None):
    assert cleaned(row(spot_usd_per_h=spot)).rows[0].spot_usd_per_h == kept


def test_a_cloud_that_repeats_its_price_as_spot_has_none():
    (kept,) = cleaned(row(spot_usd_per_h=12.0), cloud="runpod").rows
    assert kept.spot_usd_per_h is None


def test_a_spot_machine_of_a_broker_meets_its_own():
    spot = row(None, instance="gpu_8x_h100_sxm5__SPOT", spot_usd_per_h=11.0)
    (kept,) = cleaned(row(), spot).rows
    assert (kept.shape.name, kept.usd_per_h) == ("gpu_8x_h100_sxm5", 30.0)
    assert kept.spot_usd_per_h == 11.0


def test_an_auction_states_its_lowest_bid_only():
    (kept,) = cleaned(row(), cloud="mithril").rows
    assert kept.shape.basis == "bid-floor"


def test_one_price_for_sizes_far_apart_is_a_placeholder():
    sizes = [row(700.0, n=n, instance=f"gpu_{n}x_h100_sxm5") for n in (8, 16, 32)]
    found = cleaned(*sizes)
    assert found.rows == ()
    assert found.dropped == {FLAT: 3}


def test_one_price_for_sizes_close_together_is_a_price():
    sizes = [row(60.0, n=n, instance=f"gpu_{n}x_h100_sxm5") for n in (4, 8)]
    assert len(cleaned(*sizes).rows) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"instance": "=cmd|' /C calc'!A0"}, "unsafe name"),
        ({"instance": "a\nb"}, "unsafe name"),
        ({"instance": "x" * 121}, "unsafe name"),
        ({"accelerator": "H100<script>"}, "unsafe name"),
        ({"region": "us\x00east"}, "unsafe name"),
        ({"usd_per_h": -1.0}, "got -1.0"),
        ({"usd_per_h": math.inf}, "got inf"),
        ({"spot_usd_per_h": math.nan}, "got nan"),
        ({"ram_gib": -5.0}, "got -5.0"),
        ({"n_vcpu": math.inf}, "got inf"),
    ],
)
def test_one_unsafe_or_impossible_row_refuses_the_whole_source(change: dict, said: str):
    error = refused(row(), row(region="eu-1")._replace(**change))
    assert said in str(error)


def test_a_source_full_of_faults_is_told_by_its_first_five():
    assert len(refused(*(row(-1.0, region=f"r-{k}") for k in range(50))).problems) == 5


def test_a_place_without_a_name_is_kept_as_its_country():
    (kept,) = cleaned(row(region=", US, NA")).rows
    assert kept.region == "US, NA"


def test_rows_come_out_in_order_whatever_order_they_came_in():
    rows = [row(30.0, region=region) for region in ("us-1", "eu-1", "ap-1")]
    assert cleaned(*rows) == cleaned(*reversed(rows))
    assert [kept.region for kept in cleaned(*rows).rows] == ["ap-1", "eu-1", "us-1"]


def test_a_machine_survives_its_cells():
    (kept,) = cleaned(row(network_gbit_per_s=400.0, note="two, or more")).rows
    assert shape_from("verda", shape_cells(kept.shape)) == kept.shape


def test_cells_that_say_nothing_stay_unknown():
    shape = shape_from("acme", ["m", "", "0", "", "", "", "", ""])
    assert (shape.n_vcpu, shape.ram_bytes, shape.network_bytes_per_s) == (None, None, None)
    assert (shape.accelerators, shape.basis) == ((), "on-demand")


def test_an_unknown_basis_and_an_endless_number_are_refused():
    with pytest.raises(CatalogError, match="basis 'rumour'"):
        shape_from("acme", ["m", "", "0", "", "", "", "rumour", ""])
    with pytest.raises(CatalogError, match="must be finite"):
        number_cell(math.inf)
    assert (number_cell(None), number_cell(1 / 3)) == ("", "0.33333333")


@pytest.mark.parametrize(
    ("name", "ids", "share"),
    [
        ("tpu-v4-8", ("tpu-v4",), 4.0),  # cores, two to a chip
        ("tpu-v5p-16", ("tpu-v5p",), 8.0),
        ("tpu-v5litepod-4", ("tpu-v5e",), 4.0),  # chips
        ("tpu-v6e-8", ("tpu-v6e",), 8.0),
        ("tpu-v9-8", (), 1.0),
        ("Some New Card 9", ("some-new-card-9",), 1.0),
    ],
)
def test_slices_and_strangers_are_identified(name: str, ids: tuple[str, ...], share: float):
    found = identify("acme", name, "m8")
    assert (found.ids, found.share) == (ids, share)


def test_the_instance_tells_boards_of_one_name_apart():
    assert identify("lambda", "H100", "gpu_1x_h100_pcie").ids == ("h100-pcie",)
    assert identify("lambda", "H100", "gpu_8x_h100_sxm5").ids == ("h100-sxm",)
