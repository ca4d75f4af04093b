"""Runs of a few requests, written down by hand: who is counted, what holds, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.outcome import (
    EngineTotals,
    Outcome,
    RequestTimes,
    SloTargets,
    UseOverTime,
)
from gpuplan.domain.simulation.simulation import FleetTried, SimulateRequest
from gpuplan.domain.traffic.drawn import DrawnLoad
from gpuplan.domain.traffic.stream import Grouping, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.statistics import statistics_of
from gpuplan.studies.replay.judge import check_request, judged
from gpuplan.studies.replay.power import MOST_CLASSES, by_priority, by_service
from gpuplan.studies.replay.routed import unknowing
from gpuplan.studies.replay.sessions import ANSWER_S_PER_TOKEN, talking_load
from gpuplan.studies.replay.sizes import criterion, holds, smallest, tried_point

SLO = SloTargets(ttft_s=1.0)
TTFT_S = (0.5, 2.0, 0.5, 2.0, 0.5, 0.5, 0.5, 2.0)


def outcome(priority: tuple[int, ...] = (0, 1) * 4, unfinished: tuple[int, ...] = ()) -> Outcome:
    """Eight requests, one a second; those of odd place wait two seconds, but for the sixth."""
    n = len(TTFT_S)
    is_finished = np.ones(n, dtype=int)
    is_finished[list(unfinished)] = 0
    shares = floats(np.full(10, 0.5))
    return Outcome(
        requests=requests_of(
            np.arange(n), np.full(n, 100), np.full(n, 11), grouping=Grouping(priority=priority)
        ),
        times=RequestTimes(
            wait_s=floats(np.zeros(n)),
            ttft_s=floats(TTFT_S),
            tpot_s=floats(np.full(n, 0.05)),
            e2e_s=floats(np.array(TTFT_S) + 0.5),
            n_preemptions=ints(np.zeros(n)),
            is_finished=ints(is_finished),
        ),
        use=UseOverTime(
            bin_s=1.0,
            busy_frac=shares,
            cache_frac=shares,
            compute_frac=shares,
            bandwidth_frac=shares,
        ),
        totals=EngineTotals(
            n_steps=88,
            n_computed_tokens=888,
            n_preemptions=0,
            n_free_blocks=10,
            busy_s=5.0,
            span_s=10.0,
        ),
        n_engines=1,
    )


def found(run: Outcome, warmup_s: float = 0.0):
    return statistics_of(run, warmup_s=warmup_s, slo=SLO)


def test_each_urgency_has_a_class_of_its_own():
    run = outcome()
    first, second = by_priority(run, found(run), SLO)
    assert (first.name, first.n_requests, first.n_completed) == ("priority 0", 4, 4)
    assert first.recall_frac == 1.0  # 0.5 s each
    assert second.recall_frac == 0.25  # three of four waited two seconds
    assert first.ttft is not None
    assert first.ttft.mean_s == pytest.approx(0.5)
    assert second.ttft is not None
    assert second.ttft.mean_s == pytest.approx((2 + 2 + 0.5 + 2) / 4)


def test_a_request_that_was_never_served_counts_against_its_class():
    run = outcome(unfinished=(0, 2))
    first, _ = by_priority(run, found(run), SLO)
    assert (first.n_requests, first.n_completed, first.recall_frac) == (4, 2, 0.5)


def test_what_warms_up_is_in_no_class():
    run = outcome()
    first, second = by_priority(run, found(run, warmup_s=4.0), SLO)
    assert (first.n_requests, second.n_requests) == (2, 2)
    assert second.recall_frac == 0.5


def test_one_class_is_none():
    run = outcome(priority=(0,) * 8)
    assert by_priority(run, found(run), SLO) == ()
    assert by_service(run, found(run), SLO, service=ints(np.zeros(8)), names=["chat"]) == ()


def test_services_are_named_as_they_were_given():
    run, service = outcome(), ints([0, 1] * 4)
    names = [c.name for c in by_service(run, found(run), SLO, service=service, names=["a", "b"])]
    assert names == ["a", "b"]


def test_numbers_that_nearly_all_differ_are_no_classes():
    run = outcome()
    many = requests_of(
        np.arange(30), np.full(30, 9), np.full(30, 9), grouping=Grouping(priority=np.arange(30))
    )
    assert len(many) > MOST_CLASSES
    assert by_priority(replace(run, requests=many), found(run), SLO) == ()


def test_a_run_is_judged_after_its_warm_up():
    whole = judged(outcome(), SimulateRequest(slo=SLO, warmup_s=0.0))
    late = judged(outcome(), SimulateRequest(slo=SLO, warmup_s=4.0))
    assert whole.recall_frac == pytest.approx(5 / 8)
    assert late.recall_frac == pytest.approx(3 / 4)


def test_a_warm_up_as_long_as_the_run_is_refused():
    with pytest.raises(InputError, match="leave no request to measure"):
        judged(outcome(), SimulateRequest(slo=SLO, warmup_s=100.0))


def test_a_size_is_told_with_what_it_paid_and_used():
    point = tried_point(outcome(), 3, SLO, paid_s=80.0)
    assert point.n_replicas == 3
    assert point.n_late == 3
    assert point.useful_accelerator_s == pytest.approx(80.0 * point.precision_frac)


def tried(n: int, *, least: int, recall: float = 1.0) -> FleetTried:
    return FleetTried(
        n_replicas=n,
        precision_frac=0.5,
        recall_frac=recall,
        busy_frac=0.5,
        ttft_p99_s=0.1,
        is_overloaded=n < least,
        paid_accelerator_s=10.0 * n,
        useful_accelerator_s=5.0 * n,
        n_late=0,
    )


@pytest.mark.parametrize("least", [1, 2, 3, 5, 7, 8, 9, 100, 3500, 4096])
@pytest.mark.parametrize("n_given", [0, 1, 4, 6, 9000])
def test_the_smallest_fleet_is_found_from_wherever_one_begins(least: int, n_given: int):
    asked: list[int] = []

    def run(n: int) -> FleetTried:
        asked.append(n)
        return tried(n, least=least)

    assert smallest(run, SloTargets(), n_given=n_given).n_replicas == least
    assert len(asked) == len(set(asked)) <= 26


def test_where_the_most_that_is_tried_does_not_hold_none_is_named():
    found = smallest(lambda n: tried(n, least=5000), SloTargets(), n_given=6)
    assert found.n_replicas is None
    assert found.tried[-1].n_replicas == 4096


def test_a_fleet_holds_where_its_queue_does_not_grow_and_enough_are_kept():
    slo = SloTargets(ttft_s=1.0, kept_frac=0.95)
    assert holds(tried(2, least=2, recall=0.95), slo)
    assert not holds(tried(2, least=2, recall=0.949), slo)
    assert not holds(tried(1, least=2), slo)
    assert holds(tried(2, least=2, recall=0.1), SloTargets())  # nothing was promised
    assert criterion(slo).endswith("95 % of requests keep the objective")
    assert criterion(SloTargets()) == "the queue does not grow"


def test_everything_that_no_run_could_have_is_named_at_once():
    asked = SimulateRequest(n_replicas=0, bin_s=float("nan"), router="dice")
    with pytest.raises(InputError) as caught:
        check_request(asked)
    assert [p.where for p in caught.value.problems] == ["--replicas", "--bin-s", "--router"]
    check_request(SimulateRequest())


@pytest.mark.parametrize(
    ("rule", "grouping", "is_told"),
    [
        ("session", Grouping(), True),
        ("session", Grouping(session=[0, 0]), False),
        ("prefix_affinity", Grouping(session=[0, 0]), True),
        ("prefix_affinity", Grouping(prefix_group=[0, -1], prefix_tokens=[5, 0]), False),
        ("round_robin", Grouping(), False),
    ],
)
def test_a_router_that_looks_at_what_no_request_has_is_told(rule, grouping, is_told):
    requests = requests_of([0.0, 1.0], [10, 10], [5, 5], grouping=grouping)
    assert len(unknowing(rule, requests, "--router")) == is_told


TALK = DrawnLoad(
    requests_per_s=6.0,
    input=TokenLengths(shape="fixed", mean_tokens=100),
    output=TokenLengths(shape="fixed", mean_tokens=50),
    n_turns_mean=3.0,
    think_s=0.0,
)


def test_conversations_begin_so_much_rarer_as_they_have_turns():
    asked: list[DrawnLoad] = []

    def starts(load: DrawnLoad):
        asked.append(load)
        return floats([0.0, 10.0])

    talking_load(TALK, (), starts, seed=0)
    assert asked[0].requests_per_s == 2.0


def test_every_turn_holds_all_that_was_said_and_comes_after_the_answer():
    load = talking_load(TALK, (), lambda _: floats([0.0, 1000.0]), seed=3)
    requests = load.requests
    for session in set(requests.session.tolist()):
        mine = requests.take(requests.session == session)
        turns = np.arange(len(mine))
        assert mine.input_tokens.tolist() == (100 + 150 * turns).tolist()
        answer_s = 50 * ANSWER_S_PER_TOKEN
        assert np.diff(mine.arrive_s) == pytest.approx(np.full(len(mine) - 1, answer_s))


def test_a_pause_that_nobody_gave_is_told():
    silent = talking_load(replace(TALK, think_s=None), (), lambda _: floats([0.0]), seed=0)
    given = talking_load(TALK, (), lambda _: floats([0.0]), seed=0)
    assert {a.what for a in silent.assumptions} - {a.what for a in given.assumptions} == {
        "think time"
    }
