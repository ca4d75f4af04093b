"""Offers: what is shipped is sound, and the rules see every planted fault."""

import csv
import importlib.util
import math
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

from gpuplan.catalog.integrity.offers import check_offers, looked_at
from gpuplan.catalog.load import read_catalog, read_market_sources
from gpuplan.catalog.offers import (
    is_surveyed,
    listed_offers,
    offers_in,
    offers_with,
    own_lists,
    price_dates,
    read_discounts,
    read_offers,
    rentable,
    seller_of,
    with_known_regions,
)
from gpuplan.catalog.update.clean import identify
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.money.market import Offer
from gpuplan.units import GBIT, GIB
from shared_data import ROOT, shared_file

WITHOUT_A_LIST = {"mi325x", "gb200", "gb300", "mi350x", "mi355x", "h200-nvl", "tpu-v7", "trainium2"}
TODAY = date(2026, 11, 15)
OFFERS = read_offers()
DATA = ROOT / "src" / "gpuplan" / "catalog" / "data"
MAX_TABLE_BYTES = 600_000


def one_offer(cloud: str, instance: str, region: str) -> Offer:
    (found,) = [o for o in offers_in(OFFERS, cloud=cloud, region=region) if o.instance == instance]
    return found


def test_no_price_is_zero_negative_or_not_a_number() -> None:
    for offer in OFFERS:
        assert math.isfinite(offer.usd_per_h)
        assert offer.usd_per_h > 0
        if offer.spot_usd_per_h is not None:
            assert 0 < offer.spot_usd_per_h <= offer.usd_per_h


def test_shipped_offers_have_no_errors() -> None:
    findings = check_offers(OFFERS, TODAY)
    assert [f for f in findings if f.severity == "error"] == []


def test_every_cloud_of_the_survey_is_there_at_its_own_price_date() -> None:
    dates = price_dates(OFFERS)
    assert len(dates) == 33
    assert dates["ibm"] == date(2023, 1, 15)
    assert dates["azure"] == date(2026, 6, 18)  # not the 2024 file that it superseded
    assert dates["gcp"] == date(2026, 8, 21)


def test_old_prices_are_flagged_stale_or_old() -> None:
    rules = {f.where: f.rule for f in check_offers(OFFERS, TODAY) if f.rule.startswith("price-")}
    assert rules["ibm"] == "price-old"
    assert rules["cudo"] == "price-stale"
    assert rules.get("aws") is None


@pytest.mark.parametrize(
    ("age_days", "rule"),
    [(0, None), (180, None), (181, "price-stale"), (540, "price-stale"), (541, "price-old")],
)
def test_age_bands_have_exact_edges(age_days: int, rule: str | None) -> None:
    offer = one_offer("aws", "p5.48xlarge", "us-east-1")
    today = date.fromordinal(offer.price_date.toordinal() + age_days)
    found = {f.rule for f in check_offers([offer], today)}
    assert found == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"usd_per_h": 0.0}, "price-positive"),
        ({"usd_per_h": math.nan}, "price-positive"),
        ({"usd_per_h": -3.0}, "price-positive"),
        ({"spot_usd_per_h": 0.0}, "spot-positive"),
        ({"spot_usd_per_h": math.nan}, "spot-positive"),
        ({"spot_usd_per_h": 1e3}, "spot-below-on-demand"),
        ({"usd_per_h": 99999.0}, "price-band"),
        ({"usd_per_h": 0.05, "spot_usd_per_h": None}, "price-band"),
        ({"price_date": date(2027, 1, 1)}, "price-date"),
    ],
)
def test_planted_faults_are_errors(change: dict[str, object], rule: str) -> None:
    offer = replace(one_offer("aws", "p5.48xlarge", "us-east-1"), **change)  # type: ignore[arg-type]
    findings = check_offers([offer], TODAY)
    assert ("error", rule) in {(f.severity, f.rule) for f in findings}


def test_duplicates_unknown_places_and_unknown_accelerators_are_told() -> None:
    offer = one_offer("aws", "p5.48xlarge", "us-east-1")
    moved = replace(offer, region="mars-1")
    rules = {f.rule for f in check_offers([offer, offer, moved], TODAY, known_accelerators=["t4"])}
    assert {"duplicate", "region-known", "accelerator-known"} <= rules


