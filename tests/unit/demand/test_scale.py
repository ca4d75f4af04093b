import numpy as np
import pytest

from gpuplan.demand.arrivals import poisson
from gpuplan.demand.scale import client_of, merged, scaled, served
from gpuplan.domain.stream import Grouping, no_requests, requests_of
from gpuplan.errors import InputError


def trace(n=1000, **groups):
    arrive = poisson(10.0, n / 10, seed=0)
    m = len(arrive)
    return requests_of(
        arrive, np.arange(1, m + 1), np.ones(m),
        grouping=Grouping(**{name: make(m) for name, make in groups.items()}),
    )  # fmt: skip


def test_once_is_the_trace_itself():
    given = trace()
    assert np.array_equal(scaled(given, 1.0, seed=3).arrive_s, given.arrive_s)


def test_every_copy_holds_every_request_and_stays_in_the_span():
    given = trace()
    found = scaled(given, 4.0, seed=3)
    assert len(found) == 4 * len(given)
    _, n_each = np.unique(found.input_tokens, return_counts=True)
    assert set(n_each) == {4}
    span = given.arrive_s[-1] - given.arrive_s[0]
    assert found.arrive_s[0] >= given.arrive_s[0] - 1e-9
    assert found.arrive_s[-1] <= given.arrive_s[0] + span * (1 + 2 / len(given))


def test_copies_are_other_people_with_the_same_system_prompt():
    given = trace(session=lambda m: np.arange(m) // 10, prefix_group=np.zeros)
    found = scaled(given, 3.0, seed=1)
    assert len(np.unique(found.session)) == 3 * len(np.unique(given.session))
    assert set(found.prefix_group) == {0}


def test_a_history_belongs_to_its_copy():
    own = {"session": lambda m: np.arange(m) // 10, "prefix_group": lambda m: np.arange(m) // 10}
    found = scaled(trace(**own), 2.0, seed=1)
    pairs = {(int(s), int(g)) for s, g in zip(found.session, found.prefix_group, strict=True)}
    assert len(pairs) == len(np.unique(found.session)) == len(np.unique(found.prefix_group))


def test_client_is_session_then_group_then_the_request_itself():
    given = requests_of(
        [0, 1, 2, 3, 4], [9] * 5, [1] * 5,
        grouping=Grouping(session=[5, 5, -1, -1, -1], prefix_group=[-1, -1, 2, 2, -1]),
    )  # fmt: skip
    client = client_of(given)
    assert client[0] == client[1]
    assert client[2] == client[3]
    assert len(set(client.tolist())) == 3


def test_one_request_scales():
    found = scaled(requests_of([5.0], [3], [2]), 3.0, seed=0)
    assert len(found) == 3


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), 1e12])
def test_factors_that_are_none_are_refused(factor):
    with pytest.raises(InputError):
        scaled(trace(), factor, seed=0)


def test_nothing_cannot_be_scaled():
    with pytest.raises(InputError, match="none"):
        scaled(no_requests(), 2.0, seed=0)
    assert len(merged([])) == 0


def test_requests_without_work_are_set_apart_and_counted():
    kept, n_left = served(requests_of([0, 1, 2], [5, 0, 5], [5, 5, 0]))
    assert (len(kept), n_left) == (1, 2)
