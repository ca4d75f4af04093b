import dataclasses

import numpy as np
import pytest

from gpuplan.demand.generate import request_blocks, requests_for
from gpuplan.demand.mixes import mix_requests
from gpuplan.demand.profile import hourly_weights, warped
from gpuplan.demand.statistics import counts, gap_cv
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.demand import Arrivals, RequestShape, TokenLengths
from gpuplan.domain.traffic.trace import Client, ClientMix, LengthWindow
from gpuplan.errors import InputError

SHAPE = RequestShape(
    input=TokenLengths(shape="fixed", mean_tokens=100.0),
    output=TokenLengths(shape="fixed", mean_tokens=20.0),
    prefix_hit_frac=exactly(0.3),
    n_turns=1.0,
)
STEADY = Arrivals(peak_requests_per_s=10.0, mean_requests_per_s=10.0, burstiness_ratio=1.0)


def test_a_described_load_comes_out():
    found = requests_for(STEADY, SHAPE, duration_s=2000.0, seed=1)
    assert len(found) == pytest.approx(20_000, rel=0.03)
    assert set(found.prefix_tokens) == {30}
    assert set(found.prefix_group) == {0}


def test_bursts_come_out():
    bursty = dataclasses.replace(STEADY, burstiness_ratio=3.0)
    found = requests_for(bursty, SHAPE, duration_s=5000.0, seed=1)
    assert gap_cv(found.arrive_s) == pytest.approx(3.0, rel=0.1)


def test_the_profile_moves_the_mean():
    profile = tuple([1.0] * 12 + [3.0] * 12)
    daily = dataclasses.replace(STEADY, mean_requests_per_s=2.0, hourly_profile=profile)
    found = requests_for(daily, SHAPE, duration_s=86400.0, seed=1)
    by_hour = counts(found.arrive_s, 3600.0, duration_s=86400.0)
    assert by_hour[:12].mean() == pytest.approx(3600, rel=0.02)
    assert by_hour[12:].mean() == pytest.approx(10_800, rel=0.02)


def test_a_load_without_a_rate_is_refused():
    none = dataclasses.replace(STEADY, peak_requests_per_s=None)
    with pytest.raises(InputError, match="no rate"):
        requests_for(none, SHAPE, duration_s=10.0, seed=0)


@pytest.mark.parametrize(
    "profile", [(), (1.0,) * 23, (0.0,) * 24, (float("nan"),) * 24, (-1.0,) * 24]
)
def test_profiles_that_are_none_are_refused(profile):
    with pytest.raises(InputError, match="24 or 168"):
        hourly_weights(profile)


def test_no_arrival_falls_into_hours_without_load():
    profile = tuple([0.0] * 6 + [1.0] * 18)
    found = warped(floats(np.arange(0.5, 3 * 86400, 7.0)), profile)
    assert np.all(found % 86400 >= 6 * 3600 - 1e-6)


def client(number, rate, *, cv=1.0, is_weibull=0, start_s=(0.0,)):
    """A client whose prompts have 10 or 30 tokens and 100 per number more."""
    lengths = LengthWindow(
        start_s=0.0,
        input_tokens=floats([100 * number + 10, 100 * number + 30]),
        input_weight=floats([3.0, 1.0]),
        output_tokens=floats([5]),
        output_weight=floats([1.0]),
    )
    rates = np.broadcast_to(rate, len(start_s))
    return Client(
        name=str(number),
        start_s=floats(start_s),
        requests_per_s=floats(rates),
        gap_cv_ratio=floats(np.full(len(start_s), cv)),
        is_weibull=ints(np.full(len(start_s), is_weibull)),
        lengths=(lengths,),
    )


def mix_of(*rates, window_s=2000.0, **options):
    clients = tuple(client(i, rate, **options) for i, rate in enumerate(rates))
    return ClientMix(window_s=window_s, clients=clients)