def test_a_price_far_from_the_usual_is_a_warning() -> None:
    usual = offers_with(rentable(OFFERS), "h100-sxm")
    odd = replace(usual[0], usd_per_h=usual[0].n_accelerators * 0.1, spot_usd_per_h=None)
    findings = check_offers([*usual, replace(odd, region="odd")], TODAY)
    found = {(f.severity, f.where) for f in findings if f.rule == "price-spread"}
    assert ("warning", f"{odd.cloud} {odd.instance}") in found
    assert len(found) == 1 + sum(f.rule == "price-spread" for f in check_offers(usual, TODAY))


def test_a_machine_reads_as_the_cloud_publishes_it() -> None:
    offer = one_offer("aws", "p5.48xlarge", "us-east-1")
    assert (offer.accelerator, offer.n_accelerators) == ("h100-sxm", 8)
    assert (offer.shape.n_vcpu, offer.shape.ram_bytes) == (192, 2048 * GIB)
    assert offer.shape.network_bytes_per_s == 3200 * GBIT
    assert offer.usd_per_h == pytest.approx(55.04)
    assert offer.usd_per_accelerator_h == pytest.approx(6.88)


def test_traps_of_the_sources_are_not_stepped_into() -> None:
    assert all(o.spot_usd_per_h is None for o in offers_in(OFFERS, cloud="runpod"))
    assert all(o.spot_usd_per_h is None for o in offers_in(OFFERS, cloud="vast"))
    assert {o.shape.basis for o in offers_in(OFFERS, cloud="mithril")} == {"bid-floor"}
    assert all(o.cloud != "mithril" for o in rentable(OFFERS))
    # Three regions list every TPU v6e slice at $700.
    v6e = offers_with(OFFERS, "tpu-v6e")
    assert max(o.usd_per_accelerator_h or 0 for o in v6e) < 4
    # GCP's hosts alone are a tenth of the price.
    assert one_offer("gcp", "a3-highgpu-8g", "us-central1").usd_per_h == pytest.approx(
        87.83, abs=0.01
    )


def test_slices_are_counted_in_chips() -> None:
    counts = {o.instance: o.n_accelerators for o in OFFERS if o.instance.startswith("tpu-")}
    assert counts["tpu-v4-8"] == 4
    assert counts["tpu-v5p-8"] == 4
    assert counts["tpu-v5litepod-8"] == 8
    assert counts["tpu-v6e-8"] == 8


def test_shares_of_a_card_are_counted_as_shares() -> None:
    assert one_offer("azure", "Standard_NV4as_v4", "eastus").n_accelerators == 0.125
    assert {o.n_accelerators for o in OFFERS if o.instance == "g6f.2xlarge"} == {0.25}


@pytest.mark.parametrize(
    ("cloud", "name", "instance", "ids"),
    [
        ("paperspace", "H100", "H100x8", ("h100-sxm", "h100-pcie", "h100-nvl")),
        ("newcloud", "A100-80GB", "x", ("a100-sxm-80gb", "a100-pcie-80gb")),
        ("newcloud", "RTX6000", "x", ("quadro-rtx-6000", "rtx-6000-ada", "rtx-pro-6000-bw")),
        ("nebius", "RTX6000", "gpu-rtx6000_1gpu", ("rtx-pro-6000-bw",)),
        ("lambda", "RTX6000", "gpu_1x_rtx6000", ("quadro-rtx-6000",)),
        ("vast", "H100", "1x-H100_NVL-32-65536", ("h100-nvl",)),
        ("fluidstack", "H100-NVLINK", "H100_NVLINK_80GB::8", ("h100-sxm", "h100-pcie")),
        ("mithril", "A100", "a100-80gb.sxm.1x", ("a100-sxm-80gb",)),
        ("cudo", "A100", "epyc-genoa-a100-pcie_1x2v4gb", ("a100-pcie-80gb",)),
        ("scaleway", "H100", "H100-1-80G", ("h100-pcie",)),
        ("azure", "H100-NVL", "Standard_NC40ads_H100_v5", ("h100-nvl",)),
        ("aws", "Virtex UltraScale+ (VU47P)", "f2.6xlarge", ()),
        ("gcp", "tpu-v9-8", "tpu-v9-8", ()),
    ],
)
def test_names_resolve_by_evidence_and_stay_ambiguous_without(
    cloud: str, name: str, instance: str, ids: tuple[str, ...]
) -> None:
    assert identify(cloud, name, instance).ids == ids


def test_offers_that_may_carry_another_accelerator_are_not_given() -> None:
    sure = offers_with(OFFERS, "h100-pcie")
    unsure = [o for o in OFFERS if o.is_ambiguous and "h100-pcie" in o.shape.accelerators]
    assert all(o.accelerator == "h100-pcie" for o in sure)
    assert sure
    assert unsure
    assert not {*sure} & {*unsure}


