"""The tables' own format: lines to facts, and what is wrong in a line is told by its number."""

import pytest

from gpuplan.catalog.load import FACT_COLUMNS, parse_facts, parse_mig, parse_sources, read_catalog
from gpuplan.catalog.nodes import node_sizes
from gpuplan.catalog.schema import QUANTITIES, UNITS, in_base_units, overlay_key
from gpuplan.errors import CatalogError
from gpuplan.units import GB, GIB, MIB

HEADER = ",".join(FACT_COLUMNS)


def test_a_line_is_a_fact():
    text = (
        f'{HEADER}\nx1,power_limit,700,W,sheet,yes,\nx1,power_limit,650,W,blog,no,"older, rounded"'
    )
    first, second = parse_facts(text, table="facts.csv")
    assert (first.item, first.quantity, first.value, first.unit) == (
        "x1",
        "power_limit",
        "700",
        "W",
    )
    assert (first.preferred, second.preferred) == (True, False)
    assert second.note == "older, rounded"


def test_a_short_line_is_told_by_its_number():
    text = f"{HEADER}\nx1,power_limit,700,W,sheet,yes,\nx1,power_limit,650"
    with pytest.raises(CatalogError, match=r"facts\.csv:3") as caught:
        list(parse_facts(text, table="facts.csv"))
    assert "3 columns" in str(caught.value)


@pytest.mark.parametrize("header", ["", "item,quantity", HEADER.replace("unit", "units")])
def test_other_columns_are_refused(header: str):
    with pytest.raises(CatalogError, match=r"facts\.csv:1"):
        list(parse_facts(f"{header}\n", table="facts.csv"))


def test_a_way_to_cut_an_accelerator_is_read_in_gib():
    text = (
        "accelerator,profile,n_max,n_compute_slices,n_compute_slices_total,memory_gib\n"
        "h100-sxm,3g.40gb,2,3,7,40\n"
    )
    (profile,) = parse_mig(text)
    assert (profile.name, profile.n_max, profile.n_compute_slices) == ("3g.40gb", 2, 3)
    assert profile.memory_bytes == 40 * GIB


def test_a_source_carries_its_key():
    text = (
        '[sheet]\ntitle = "Data sheet"\npublisher = "X"\nurl = "u"\n'
        'retrieved = "2026-01-01"\nlicence = "facts"\nkind = "vendor"\n'
    )
    source = parse_sources(text)["sheet"]
    assert (source.key, source.title, source.retrieved) == ("sheet", "Data sheet", "2026-01-01")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [("80", "GiB", 80 * GIB), ("81559", "MiB", 81559 * MIB), ("3350", "GB/s", 3350 * GB)],
)
def test_units_are_converted_once(value: str, unit: str, expected: float):
    assert in_base_units(value, unit) == pytest.approx(expected)


def test_every_quantity_has_a_unit_that_can_be_converted_and_a_band():
    for kind, quantities in QUANTITIES.items():
        for name, quantity in quantities.items():
            assert quantity.unit in UNITS, (kind, name)
            assert quantity.is_text or quantity.low < quantity.high, (kind, name)


def test_a_key_of_an_overlay_names_its_unit():
    accelerators = QUANTITIES["accelerator"]
    assert overlay_key("accelerator", accelerators["memory_visible"]) == "memory_visible_gib"
    assert overlay_key("accelerator", accelerators["power_limit"]) == "tdp_w"


def test_nodes_carry_what_servers_of_the_catalog_do():
    sizes = node_sizes(read_catalog())
    assert sizes["h100-sxm"] == 8
    assert sizes["tpu-v5p"] == 4  # of one host of a slice
    assert all(1 <= n <= 72 for n in sizes.values())
    assert sizes.keys() == {str(item) for item in read_catalog().accelerators}