def test_a_mix_has_the_rates_and_lengths_of_its_clients():
    mix = mix_of(20.0, 10.0, 2.0, cv=2.0)
    found, owner = mix_requests(mix, start_s=0.0, duration_s=2000.0, seed=4)
    assert np.bincount(owner) / 2000 == pytest.approx([20, 10, 2], rel=0.1)
    assert np.all(np.diff(found.arrive_s) >= 0)
    for number in range(3):
        own = found.input_tokens[owner == number]
        assert set(own.tolist()) == {100 * number + 10, 100 * number + 30}
        assert (own == 100 * number + 10).mean() == pytest.approx(0.75, abs=0.03)
    again, _ = mix_requests(mix, start_s=0.0, duration_s=2000.0, seed=4)
    assert again.arrive_s.tobytes() == found.arrive_s.tobytes()


@pytest.mark.parametrize("is_weibull", [0, 1])
def test_each_client_of_a_mix_is_as_bursty_as_it_was(is_weibull):
    mix = mix_of(50.0, cv=3.0, is_weibull=is_weibull)
    found, _ = mix_requests(mix, start_s=0.0, duration_s=2000.0, seed=1)
    assert gap_cv(found.arrive_s) == pytest.approx(3.0, rel=0.1)


def test_a_mix_follows_the_windows_of_its_clients():
    mix = mix_of((4.0, 0.0, 8.0), window_s=600.0, start_s=(0.0, 600.0, 1200.0))
    found, _ = mix_requests(mix, start_s=300.0, duration_s=1500.0, seed=2)
    by_window = counts(found.arrive_s, 300.0, duration_s=1500.0) / 300
    assert by_window == pytest.approx([4, 0, 0, 8, 8], rel=0.1)


def test_a_mix_scales_by_its_clients():
    mix = mix_of(15.0, 5.0, window_s=1000.0)
    found, _ = mix_requests(mix, start_s=0.0, duration_s=1000.0, factor=3.0, seed=4)
    assert len(found) == pytest.approx(60_000, rel=0.03)
    with pytest.raises(InputError, match="above 0"):
        mix_requests(mix, start_s=0.0, duration_s=0.0, seed=4)
    with pytest.raises(InputError, match="at most"):
        mix_requests(mix, start_s=0.0, duration_s=1e9, seed=4)


def test_a_client_without_lengths_borrows_those_of_the_nearest_in_rate():
    mix = mix_of(20.0, 4.0, 5.0, window_s=100.0)
    bare = dataclasses.replace(mix.clients[2], lengths=())
    mixed = dataclasses.replace(mix, clients=(*mix.clients[:2], bare))
    found, owner = mix_requests(mixed, start_s=0.0, duration_s=100.0, seed=4)
    assert set(found.input_tokens[owner == 2].tolist()) == {110, 130}
    none = dataclasses.replace(mix, clients=(bare,))
    with pytest.raises(InputError, match="no client has any"):
        mix_requests(none, start_s=0.0, duration_s=100.0, seed=4)


@pytest.mark.parametrize("profile", [(), tuple([1.0] * 12 + [3.0] * 12)])
def test_blocks_are_the_load_piece_by_piece(profile):
    load = dataclasses.replace(STEADY, burstiness_ratio=2.0, hourly_profile=profile)
    blocks = list(request_blocks(load, SHAPE, duration_s=20_000.0, seed=3, n_block=7000))
    arrive = np.concatenate([block.arrive_s for block in blocks])
    assert len(blocks) > 10
    assert np.all(np.diff(arrive) >= 0)
    assert arrive[-1] < 20_000
    rate = 10.0 if not profile else 5.0  # the first hours of the profile are half its mean
    assert len(arrive) == pytest.approx(20_000 * rate, rel=0.03)
    assert gap_cv(floats(arrive)) == pytest.approx(2.0, rel=0.05)


def test_the_size_of_blocks_changes_nothing():
    def drawn(n_block):
        blocks = list(request_blocks(STEADY, SHAPE, duration_s=500.0, seed=3, n_block=n_block))
        return np.concatenate([block.arrive_s for block in blocks])

    np.testing.assert_allclose(drawn(64), drawn(100_000), rtol=1e-12)
    with pytest.raises(InputError, match="at least 1"):
        drawn(0)