def test_filters_by_place_and_age() -> None:
    here = offers_in(OFFERS, cloud="gcp", region="europe-west4")
    assert {(o.cloud, o.region) for o in here} == {("gcp", "europe-west4")}
    fresh = [o for o in OFFERS if o.age_days(TODAY) <= 180]
    assert {"aws", "gcp", "azure"} <= {o.cloud for o in fresh}
    assert "ibm" not in {o.cloud for o in fresh}


def test_machines_without_accelerators_are_there_for_hosts_and_front_ends() -> None:
    plain = [o for o in OFFERS if o.n_accelerators == 0]
    assert {o.cloud for o in plain} == {"aws", "gcp", "nebius"}
    assert any(o.instance == "n1-standard-8" for o in plain)  # the host of GCP's attached cards
    assert all(o.accelerator is None and o.usd_per_accelerator_h is None for o in plain)


def test_discounts_are_ranges_and_say_that_they_are_weak() -> None:
    discounts = read_discounts()
    assert len(discounts) == 9
    assert all(0 <= d.low_frac <= d.high_frac < 1 for d in discounts)
    assert all(d.is_weak for d in discounts)


def test_every_source_is_described() -> None:
    sources = read_market_sources()
    used = {o.source for o in OFFERS} | {d.source for d in read_discounts()}
    assert used <= sources.keys()


def test_tables_are_small() -> None:
    tables = [p for kind in ("offers", "discounts", "regions", "software")
              for p in DATA.glob(f"{kind}*.csv")]  # fmt: skip
    assert sum(path.stat().st_size for path in tables) < MAX_TABLE_BYTES


@pytest.mark.shared
def test_tables_are_what_the_tool_builds_from_the_raw_files(tmp_path: Path) -> None:
    raw = shared_file("catalog/cloud_prices_region.csv").parent
    build_market = _tool()
    build_market.build(raw, tmp_path)
    built = sorted(tmp_path.iterdir())
    assert len(built) == 8
    for path in built:
        assert path.read_text() == (DATA / path.name).read_text(), path.name


@pytest.mark.shared
def test_every_raw_price_is_shipped_or_left_out_for_a_reason(tmp_path: Path) -> None:
    path = shared_file("catalog/cloud_prices_region.csv")
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    dropped = _tool().build_offers(path.parent, tmp_path)
    listed = [offer for offer in listed_offers() if seller_of(offer) != "survey"]
    shipped = sum(1 for o in listed if o.n_accelerators)
    merged = sum(1 for r in rows if r["instance_type"].endswith("__SPOT"))
    assert shipped + merged + dropped.total() == len(rows)
    on_demand = Counter(r["cloud"] for r in rows if not r["superseded_by"] and r["price_usd_hr"])
    assert on_demand["runpod"] == sum(1 for o in listed if o.cloud == "runpod")


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_market", ROOT / "tools/build_market.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sellers_are_known_clouds_with_a_source():
    sources, clouds = read_market_sources(), {offer.cloud for offer in OFFERS}
    path = DATA / "offers_sellers.csv"
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["cloud"] for row in rows} <= clouds
    assert all(row["source"] in sources for row in rows)


def test_surveyed_prices_are_weak_and_have_their_source():
    surveyed = [offer for offer in read_offers() if seller_of(offer) == "survey"]
    assert {offer.accelerator for offer in surveyed} >= WITHOUT_A_LIST
    assert {read_market_sources()[offer.source].kind for offer in surveyed} == {"market"}
    assert not any(offer.region for offer in surveyed)
    vultr = {o.accelerator: o.usd_per_accelerator_h for o in surveyed if o.cloud == "vultr"}
    assert vultr == pytest.approx({"mi300x": 1.85, "mi325x": 2.0, "mi355x": 2.59})


def test_who_sets_the_price():
    found = {offer.cloud: seller_of(offer) for offer in OFFERS if not is_surveyed(offer)}
    assert {cloud for cloud, seller in found.items() if seller == "auction"} == {"mithril"}
    assert {"vast", "shadeform"} <= {c for c, seller in found.items() if seller == "marketplace"}
    assert {found[cloud] for cloud in ("aws", "azure", "gcp", "lambda", "runpod")} == {"provider"}


def test_a_source_that_lists_everything_everywhere_confirms_no_region():
    known, listed = own_lists(read_offers()), own_lists(listed_offers())
    assert {o.cloud for o in known if o.listed_regions} == {"runpod", "lambda", "oci"}
    for cloud in ("runpod", "lambda", "oci"):
        mine = [o for o in known if o.cloud == cloud]
        assert all(not o.region for o in mine)
        assert sum(len(o.listed_regions) for o in mine) == sum(o.cloud == cloud for o in listed)
    assert all(o.region for o in known if o.cloud in ("aws", "azure", "gcp", "nebius"))


