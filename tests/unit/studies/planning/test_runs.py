"""Training runs as fleets: needed until they end, priced in whole nodes, compared by price."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fakes.fleets import demand, estimate, job, rate
from fakes.selection import horizon
from gpuplan.domain.columns import ints
from gpuplan.domain.plan.selection import FleetOption, NodePool, NodeTerms, SelectionProblem
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.selection.choose import select
from gpuplan.studies.market.offers import Market
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import FleetTable
from gpuplan.studies.planning.runs import (
    as_fleets,
    compared_runs,
    job_behind,
    job_line,
    market_for_jobs,
)
from gpuplan.units import DAY

ONCE = SimpleNamespace(workload=lambda name: SimpleNamespace(interval_s=None))
WEEKLY = SimpleNamespace(workload=lambda name: SimpleNamespace(interval_s=7 * DAY))
SLOW, FAST = job("a", n=8, wall_s=3 * DAY), job("b", n=16, wall_s=DAY)


def runs(*jobs):
    return Sizing(workload="run", demand=demand(1.0), jobs=jobs)


def test_a_run_is_needed_until_it_ends():
    [found] = as_fleets(ONCE, [runs(SLOW, FAST)])
    slow, fast = found.sized
    assert list(slow.need.n_replicas[0, 0]) == [8, 8]
    assert list(fast.need.n_replicas[0, 0]) == [16, 0]
    hours = found.demand.hours
    assert hours.hours_per_week == pytest.approx([168 / 3, 168 * 2 / 3])
    assert found.demand.periods.length_s[0] == 3 * DAY
    # Accelerator-hours come out as they went in.
    share = hours.hours_per_week / 168 * 3 * DAY
    for each, given in ((slow, SLOW), (fast, FAST)):
        used = float((each.need.n_replicas[0, 0] * share).sum())
        assert used == pytest.approx(given.accelerator_s.value)


def test_runs_of_a_schedule_fill_their_part_of_every_week():
    [found] = as_fleets(WEEKLY, [runs(SLOW, FAST)])
    slow, fast = found.sized
    hours = found.demand.hours.hours_per_week
    assert hours == pytest.approx([24, 48, 96])  # one day, two more, and nothing
    for each, given in ((slow, SLOW), (fast, FAST)):
        for need in each.need.n_replicas.reshape(-1, 3):  # in every period and growth
            assert float((need * hours).sum()) * 3600 == pytest.approx(given.accelerator_s.value)
    periods = demand(1.0).periods
    assert found.demand.periods.length_s.sum() == periods.length_s.sum()
    assert (found.demand.periods.load_ratio == 1.0).all()


def test_power_is_shared_out_over_the_accelerators():
    [found] = as_fleets(ONCE, [runs(job("a", n=8, power_w=estimate(8000.0, 6000.0, 9600.0)))])
    each = found.sized[0].power_w
    assert (each.value, each.low, each.high) == (1000.0, 750.0, 1200.0)
    assert as_fleets(ONCE, [runs()]) == [runs()]


def test_the_line_says_days_or_hours():
    assert "8 of them take 3.0 days" in job_line(SLOW)
    assert "take 24.0 hours" in job_line(FAST)
    assert "576 accelerator-hours of a" in job_line(SLOW)


def table(*, once=0.0):
    [sizing] = as_fleets(ONCE, [runs(SLOW, FAST)])
    pools = tuple(
        NodePool(name=f"{kind} x8", accelerator=kind, n_accelerators_per_node=8, max_w=w)
        for kind, w in (("a", 10e3), ("b", 0.0))
    )
    terms = tuple(
        NodeTerms(name=f"{kind} {usd}", pool=f"{kind} x8", purchase="on_demand", usd_per_node_h=usd)
        for kind, usd in (("a", 10.0), ("a", 12.0), ("b", 20.0))
    )
    options = tuple(
        FleetOption(
            workload="run",
            name=f"{given.candidate.name} on {given.candidate.accelerator} x8",
            pool=f"{given.candidate.accelerator} x8",
            need=ints(sized.need.n_replicas),
            once_usd=once if given is FAST else 0.0,
        )
        for given, sized in zip((SLOW, FAST), sizing.sized, strict=True)
    )
    problem = SelectionProblem(
        horizon=horizon(hours=(24.0, 48.0)), pools=pools, terms=terms, options=options
    )
    choice = Choice(
        table=FleetTable(problem=problem, by_name={}, rates={}),
        selection=select(problem),
        is_jobs=True,
    )
    return choice, [sizing]


def test_runs_are_compared_at_their_least_price():
    choice, sizings = table()
    [found] = compared_runs(choice, sizings)
    # One node of $10 for three days against two of $20 for one day.
    assert (found.chosen.job, found.chosen.usd) == (SLOW, pytest.approx(720.0))
    [other] = found.others
    assert (other.job, other.usd) == (FAST, pytest.approx(960.0))
    assert other.usd_per_accelerator_h == pytest.approx(2.5)
    assert found.chosen.usd == pytest.approx(choice.usd)
    # Of the nodes, as of every other plan; nothing is published of the other's.
    assert (found.chosen.power_w, other.power_w) == (10e3, None)
    assert choice.span_s == 3 * DAY
    assert found.usd_per_month(found.chosen) == pytest.approx(720.0)  # all in one month


def test_porting_is_in_the_price_and_counted_apart():
    choice, sizings = table(once=100.0)
    [found] = compared_runs(choice, sizings)
    assert (found.others[0].usd, found.others[0].once_usd) == (pytest.approx(1060.0), 100.0)


def test_an_option_leads_back_to_its_run():
    choice, sizings = table()
    found = [job_behind(sizings, option) for option in choice.table.problem.options]
    assert found == [SLOW, FAST]
    other = replace(choice.table.problem.options[0], workload="another")
    assert job_behind(sizings, other) is None


def test_own_nodes_are_had_by_the_hour():
    standing = SimpleNamespace(rate=rate("h100-sxm", 1.0, purchase="owned", n=8), n_nodes=2)
    market = Market(
        rates=(rate("h100-sxm", 2.0),),
        shown=(),
        refused=(),
        assumptions=(),
        porting_usd={},
        standing=(standing,),
    )
    found = market_for_jobs(market)
    assert found.standing == ()
    assert [each.purchase for each in found.rates] == ["on_demand"] * 2
    assert [each.price_usd_per_h.mid for each in found.rates] == [1.0, 2.0]
