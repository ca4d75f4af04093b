import numpy as np
import pytest

from gpuplan.demand.arrivals import poisson
from gpuplan.demand.scale import client_of, merged, scaled_blocks, scaled_rows, served
from gpuplan.demand.statistics import dispersion
from gpuplan.domain.columns import ints
from gpuplan.domain.traffic.stream import Grouping, PrefixBlocks, alike, no_requests, requests_of
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
    assert np.array_equal(scaled_rows(given, 1.0, seed=3).requests.arrive_s, given.arrive_s)


def test_every_copy_holds_every_request_and_stays_in_the_span():
    given = trace()
    found = scaled_rows(given, 4.0, seed=3).requests
    assert len(found) == 4 * len(given)
    _, n_each = np.unique(found.input_tokens, return_counts=True)
    assert set(n_each) == {4}
    span = given.arrive_s[-1] - given.arrive_s[0]
    assert found.arrive_s[0] >= given.arrive_s[0] - 1e-9
    assert found.arrive_s[-1] <= given.arrive_s[0] + span * (1 + 2 / len(given))


def test_copies_are_other_people_with_the_same_system_prompt():
    given = trace(session=lambda m: np.arange(m) // 10, prefix_group=np.zeros)
    found = scaled_rows(given, 3.0, seed=1).requests
    assert len(np.unique(found.session)) == 3 * len(np.unique(given.session))
    assert set(found.prefix_group) == {0}


def test_a_history_belongs_to_its_copy():
    own = {"session": lambda m: np.arange(m) // 10, "prefix_group": lambda m: np.arange(m) // 10}
    found = scaled_rows(trace(**own), 2.0, seed=1).requests
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


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("factor", [2.0, 3.5])
def test_a_load_that_swells_and_ebbs_stays_as_bursty(factor, seed):
    """Copies that fill each other's lulls would leave half of the swell, or less."""
    even = poisson(6.0, 3400.0, seed=9)
    swell = np.sin(2 * np.pi * even / 900.0)
    draw = np.random.default_rng(2).uniform(size=len(even))
    given = even[draw < 0.5 * (1 + 0.9 * swell)]
    requests = requests_of(given, np.ones(len(given)), np.ones(len(given)))
    found = scaled_rows(requests, factor, seed=seed).requests.arrive_s
    for window_s in (10.0, 60.0):
        before, after = dispersion(given, window_s), dispersion(found, window_s)
        assert after == pytest.approx(before, rel=0.25), window_s


def test_rows_say_where_each_request_comes_from():
    given = trace()
    found = scaled_rows(given, 2.5, seed=4)
    assert np.array_equal(found.requests.input_tokens, given.input_tokens[found.row])
    assert np.bincount(found.copy)[:2].tolist() == [len(given)] * 2
    first = found.copy == 0
    assert np.array_equal(found.requests.arrive_s[first], given.arrive_s)


def test_copies_share_the_service_s_words_and_no_others():
    """20 requests: block 0 begins all, each goes on with a block of its own."""
    n = 20
    block = np.column_stack([np.zeros(n, dtype=int), np.arange(1, n + 1)]).ravel()
    text = PrefixBlocks(
        n_block_tokens=16, first=ints(np.arange(0, 2 * n + 1, 2)), block=ints(block)
    )
    requests = requests_of(np.arange(n, dtype=float), np.full(n, 32), np.ones(n))
    found = scaled_rows(requests, 3.0, seed=0)
    more = scaled_blocks(text, found)
    assert len(more.first) == 3 * n + 1
    assert more.n_distinct == 1 + 3 * n
    assert set(more.block[more.first[:-1]]) == {0}
    same = {}
    for at in range(3 * n):
        key = int(found.row[at]), int(found.copy[at])
        same[key] = int(more.block[more.first[at] + 1])
    assert len(set(same.values())) == 3 * n


def test_one_request_scales():
    found = scaled_rows(requests_of([5.0], [3], [2]), 3.0, seed=0).requests
    assert len(found) == 3


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf"), 1e12])
def test_factors_that_are_none_are_refused(factor):
    with pytest.raises(InputError):
        scaled_rows(trace(), factor, seed=0)


def test_nothing_cannot_be_scaled():
    with pytest.raises(InputError, match="none"):
        scaled_rows(no_requests(), 2.0, seed=0)
    assert len(merged([])) == 0


def test_requests_without_work_are_set_apart_and_counted():
    kept, n_left = served(requests_of([0, 1, 2], [5, 0, 5], [5, 5, 0]))
    assert (len(kept), n_left) == (1, 2)


def test_copies_ask_for_as_much_as_the_trace_did():
    asked = Grouping(max_tokens=[7, -1, 9])
    requests = requests_of([0.0, 1.0, 2.0], [5, 5, 5], [3, 3, 3], grouping=asked)
    more = scaled_rows(requests, 2.0, seed=1).requests
    assert sorted(more.max_tokens.tolist()) == [-1, -1, 7, 7, 9, 9]
    again = alike(requests, [4.0, 5.0, 6.0])
    assert again.max_tokens.tolist() == [7, -1, 9]
    assert again.input_tokens.tolist() == [5, 5, 5]