def test_a_few_machines_or_unequal_prices_are_no_product_of_lists():
    some = [o for o in listed_offers() if o.cloud == "lambda"]
    names = sorted({o.instance for o in some})[:3]
    few = [o for o in some if o.instance in names]
    assert all(o.region for o in with_known_regions(few))
    assert all(o.region for o in with_known_regions([replace(some[0], usd_per_h=9.0), *some[1:]]))


def rules_of(*offers, known=None):
    found = check_offers(offers, TODAY, known_accelerators=known)
    return {(finding.severity, finding.rule) for finding in found}


def reshaped(offer, **changes):
    return replace(offer, shape=replace(offer.shape, **changes))


def test_siblings_of_one_shape_agree():
    sound = one_offer("azure", "Standard_ND96isr_H100_v5", "eastus")
    sister = reshaped(sound, name="Standard_ND96is_H100_v5")
    assert ("error", "siblings-agree") not in rules_of(sound, sister)
    assert ("error", "siblings-agree") in rules_of(sound, reshaped(sister, n_accelerators=12))


def test_memory_and_processors_for_each_accelerator_are_plausible():
    sound = one_offer("aws", "p5.48xlarge", "us-east-1")
    assert ("warning", "host-plausible") not in rules_of(sound)
    assert ("warning", "host-plausible") in rules_of(reshaped(sound, ram_bytes=8 * GIB))
    assert ("warning", "host-plausible") in rules_of(reshaped(sound, n_vcpu=4000))


def test_memory_grows_with_the_count_and_not_with_its_square():
    runpod = {o.instance: o for o in OFFERS if o.cloud == "runpod"}
    one, eight = runpod["1x_H100-SXM_SECURE"], runpod["8x_H100-SXM_SECURE"]
    assert ("error", "memory-proportional") not in rules_of(one, eight)
    square = reshaped(eight, ram_bytes=64 * (one.shape.ram_bytes or 0))
    assert ("error", "memory-proportional") in rules_of(one, square)
    slices = [o for name, o in runpod.items() if name.endswith("PRO-6000-MIG-24GB_SECURE")]
    each = {(o.shape.ram_bytes or 0) / o.n_accelerators / GIB for o in slices}
    assert each == {124.0}  # four slices make a card


def test_a_network_of_half_the_usual_rate_for_each_accelerator_is_told():
    sound = one_offer("azure", "Standard_ND96isr_H100_v5", "eastus")
    others = [one_offer("aws", "p5.48xlarge", "us-east-1"), sound]
    half = reshaped(sound, cloud="oci", network_bytes_per_s=0.5 * sound.shape.network_bytes_per_s)
    assert ("note", "fabric-spread") not in rules_of(*others)
    assert ("note", "fabric-spread") in rules_of(*others, half)


def test_boards_called_retired_have_no_facts_and_each_has_a_source():
    rows = packaged_rows("gpuplan.catalog", "data/retired.csv")
    known = {*read_market_sources(), *read_catalog().sources}
    assert all(row["why"] and row["source"] in known for row in rows)
    assert not {row["accelerator"] for row in rows} & {*map(str, read_catalog().accelerators)}


def test_regions_fabrics_and_boards_that_are_not_known_are_told():
    offer = next(o for o in OFFERS if o.instance == "8x_H100-SXM_SECURE")
    found = rules_of(offer, known=["t4"])
    assert {("note", "region-confirmed"), ("note", "fabric-known")} <= found
    assert ("warning", "offers-without-facts") in found
    assert ("warning", "offers-without-facts") not in rules_of(offer, known=["h100-sxm"])


def test_every_rule_looks_at_rows_and_the_shipped_offers_have_no_error():
    assert all(n > 500 for n in looked_at(OFFERS).values())
    assert not [f for f in check_offers(OFFERS, TODAY) if f.severity == "error"]


def test_a_host_at_no_price_is_not_a_whole_server():
    hosts = [o for o in OFFERS if o.cloud == "gcp" and o.instance.startswith("a4-")]
    assert hosts
    assert {o.shape.basis for o in hosts} == {"accelerator-only"}


def test_the_workstation_board_is_not_the_server_board():
    assert identify("runpod", "RTXPRO6000-WK", "").ids == ("rtx-pro-6000-ws",)
    assert identify("vast", "RTXPRO6000WS", "").ids == ("rtx-pro-6000-ws",)
