"""Fractions of an accelerator are chosen where they save money, never where they only slow down."""

from dataclasses import replace

from fakes.fleets import candidate, sized
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.columns import ints
from gpuplan.domain.plan.candidate import AcceleratorShare
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.plan.sizing import LimitMargin
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.planning.rows import FleetRow, geometries_of, with_fractions

HALF = AcceleratorShare(
    kind="time_slice", name="1/2", n_per_accelerator=2, compute_frac=0.5, memory_bytes=24e9
)


def row(workload="w", *, n=1, share=None, pool="l40s x1", n_reserve=0) -> FleetRow:
    """So many replicas, in whole accelerators where they are counted."""
    made = replace(candidate("l40s"), workload=workload, share=share)
    option = FleetOption(
        workload=workload,
        name=f"{made.name} on {pool}",
        pool=pool,
        need=ints([[[made.n_accelerators_for(n)]]]),
        n_reserve=n_reserve,
    )
    return FleetRow(option=option, sized=sized(n, candidate=made), n_per_node=1, place=ints([0]))


def test_a_whole_accelerator_wins_at_equal_price():
    whole, half = row(n=1), row(n=2, share=HALF)
    assert with_fractions([half, whole], is_sharing=False) == [whole]


def test_a_fraction_stays_where_it_takes_fewer_accelerators():
    whole, half = row(n=3), row(n=4, share=HALF)
    assert with_fractions([half, whole], is_sharing=False) == [half, whole]
    spare = row(n=1, n_reserve=1)
    assert with_fractions([row(n=2, share=HALF), spare], is_sharing=False)[0].sized.n_serving == 2


def test_a_fraction_is_not_beaten_by_a_lower_precision():
    whole, half = row(n=1), row(n=2, share=HALF)
    narrow = replace(whole.sized.candidate, precision="int4")
    other = whole._replace(sized=replace(whole.sized, candidate=narrow))
    assert with_fractions([half, other], is_sharing=False) == [half, other]


def test_a_fraction_stays_where_no_whole_one_is_on_its_nodes():
    half, elsewhere = row(n=1, share=HALF), row(n=1, pool="l40s x8")
    assert with_fractions([half, elsewhere], is_sharing=False) == [half, elsewhere]


def test_several_services_share_one_accelerator_by_slices():
    rows = [row("a", n=1), row("a", n=1, share=HALF), row("b", n=3, share=HALF)]
    whole, first, second = with_fractions(rows, is_sharing=True)
    assert whole.option.slice_kind == ""
    assert (first.option.slice_kind, first.option.need.item()) == ("1/2", 1)
    assert (second.option.slice_kind, second.option.need.item()) == ("1/2", 3)
    [geometry] = geometries_of([whole, first, second], read_catalog())
    assert geometry.pool == "l40s x1"


def test_a_service_with_nobody_to_share_with_pays_for_the_whole():
    """Others have no fraction on that pool: the fraction is counted in whole accelerators."""
    rows = [row("a", n=1), row("a", n=1, share=HALF), row("b", n=2)]
    assert [r.sized.candidate.share for r in with_fractions(rows, is_sharing=True)] == [None, None]


def test_of_equal_cost_the_surest_stays():
    """Two layouts on the same nodes: who has more room under its targets is surer."""
    first = row(n=2)
    margins = [
        replace(first.sized, limits=(margin(used),), candidate=laid_out(first, tp))
        for used, tp in ((0.9, 1), (0.4, 2), (0.6, 4))
    ]
    rows = [first._replace(sized=each) for each in margins]
    [kept] = with_fractions(rows, is_sharing=False)
    assert kept.sized.candidate.layout.tp == 2
    dearer = first._replace(option=replace(first.option, need=ints([[[3]]])))
    assert len(with_fractions([*rows, dearer], is_sharing=False)) == 2


def laid_out(of: FleetRow, tp: int):
    candidate = of.sized.candidate
    return replace(candidate, layout=replace(candidate.layout, tp=tp))


def margin(used: float) -> LimitMargin:
    reached = Estimate(value=used, low=used, high=used, tier="estimated")
    return LimitMargin(metric="ttft", statistic="p95", limit_s=1.0, reached_s=reached, bound_s=used)


def test_slices_that_are_needed_later_have_a_need_in_every_period():
    later = row("b", n=3, share=HALF)
    grown = later._replace(option=replace(later.option, need=ints([[[0], [2]]])))
    _, found = with_fractions([row("a", n=1, share=HALF), grown], is_sharing=True)
    assert found.option.need.tolist() == [[[0], [3]]]
