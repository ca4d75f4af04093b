"""What a failure takes away, and what must stand beside the load for it."""

import pytest

from gpuplan.candidates.reserve import reserve_for, reserve_notes
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import AcceleratorShare, Candidate
from gpuplan.domain.scenario.terms import Resilience


def candidate(tp=1, share=None):
    return Candidate(
        workload="w", accelerator=AcceleratorId("h100-sxm"), layout=ServingLayout(tp=tp),
        precision="fp8", share=share,
    )  # fmt: skip


def reserve(survive, n_serving, *, tp=1, n_failures=1, share=None):
    asked = Resilience(survive=survive, n_failures=n_failures)
    return reserve_for(candidate(tp, share), n_serving, asked, n_accelerators_per_node=8)


@pytest.mark.parametrize(
    ("survive", "n_serving", "tp", "n_spare"),
    [
        ("none", 5, 2, 0),
        ("gpu", 5, 2, 1),  # a broken accelerator stops its whole replica
        ("replica", 2, 2, 1),
        ("node", 9, 2, 4),  # four replicas stand on a node of eight
        ("node", 3, 2, 3),  # no more than the load itself need stand on one node
        ("node", 2, 8, 1),
        ("rack", 40, 2, 16),
        ("zone", 7, 2, 7),  # either of two zones carries all
    ],
)
def test_spares(survive, n_serving, tp, n_spare):
    assert reserve(survive, n_serving, tp=tp).n_spare == n_spare


def test_more_failures_take_more():
    assert reserve("replica", 4, n_failures=2).n_spare == 2


def test_a_broken_accelerator_stops_all_its_parts():
    share = AcceleratorShare(
        kind="mig", name="1g.10gb", n_per_accelerator=7, compute_frac=1 / 7, memory_bytes=1e10
    )
    assert reserve("gpu", 20, share=share).n_spare == 7


def test_an_upgrade_without_reserve_is_told():
    assert "75%" in reserve("none", 4).upgrade
    assert "reserve" in reserve("replica", 4).upgrade


@pytest.mark.parametrize(
    ("domain", "said"), [("rack", "4"), ("zone", "2"), ("node", None), ("replica", None)]
)
def test_sizes_of_parts_that_nobody_gave_are_said(domain, said):
    notes = reserve_notes(Resilience(survive=domain, n_failures=1))
    assert [note.value for note in notes] == ([] if said is None else [said])
