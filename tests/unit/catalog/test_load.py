"""The shipped catalog: complete, exact in the figures that matter, and fast to read."""

import csv
from collections import Counter

import pytest

from fakes.planting import tables_with
from gpuplan.catalog.load import catalog_from, parse_facts, read_catalog, read_tables
from gpuplan.errors import CatalogError
from gpuplan.units import GB, GIB, MIB, TFLOP
from shared_data import shared_file

CATALOG = read_catalog()


def test_h100_sxm_reads_as_published() -> None:
    h100 = CATALOG.accelerators["h100-sxm"]
    assert h100.peak_flop_per_s["bf16"] == pytest.approx(989.4 * TFLOP)
    assert h100.memory.marketed_bytes == 80 * GIB
    assert h100.memory.driver_bytes == 81559 * MIB
    assert h100.memory.visible_bytes == pytest.approx(79.18 * GIB)
    assert h100.memory.bytes_per_s == 3350 * GB
    assert h100.scale_up is not None
    assert h100.scale_up.bytes_per_s == 450 * GB
    assert h100.scale_up.n_domain == 8
    assert h100.power.limit_w == 700
    assert h100.power.idle_w is not None
    assert h100.power.loaded_idle_w is not None


@pytest.mark.parametrize("item", ["mi250", "mi250x", "pvc-1550"])
def test_a_package_of_two_devices_is_counted_as_software_counts(item: str) -> None:
    fact = CATALOG.fact(item, "devices_per_package")
    assert fact is not None
    assert fact.value == "2"
    assert CATALOG.accelerators[item].memory.marketed_bytes == 64 * GIB


def test_a10g_is_not_a10() -> None:
    a10, a10g = CATALOG.accelerators["a10"], CATALOG.accelerators["a10g"]
    assert a10.peak_flop_per_s["bf16"] / a10g.peak_flop_per_s["bf16"] == pytest.approx(125 / 70)
    assert a10g.power.limit_w == 300


@pytest.mark.parametrize("item", ["tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "trainium2"])
def test_power_that_is_not_published_is_none(item: str) -> None:
    power = CATALOG.accelerators[item].power
    assert (power.limit_w, power.idle_w, power.loaded_idle_w) == (None, None, None)


def test_absent_precisions_are_absent() -> None:
    assert "bf16" not in CATALOG.accelerators["t4"].peak_flop_per_s
    assert "fp8" not in CATALOG.accelerators["a100-sxm-80gb"].peak_flop_per_s
    assert "fp4" not in CATALOG.accelerators["h100-sxm"].peak_flop_per_s


def test_racks_are_servers_not_accelerators() -> None:
    assert not [item for item in CATALOG.accelerators if "rack" in item or "nvl72" in item]
    assert CATALOG.servers["gb200-nvl72"].n_accelerators == 72


def test_server_power_is_more_than_its_boards() -> None:
    assert CATALOG.servers["dgx-h100"].power.limit_w == 10_200
    assert CATALOG.servers["dgx-h100"].power.limit_w > 8 * 700


def test_mig_profiles_are_found_by_accelerator() -> None:
    profiles = {profile.name: profile for profile in CATALOG.mig_profiles_of("h100-sxm")}
    assert profiles["3g.40gb"].n_max == 2
    assert profiles["3g.40gb"].compute_frac == pytest.approx(3 / 7)
    assert CATALOG.mig_profiles_of("l4") == ()


def test_every_number_can_be_traced() -> None:
    for item in CATALOG.accelerators:
        for fact in CATALOG.facts_of(item):
            assert CATALOG.sources[fact.source].kind in (
                "measured", "vendor", "market", "estimate", "computed",
            )  # fmt: skip


def test_visible_memory_is_mostly_measured() -> None:
    kinds = Counter(
        CATALOG.sources[fact.source].kind == "estimate"
        for item in CATALOG.accelerators
        if (fact := CATALOG.fact(item, "memory_visible")) is not None
    )
    assert kinds[False] >= 42


def test_what_no_source_gives_says_so() -> None:
    assert CATALOG.fact("tpu-v4", "power_limit") is None
    assert CATALOG.facts_of("no-such-thing") == ()


def test_hash_follows_the_content() -> None:
    assert read_tables().content_hash == CATALOG.content_hash
    assert len(CATALOG.content_hash) == 64


def test_every_incomplete_item_is_named() -> None:
    tables = tables_with(CATALOG, "h100-sxm", CATALOG.facts["h100-sxm"][:2])
    with pytest.raises(CatalogError) as caught:
        catalog_from(tables)
    assert "h100-sxm.memory_visible" in str(caught.value)
    assert "h100-sxm.peak_*" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["item,value\n", "item,quantity,value,unit,source,preferred,note\na,b\n"]
)
def test_a_broken_table_is_named(text: str) -> None:
    with pytest.raises(CatalogError, match=r"facts\.csv"):
        list(parse_facts(text, table="facts.csv"))


@pytest.mark.shared
def test_every_published_accelerator_and_server_is_here() -> None:
    with shared_file("catalog/accelerators.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["form_factor"] != "rack"]
    assert {row["id"] for row in rows} <= set(CATALOG.accelerators)
    with shared_file("catalog/servers.csv").open() as file:
        assert {row["id"] for row in csv.DictReader(file)} <= set(CATALOG.servers)


@pytest.mark.shared
def test_every_idle_observation_is_here() -> None:
    with shared_file("catalog/idle_power_observations.csv").open() as file:
        for row in csv.DictReader(file):
            known = [
                float(fact.value)
                for fact in CATALOG.facts_of(row["accelerator_id"])
                if fact.quantity in ("power_idle", "power_loaded_idle")
            ]
            assert float(row["watts"]) in known


def test_mig_profiles_have_the_memory_that_is_left_for_users():
    gib = {(p.accelerator, p.name): p.memory_bytes / GIB for p in read_catalog().mig_profiles}
    assert gib["h200-sxm", "1g.18gb"] == 16.0
    assert [gib["h100-sxm", name] for name in ("1g.10gb", "2g.20gb", "3g.40gb")] == [
        9.75,
        19.62,
        39.5,
    ]
    assert gib["h800-sxm", "1g.10gb"] == gib["h100-sxm", "1g.10gb"]
    assert gib["rtx-pro-6000-ws", "1g.24gb"] == gib["rtx-pro-6000-bw", "1g.24gb"]


@pytest.mark.parametrize(
    ("item", "status"),
    [
        ("b200-sxm", "on sale"),
        ("a100-sxm-80gb", "current"),
        ("quadro-rtx-6000", "legacy"),
        ("rtx-a4500", "legacy"),
        ("vr200", "announced"),
    ],
)
def test_a_board_says_where_it_stands_between_launch_and_end(item, status):
    card = read_catalog().accelerators[item]
    assert card.lifecycle.status == status
