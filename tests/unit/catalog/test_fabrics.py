"""Fabrics of rented servers: what sources state, by cloud and instance."""

import csv
from importlib.resources import files

import pytest

from gpuplan.catalog.load import read_market_sources
from gpuplan.catalog.offers import read_offers
from gpuplan.units import GBIT

OFFERS = {(o.cloud, o.instance): o for o in read_offers()}
TABLE = files("gpuplan.catalog").joinpath("data", "offers_fabrics.csv")


@pytest.mark.parametrize(
    ("cloud", "instance", "kind", "gbit"),
    [
        ("aws", "p4d.24xlarge", "efa", 400),
        ("aws", "p5.48xlarge", "efa", 3200),
        ("aws", "g5.48xlarge", "efa", 100),
        ("aws", "g5.xlarge", "tcp", 2.5),
        ("azure", "Standard_ND96amsr_A100_v4", "infiniband", 1600),
        ("azure", "Standard_ND96isr_H100_v5", "infiniband", 3200),
        ("gcp", "a3-megagpu-8g", "tcp", 1600),
        ("gcp", "a3-ultragpu-8g", "roce", 3200),
        ("oci", "BM.GPU.H100.8", "roce", 3200),
        ("oci", "BM.GPU.GB300.4", "roce", 3200),
        ("coreweave", "gb200-4x", "infiniband", 1600),
        ("crusoe", "h200-141gb-sxm-ib.8x", "infiniband", 3200),
        ("voltagepark", "8x H100 ethernet", "tcp", 100),
        ("nebius", "gpu-h200-sxm_8gpu-128vcpu-1600gb", "infiniband", 3200),
    ],
)
def test_published_fabrics_stand_with_the_offer(cloud, instance, kind, gbit):
    shape = OFFERS[cloud, instance].shape
    assert shape.fabric is not None
    assert shape.fabric.kind == kind
    assert shape.network_bytes_per_s == pytest.approx(gbit * GBIT)


@pytest.mark.parametrize("cloud", ["runpod", "vast", "cudo", "shadeform", "lambda"])
def test_separate_servers_have_no_known_fabric(cloud):
    assert all(offer.shape.fabric is None for (name, _), offer in OFFERS.items() if name == cloud)


def test_the_half_of_a_node_has_no_infiniband():
    assert OFFERS["nebius", "gpu-h100-sxm_1gpu-16vcpu-200gb"].shape.fabric is None
    assert OFFERS["azure", "Standard_ND96is_H100_v5"].shape.fabric is None


def test_every_fabric_has_a_source_and_a_kind():
    rows = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
    assert {row["kind"] for row in rows} <= {"efa", "infiniband", "roce", "tcp"}
    assert {row["source"] for row in rows} <= set(read_market_sources())


def test_a_rate_that_no_page_states_is_an_estimate_by_its_source():
    found = {
        o.shape.fabric.source
        for (cloud, _), o in OFFERS.items()
        if cloud == "nebius" and o.shape.fabric
    }
    assert {read_market_sources()[source].kind for source in found} == {"estimate"}
    azure = OFFERS["azure", "Standard_ND96isr_H100_v5"].shape.fabric
    assert read_market_sources()[azure.source].kind == "vendor"
