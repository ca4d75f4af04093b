"""Where published figures disagree: ours is right, and the wrong one stands with its reason."""

import csv
from datetime import date

import pytest

from fakes.planting import planted
from gpuplan.catalog.integrity.run import check_catalog
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.catalog import Fact
from shared_data import shared_file

TODAY = date(2026, 11, 18)
TOLERANCE = 0.006  # data sheets round 989.4 to 989 and 989.5

# Item, quantity, the right figure, the figure that another source gives.
CASES = [
    tuple(line.split())
    for line in """
v100-sxm2-16gb memory_bandwidth 900 1130
v100-sxm2-16gb power_limit 300 250
v100-sxm2-16gb peak_fp16 125 32.7
v100-sxm2-32gb power_limit 300 250
v100-sxm2-32gb peak_fp16 125 31.3
v100-pcie-32gb peak_fp16 112 28.3
a10 peak_fp16 125 31.2
a10g power_limit 300 150
a10g peak_fp16 70 31.5
a30 peak_fp16 165 10.3
a40 peak_fp16 149.7 37.4
a100-sxm-40gb peak_fp16 312 78
a100-sxm-80gb peak_fp16 312 78
a100-pcie-40gb peak_fp16 312 78
a100-pcie-80gb peak_fp16 312 78
l4 peak_fp16 121 30.3
l40 peak_fp16 181 90.5
l40s power_limit 350 300
l40s peak_fp16 362 91.6
rtx-3090 peak_fp16 71 35.6
rtx-4090 peak_fp16 165.2 82.6
rtx-5090 peak_fp16 209.5 104.8
rtx-6000-ada peak_fp16 364.2 91.1
rtx-pro-6000-bw peak_fp16 467.8 126
h100-pcie peak_fp16 756 204.9
h100-sxm peak_fp16 989.4 267.6
h100-nvl peak_fp16 835.5 241.3
h800-sxm peak_fp16 989.4 237.2
h200-sxm peak_fp16 989.4 267.6
h200-nvl peak_fp16 835.5 241.3
b200-sxm memory_marketed 180 90
b200-sxm memory_bandwidth 7700 4100
b200-sxm peak_fp16 2250 1191.2
b300-sxm memory_marketed 288 144
b300-sxm memory_bandwidth 7750 4100
b300-sxm power_limit 1100 1400
b300-sxm peak_fp16 2250 1231.8
mi300x memory_bandwidth 5300 10300
mi300x peak_fp16 1307.4 653.7
mi325x memory_marketed 256 288
mi325x memory_bandwidth 6000 10300
mi325x peak_fp16 1307.4 653.7
mi350x peak_fp16 2306.9 576.7
mi355x peak_fp16 2516.6 629.1
pvc-1550 peak_fp16 340.8 52.4
b200-sxm memory_marketed 180 80
gh200-96gb memory_marketed 96 80
h200-sxm memory_marketed 141 80
h100-nvl memory_marketed 94 80
l40s peak_fp8 733 1466
gh200-96gb peak_bf16 989.4 1979
gb200 peak_bf16 2500 4500
gaudi3 peak_bf16 1677 1835
a10g peak_bf16 70 125
rtx-4090 peak_bf16 165.2 82.6
rtx-3090 peak_bf16 71 35.6
b300-sxm peak_int8 153.5 4500
h100-sxm peak_fp8 1979 3958
b200-sxm peak_fp8 4500 9000
h200-sxm peak_fp8 1979 3940
h100-sxm peak_fp16 989.4 267.6
""".strip().splitlines()
]
FIELDS = {
    "mem_bw_gbs": "memory_bandwidth",
    "tdp_w": "power_limit",
    "fp16_dense_matrix": "peak_fp16",
    "mem_gb": "memory_marketed",
}
# What no rule can know: a plausible figure of a sister product or an overclocked part.
PLAUSIBLE = {
    ("v100-sxm2-16gb", "memory_bandwidth"),
    ("v100-pcie-32gb", "peak_fp16"),
    ("a10g", "power_limit"),
    ("l40s", "power_limit"),
    ("b200-sxm", "memory_bandwidth"),
    ("b300-sxm", "memory_bandwidth"),
    ("b300-sxm", "power_limit"),
    ("gaudi3", "peak_bf16"),
}
WRONG_LINE_RULES = {"doubled-fact", "reason-missing", "not-one-preferred"}


def lines(item: str, quantity: str) -> list[Fact]:
    return [fact for fact in read_catalog().facts_of(item) if fact.quantity == quantity]


@pytest.mark.parametrize(("item", "quantity", "right", "wrong"), CASES)
def test_our_value_is_the_right_one(item: str, quantity: str, right: str, wrong: str) -> None:
    (best,) = [fact for fact in lines(item, quantity) if fact.preferred]
    assert float(best.value) == pytest.approx(float(right), rel=TOLERANCE)
    assert float(best.value) != pytest.approx(float(wrong), rel=0.05)


@pytest.mark.parametrize(("item", "quantity", "right", "wrong"), CASES)
def test_the_other_value_stands_with_its_reason(
    item: str, quantity: str, right: str, wrong: str
) -> None:
    other = [
        fact
        for fact in lines(item, quantity)
        if not fact.preferred and float(fact.value) == pytest.approx(float(wrong), rel=1e-3)
    ]
    assert other, f"{wrong} is not recorded"
    assert all(fact.note for fact in other)


@pytest.mark.parametrize(("item", "quantity", "right", "wrong"), CASES)
def test_a_rule_catches_the_wrong_value(item: str, quantity: str, right: str, wrong: str) -> None:
    catalog = planted(read_catalog(), item, quantity, value=wrong)
    caught = {finding.rule for finding in check_catalog(catalog, today=TODAY)} - WRONG_LINE_RULES
    assert bool(caught) == ((item, quantity) not in PLAUSIBLE)


@pytest.mark.shared
def test_the_cases_are_all_that_were_found() -> None:
    with shared_file("catalog/source_disagreements.csv").open() as file:
        found = {
            (
                row["accelerator_id"],
                FIELDS.get(row["field"], f"peak_{row['field']}"),
                float(row["other_value"]),
            )
            for row in csv.DictReader(file)
        }
    assert found == {(item, quantity, float(wrong)) for item, quantity, _, wrong in CASES}
