"""Reasons for training runs: break-even prices, checkpoints and deadlines by hand."""

import re
from types import SimpleNamespace

import pytest

from fakes.fleets import estimate, job
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.training.time import Goodput
from gpuplan.studies.explanation.runs import run_alternatives, run_reasons
from gpuplan.studies.planning.runs import ComparedRuns, PricedRun, checkpoint_costs
from gpuplan.units import DAY, GB


class Work(Training):
    """A training job of which only what reasons ask for is said."""

    def __init__(self, deadline_s=None, checkpoint=None, mtbf_s=None):
        for name, value in (
            ("deadline_s", deadline_s),
            ("checkpoint", checkpoint),
            ("accelerator_mtbf_s", mtbf_s),
        ):
            object.__setattr__(self, name, value)


def scenario(**work):
    run = Work(**work)
    workload = SimpleNamespace(work=run, deadline_s=run.deadline_s)
    return SimpleNamespace(workload=lambda name: workload if name == "run" else None)


def priced(kind, usd, *, per_h=1.0, once=0.0, **rest):
    return PricedRun(
        job=job(kind, **rest), usd=usd, once_usd=once, option=None, usd_per_accelerator_h=per_h
    )


CHOSEN = priced("a", 192.0, per_h=1.0)  # 8 accelerators for a day
OTHER = priced(
    "b", 292.0, per_h=2.0, once=100.0, n=8, wall_s=DAY / 2
)  # 96 hours at $2, and porting


def test_a_price_at_which_the_other_is_as_cheap():
    found = run_reasons(scenario(), ComparedRuns(CHOSEN, [OTHER]))
    [row] = found.crossovers
    even = float(re.search(r"\$([\d.]+) per accelerator-hour", row.at)[1])
    assert even == pytest.approx(0.96, abs=0.01)
    assert 96 * even + 100 == pytest.approx(192.0, abs=1.0)
    assert "(now $2.00)" in row.at


def test_a_run_that_only_porting_makes_dearer_has_no_such_price():
    dear = priced("b", 492.0, per_h=2.0, once=300.0, wall_s=DAY / 2)
    assert run_reasons(scenario(), ComparedRuns(CHOSEN, [dear])).crossovers == ()


def test_other_runs_are_compared_by_the_month_and_say_their_porting():
    [row] = run_reasons(scenario(), ComparedRuns(CHOSEN, [OTHER])).why_not
    assert row.answer == "$292 for the run, $100 of it porting; 12.0 hours"
    assert row.extra_usd_per_month == pytest.approx(292.0 - 192.0)  # both within their month
    [other] = run_alternatives(ComparedRuns(CHOSEN, [OTHER]))
    assert other.extra_usd_per_month == pytest.approx(100.0)
    assert (other.kind, other.fleet) == ("next cheapest", "8 x b")


def test_a_deadline_binds_by_its_share():
    found = run_reasons(scenario(deadline_s=1.1 * DAY), ComparedRuns(CHOSEN, []))
    assert found.binding == ("run: the deadline is binding: 91% of it is used",)
    assert run_reasons(scenario(deadline_s=2 * DAY), ComparedRuns(CHOSEN, [])).binding == ()
    assert run_reasons(scenario(), ComparedRuns(CHOSEN, [])).binding == ()


def test_the_slow_end_asks_for_more_accelerators():
    slow = priced("a", 192.0, per_h=2.5, n_slow_end=12)
    [line] = run_reasons(scenario(), ComparedRuns(slow, [])).next_spend
    assert line.startswith("4 more accelerators ($240/day) meet the deadline")


def goodput(frac=0.8, write_s=100.0):
    return Goodput(
        goodput_frac=frac,
        why_unknown="",
        interval_s=1000.0,
        write_s=write_s,
        checkpoint_frac=0.1,
        lost_work_frac=0.1,
        restart_frac=0.0,
    )


def test_division_by_the_deadline_ends_late():
    # Useful work of four accelerators for ten days; a fifth of the time is lost.
    run = job("a", n=5, wall_s=10 * DAY, accelerator_s=estimate(40 * DAY), goodput=goodput())
    mine = PricedRun(job=run, usd=1.0, once_usd=0.0, option=None, usd_per_accelerator_h=1.0)
    [row] = run_reasons(scenario(deadline_s=10 * DAY), ComparedRuns(mine, [])).naive
    assert row.fleet == "4 x a"
    assert row.answer.startswith("ends 2.5 days late")


def checkpoints(low, mid, high):
    rate = Range(low=low * GB, mid=mid * GB, high=high * GB)
    return {"checkpoint": SimpleNamespace(write_bytes_per_s=rate), "mtbf_s": 8 * DAY}


def test_checkpoints_cost_less_the_faster_they_are_written():
    run = job("a", n=8, goodput=goodput(write_s=60.0))
    found = checkpoint_costs(scenario(**checkpoints(1.0, 2.0, 8.0)), run)
    assert [row.bytes_per_s / GB for row in found] == [1.0, 2.0, 8.0]
    lost = [row.lost_frac for row in found]
    assert lost == sorted(lost, reverse=True)
    # Young and Daly: about the root of twice the write time times the time between failures.
    for row, write_s in zip(found, (120.0, 60.0, 15.0), strict=True):
        assert row.interval_s == pytest.approx((2 * write_s * DAY) ** 0.5, rel=0.15)


def test_faster_storage_is_worth_the_time_that_it_saves():
    run = job("a", n=8, goodput=goodput(write_s=60.0))
    mine = PricedRun(job=run, usd=10_000.0, once_usd=0.0, option=None, usd_per_accelerator_h=1.0)
    where = scenario(**checkpoints(1.0, 2.0, 8.0))
    _, now, best = checkpoint_costs(where, run)
    saved = 1 - (1 - now.lost_frac) / (1 - best.lost_frac)
    [line] = run_reasons(where, ComparedRuns(mine, [])).next_spend
    assert f"shortens the run by {saved:.1%}" in line
    assert f"worth at most ${10_000 * saved:,.0f} of this run" in line
    [lines] = [line for line in run_reasons(where, ComparedRuns(mine, [])).why if "GB/s" in line]
    assert lines.count("of time") == 3


def test_a_rate_that_is_known_exactly_has_nothing_to_compare():
    exact = {
        "checkpoint": SimpleNamespace(write_bytes_per_s=exactly(2 * GB)),
        "mtbf_s": 8 * DAY,
    }
    assert checkpoint_costs(scenario(**exact), job("a", goodput=goodput())) == []
    assert checkpoint_costs(scenario(), job("a", goodput=goodput())) == []
