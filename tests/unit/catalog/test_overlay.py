"""A user's own facts: laid on top, visible, and held to the same rules."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.overlay import apply_overlay, overlay_keys
from gpuplan.catalog.schema import QUANTITIES, SECTIONS
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.errors import InputError
from gpuplan.units import GIB
from shared_data import ROOT

CATALOG = read_catalog()


def laid(**sections: object) -> Catalog:
    return apply_overlay(CATALOG, sections, overlay="lab.yaml")


def refused(document: object) -> str:
    with pytest.raises(InputError) as caught:
        apply_overlay(CATALOG, document, overlay="lab.yaml")
    return str(caught.value)


def test_a_fact_is_replaced_and_the_replacement_is_told() -> None:
    catalog = laid(accelerators={"h100-sxm": {"tdp_w": 650, "source": "our lab, 2026-10"}})
    assert catalog.accelerators["h100-sxm"].power.limit_w == 650
    (override,) = catalog.overrides
    assert (override.item, override.quantity) == ("h100-sxm", "power_limit")
    assert (override.catalog_value, override.overlay_value) == ("700 W", "650 W")
    assert override.overlay == "lab.yaml"
    fact = catalog.fact("h100-sxm", "power_limit")
    assert fact is not None
    assert catalog.sources[fact.source].title == "our lab, 2026-10"
    assert catalog.sources[fact.source].kind == "user"


def test_the_replaced_line_still_stands() -> None:
    catalog = laid(accelerators={"h100-sxm": {"tdp_w": 650}})
    values = [f.value for f in catalog.facts_of("h100-sxm") if f.quantity == "power_limit"]
    assert values == ["700", "650"]


def test_the_shipped_catalog_is_untouched() -> None:
    before = CATALOG.accelerators["h100-sxm"]
    laid(accelerators={"h100-sxm": {"tdp_w": 650}})
    assert read_catalog().accelerators["h100-sxm"] is before
    assert read_catalog().overrides == ()


def test_a_new_item_is_modelled_on_another() -> None:
    catalog = laid(accelerators={"my-gpu": {"like": "h100-sxm", "memory_gib": 120}})
    mine, h100 = catalog.accelerators["my-gpu"], catalog.accelerators["h100-sxm"]
    assert mine.peak_flop_per_s == h100.peak_flop_per_s
    assert mine.memory.marketed_bytes == 120 * GIB
    assert mine.memory.visible_bytes == pytest.approx(h100.memory.visible_bytes * 1.5, rel=1e-4)
    assert {o.quantity for o in catalog.overrides} == {
        "like", "name", "memory_marketed", "memory_driver", "memory_visible",
    }  # fmt: skip
    assert find_accelerator("4x my gpu", catalog).accelerator is mine


def test_documented_ratio_exceptions_follow_the_model() -> None:
    catalog = laid(accelerators={"my-b300": {"like": "b300-sxm", "tdp_w": 1000}})
    again = apply_overlay(
        catalog, {"accelerators": {"mine-too": {"like": "my-b300"}}}, overlay="b.yaml"
    )
    assert "mine-too" in again.accelerators


def test_a_new_item_can_be_given_in_full() -> None:
    values = {
        "name": "X1", "vendor": "X", "family": "X", "form_factor": "PCIe", "memory_kind": "HBM3",
        "instruction_set": "x1", "launched": "2026-01", "bf16_tflops": 500, "memory_gib": 96,
        "memory_driver_mib": 98000, "memory_visible_gib": 94, "memory_gb_per_s": 3000,
    }  # fmt: skip
    assert laid(accelerators={"x1": values}).accelerators["x1"].power.limit_w is None


def test_other_kinds_can_be_overridden() -> None:
    catalog = laid(
        servers={"dgx-h100": {"power_limit_w": 9000}},
        switches={"qm9700": {"power_limit_w": 1500}},
        storage={"cloud-block": {"price_usd_per_gb_month": 0.05}},
    )
    assert catalog.servers["dgx-h100"].power.limit_w == 9000
    assert catalog.network.switches["qm9700"].limit_w == 1500
    assert catalog.storage["cloud-block"].usd_per_gb_month == 0.05
    assert len(catalog.overrides) == 3


def test_overlays_stack_and_the_last_wins() -> None:
    first = laid(accelerators={"l4": {"tdp_w": 70}})
    second = apply_overlay(first, {"accelerators": {"l4": {"tdp_w": 60}}}, overlay="b.yaml")
    assert second.accelerators["l4"].power.limit_w == 60
    assert [o.overlay for o in second.overrides] == ["lab.yaml", "b.yaml"]


def test_the_hash_tells_overlays_apart() -> None:
    hashes = {
        CATALOG.content_hash,
        laid(accelerators={"l4": {"tdp_w": 70}}).content_hash,
        laid(accelerators={"l4": {"tdp_w": 71}}).content_hash,
    }
    assert len(hashes) == 3


def test_an_empty_overlay_changes_nothing() -> None:
    for document in ({}, None, {"accelerators": None}):
        catalog = apply_overlay(CATALOG, document, overlay="lab.yaml")
        assert catalog.accelerators == CATALOG.accelerators
        assert catalog.overrides == ()


def test_all_problems_are_told_at_once_with_their_place() -> None:
    document = {"accelerators": {"h100-sxm": {"tdp": 650, "idle_w": -3, "bf16_tflops": "fast"}}}
    with pytest.raises(InputError) as caught:
        apply_overlay(
            CATALOG, document, overlay="lab.yaml", where=lambda path: f"lab.yaml:{len(path)}"
        )
    assert len(caught.value.problems) == 3
    assert {problem.where for problem in caught.value.problems} == {"lab.yaml:3"}
    assert "did you mean tdp_w" in str(caught.value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([1, 2], "document: got [1, 2]"),
        ("text", "document: got 'text'"),
        ({"accelerator": {}}, "did you mean accelerators"),
        ({"accelerators": {"h100-smx": {"tdp_w": 650}}}, "did you mean h100-sxm"),
        ({"accelerators": {"mine": {"like": "h100-smx"}}}, "did you mean h100-sxm"),
        ({"accelerators": {"h100-sxm": {"like": "l4"}}}, "already"),
        ({"accelerators": {"dgx-h100": {"tdp_w": 650}}}, "is a server"),
        ({"accelerators": {"h100-sxm": {"tdp_w": True}}}, "write a number in W"),
        ({"accelerators": {"h100-sxm": {"tdp_w": float("nan")}}}, "write a number in W"),
        ({"accelerators": {"h100-sxm": {"tdp_w": 10**400}}}, "write a number in W"),
        ({"accelerators": {"h100-sxm": {"scale_up_domain": 8.5}}}, "whole number"),
        ({"accelerators": {"h100-sxm": {"name": ""}}}, "short text"),
        ({"accelerators": {"h100-sxm": {"source": 7}}}, "write a text"),
        ({"accelerators": {"h100-sxm": {"bf16_tflops": 1979}}}, "expected"),
        ({"accelerators": {"h100-sxm": {"scale_up_gb_per_s": 900}}}, "one direction"),
        ({"accelerators": {"h100-sxm": {"memory_visible_gib": 90}}}, "visible < driver"),
        ({"accelerators": {"mine": {"like": "l4", "name": "H100 SXM"}}}, "reads like"),
        ({"servers": {"dgx-h100": {"accelerator": "h101"}}}, "accelerator of the catalog"),
        ({"servers": {"dgx-a100": {"power_limit_w": 2000}}}, "provision at least"),
    ],
)
def test_a_wrong_overlay_is_refused_with_help(document: object, said: str) -> None:
    assert said in refused(document)


def test_every_quantity_has_one_key() -> None:
    for kind in SECTIONS.values():
        assert len(overlay_keys(kind)) == len(QUANTITIES[kind])
        assert not {"like", "source"} & set(overlay_keys(kind))


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "catalog.md").read_text()
    for kind in SECTIONS.values():
        for key, quantity in overlay_keys(kind).items():
            assert (
                f"| `{key}`{' (required)' if quantity.required else ''} | {quantity.unit} |" in page
            )
