"""Names that stand for several things, and what is told where nothing fits."""

from dataclasses import replace
from datetime import date

import pytest
from tests.unit.studies.sizing.test_workload import AROUND, chat

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.money.market import InstanceShape, Offer
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.scenario.terms import Choice
from gpuplan.pipeline.plan import plan
from gpuplan.studies.explanation.rejected import nearest_first
from gpuplan.studies.market.places import is_place_allowed
from gpuplan.studies.naming import group_ids
from gpuplan.studies.sizing.workload import size_workload

CATALOG = read_catalog()


@pytest.mark.parametrize(
    ("name", "some", "none"),
    [("TPU", "tpu-v6e", "h100-sxm"), ("amd", "mi300x", "cpu-epyc-9654"),
     ("NVIDIA", "h100-sxm", "mi300x"), ("cpu", "cpu-xeon-8480", "gaudi3"),
     ("Gaudi", "gaudi3", "pvc-1550")],
)  # fmt: skip
def test_a_vendor_or_a_kind_stands_for_all_of_it(name, some, none):
    found = group_ids(name, CATALOG)
    assert some in found
    assert none not in found


@pytest.mark.parametrize("name", ["H100", "h100-sxm", "banana", ""])
def test_other_names_are_no_group(name):
    assert group_ids(name, CATALOG) == frozenset()


def offer(cloud, region):
    shape = InstanceShape(
        cloud=cloud, name="x", accelerators=("h100-sxm",), n_accelerators=1.0, n_vcpu=8.0,
        ram_bytes=None, network_bytes_per_s=None, basis="on-demand", note="",
    )  # fmt: skip
    return Offer(
        shape=shape, region=region, usd_per_h=1.0, spot_usd_per_h=None,
        price_date=date(2026, 8, 1), source="test",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cloud", "region", "is_in"),
    [("aws", "eu-central-1", True), ("aws", "eu-west-2", False), ("aws", "us-east-1", False),
     ("nowhere", "eu-west-1", False)],
)  # fmt: skip
def test_the_union_is_its_members_and_the_unknown_is_left_out(cloud, region, is_in):
    """London is no longer in it; a region of an unknown cloud is in no country."""
    assert is_place_allowed(offer(cloud, region), Choice(allowed=("EU",))) is is_in
    assert is_place_allowed(offer(cloud, region), Choice(allowed=(region,)))
    assert is_place_allowed(offer(cloud, region), Choice(forbidden=("EU",))) is not is_in


def test_near_misses_come_first():
    candidate = Candidate(
        workload="w", accelerator="h100-sxm", layout=ServingLayout(), precision="bf16"
    )
    far, near, untold = (
        Rejection(candidate=candidate, constraint="ttft", reason=text, relaxation="", gap_ratio=gap)
        for text, gap in (("far", 9.0), ("near", 1.1), ("untold", None))
    )
    assert [r.reason for r in nearest_first([far, untold, near])] == ["near", "far", "untold"]


def test_an_impossible_promise_names_the_fleet_that_comes_nearest():
    limits = (LatencyLimit(metric="ttft", statistic="p95", limit_s=0.002),)
    workload, scenario = chat(limits=limits, cards=("H100", "L4", "B200"))
    sizing = size_workload(workload, scenario, AROUND)
    assert not sizing.sized
    late = [r for r in sizing.rejected if r.constraint == "ttft"]
    assert all(r.gap_ratio > 1 for r in late)
    best = nearest_first(late)[0]
    assert best.gap_ratio == min(r.gap_ratio for r in late)
    assert replace(best, gap_ratio=None).candidate.accelerator == "b200-sxm"


def test_people_read_and_type_between_two_requests():
    """N = X (R + Z): forty users who think for 30 s send no more than 40 / 30 a second."""
    words = "Llama-3.1-8B for 40 concurrent users, chat, on L40S"
    asked = PlanRequest(target=words, n_samples=0, today=date(2026, 9, 1))
    people, always = plan(asked), plan(replace(asked, target=words.replace("users", "requests")))
    rates = [found.load[0].peak_requests_per_s for found in (people, always)]
    assert rates[0] <= 40 / 30
    assert rates[1] > rates[0]


def test_a_nightly_run_in_words_is_billed_every_night():
    """The month of a nightly run is that of one, as often as nights are in it."""
    words = "fine-tune Llama-3.1-8B with LoRA on 20M tokens {} on L40S"
    once, nightly = (
        plan(PlanRequest(target=words.format(when), today=date(2026, 11, 16), n_samples=0))
        for when in ("overnight", "every night")
    )
    each = once.plan.bill.total_usd
    assert nightly.plan.cost_usd_per_month.value == pytest.approx(each * 365 / 12, rel=0.01)
