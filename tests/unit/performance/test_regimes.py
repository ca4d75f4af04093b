import pytest

from fakes.models import dense_group, model
from fakes.steps import REGIME, USUAL, case, closed_loop, work
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.performance.kernels.regimes import (
    decode_token_s,
    fixed_max_batch,
    loop_times,
    max_load,
    mixed_load,
    n_held,
    open_loop,
    prefill_s,
    static_batch,
    steady_token_s,
)
from gpuplan.performance.kernels.step import step_time_s


def test_static_batch_is_one_prefill_and_the_rest_of_the_answer():
    load = case(n_sequences=16.0)
    served = static_batch(work(), USUAL, REGIME, load)
    first = prefill_s(work(), USUAL, load, 16.0)
    step = decode_token_s(work(), USUAL, load, 16.0)
    assert served.ttft_s == pytest.approx(first)
    assert served.e2e_s == pytest.approx(first + 63 * step)
    assert served.output_tokens_per_s == pytest.approx(16 * 64 / served.e2e_s)


def test_what_the_cache_cannot_hold_runs_in_waves():
    tight = case(n_sequences=16.0)
    whole = static_batch(work(), USUAL, REGIME, tight)
    held = n_held(work(), REGIME, tight)
    room = tight.cache_bytes * 8.0 / held
    halved = static_batch(work(), USUAL, REGIME, tight._replace(cache_bytes=room))
    assert halved.n_running == pytest.approx(8.0)
    assert halved.output_tokens_per_s < whole.output_tokens_per_s


def test_saturated_engine_runs_what_fits_up_to_its_limit():
    served = max_load(work(), USUAL, REGIME, case(n_sequences=1e9))
    assert 8 < served.n_running <= REGIME.batch_limit
    assert max_load(work(), USUAL, REGIME, case()).n_running == pytest.approx(8)
    assert served.output_tokens_per_s == pytest.approx(served.n_running / served.tpot_s)


def test_a_last_wave_that_is_not_full_costs_its_own_time():
    # Equal lengths keep waves together: 12 requests at 8 a time are 8, then 4.
    tight = case(n_sequences=1e9)
    room = tight.cache_bytes * 8.0 / n_held(work(), REGIME, tight)
    queue = case(n_sequences=12.0, cache_bytes=room)
    served = max_load(work(), USUAL, REGIME, queue)
    whole_s, rest_s = (
        steady_token_s(work(), USUAL, queue, n) for n in (served.n_running, 12.0 - served.n_running)
    )
    assert served.output_tokens_per_s == pytest.approx(12.0 / (whole_s + rest_s))
    endless = max_load(work(), USUAL, REGIME, case(n_sequences=1e9, cache_bytes=room))
    assert served.output_tokens_per_s < endless.output_tokens_per_s


def test_whole_prompts_hide_less_than_an_even_share():
    big = work(model(dense_group(n_layers=200)))
    # 4,096 tokens compute for longer than the weights are read; the even share of 64 does not.
    load = case(n_sequences=64.0, input_tokens=4096.0, output_tokens=4096.0)
    even_s = step_time_s(big, USUAL, mixed_load(load, 64.0 / 4096.0, 64.0))
    assert steady_token_s(big, USUAL, load, 64.0) > even_s
    # Where an iteration reads several prompts anyway, the share of each is the even one.
    many = case(n_sequences=64.0, output_tokens=4.0)
    assert steady_token_s(big, USUAL, many, 64.0) == pytest.approx(
        step_time_s(big, USUAL, mixed_load(many, 16.0, 64.0))
    )


def test_littles_law_closes_in_the_closed_loop():
    load = case(n_sequences=32.0)
    served = closed_loop(work(), USUAL, REGIME, load, 0.01)
    in_flight = served.output_tokens_per_s / load.output_tokens * served.e2e_s
    assert in_flight == pytest.approx(32.0)


def test_other_users_prompts_lengthen_the_time_per_token():
    alone = closed_loop(work(), USUAL, REGIME, case(n_sequences=1.0), 0.0)
    crowd = case(n_sequences=32.0)
    at_once = REGIME._replace(serve_start_s=0.0, start_prompts=0.0, start_steps=0.0)
    served = closed_loop(work(), USUAL, at_once, crowd, 0.0)
    times = loop_times(work(), USUAL, REGIME, crowd)
    assert alone.tpot_s == pytest.approx(decode_token_s(work(), USUAL, crowd, 1.0))
    assert served.tpot_s == pytest.approx(times.decode_s + 31 * times.prompt_s / 64)


@pytest.mark.parametrize("wait_s", [0.0, 0.05, 0.5, 5.0])
def test_of_the_others_prompts_those_ride_along_that_fall_into_the_answer(wait_s):
    crowd = case(n_sequences=32.0)
    served = closed_loop(work(), USUAL, REGIME, crowd, wait_s)
    times = loop_times(work(), USUAL, REGIME, crowd)
    answer_s = 64 * served.tpot_s
    n_ridden = 31 * answer_s / (served.ttft_s + answer_s)
    assert answer_s == pytest.approx(64 * times.decode_s + n_ridden * times.prompt_s)


def test_who_waits_long_sees_few_prompts_of_others():
    crowd = case(n_sequences=32.0)
    tpots = [closed_loop(work(), USUAL, REGIME, crowd, s).tpot_s for s in (0.0, 0.1, 1.0, 1e4)]
    assert tpots == sorted(tpots, reverse=True)
    assert tpots[-1] == pytest.approx(loop_times(work(), USUAL, REGIME, crowd).decode_s, rel=1e-3)


def test_median_of_a_fixed_batch_hides_prompts_and_the_mean_does_not():
    served = fixed_max_batch(work(), USUAL, REGIME, case(n_sequences=32.0))
    assert served.n_running / served.output_tokens_per_s > served.tpot_s


def test_open_loop_keeps_up_below_capacity_and_not_above():
    flooded = case(n_sequences=1e9)
    capacity = max_load(work(), USUAL, REGIME, flooded).output_tokens_per_s / 64
    calm = open_loop(work(), USUAL, REGIME, flooded._replace(requests_per_s=0.3 * capacity))
    flood = open_loop(work(), USUAL, REGIME, flooded._replace(requests_per_s=3.0 * capacity))
    assert calm.output_tokens_per_s == pytest.approx(0.3 * capacity * 64)
    assert flood.output_tokens_per_s == pytest.approx(capacity * 64)
    # Little's law: as many run as arrive while one is answered.
    assert calm.n_running == pytest.approx(0.3 * capacity * 64 * calm.tpot_s, rel=0.01)
    assert flood.tpot_s > calm.tpot_s


def test_pipeline_stages_share_the_cache_and_work_at_once():
    deep = case(n_stages=2.0)
    assert n_held(work(), REGIME, deep) == pytest.approx(2 * n_held(work(), REGIME, case()))
    one = max_load(work(), USUAL, REGIME, case(cache_bytes=1e6, n_sequences=1e9))
    two = max_load(work(), USUAL, REGIME, case(cache_bytes=1e6, n_stages=2.0, n_sequences=1e9))
    assert two.output_tokens_per_s > 1.5 * one.output_tokens_per_s


def test_prefix_hits_spare_prompts_and_nothing_else():
    # Trap: a hit discounts prefill; the cache it stands in is still read while decoding.
    cold, warm = case(n_sequences=16.0), case(n_sequences=16.0, cached_tokens=96.0)
    assert prefill_s(work(), USUAL, warm) < prefill_s(work(), USUAL, cold)
    assert decode_token_s(work(), USUAL, warm, 8.0) == decode_token_s(work(), USUAL, cold, 8.0)
    assert n_held(work(), REGIME, warm) == n_held(work(), REGIME, cold)


def test_drafts_pay_while_decoding_is_bound_by_memory():
    drafts = SpeculativeDecoding(n_tokens=3, acceptance_frac=0.8)
    assert drafts.gained_tokens == pytest.approx(1 + 0.8 + 0.64 + 0.512)
    plain = case()
    drafted = case(checked_tokens=drafts.checked_tokens, gained_tokens=drafts.gained_tokens)
    big = model(dense_group(n_layers=200))
    alone = [decode_token_s(work(big), USUAL, c, 1.0) for c in (plain, drafted)]
    crowded = [decode_token_s(work(big), USUAL, c, 20_000.0) for c in (plain, drafted)]
    assert alone[1] < 0.5 * alone[0]
    assert crowded[1] / crowded[0] > alone[1] / alone[0]
    hopeless = case(checked_tokens=4.0, gained_tokens=1.0)
    assert decode_token_s(work(big), USUAL, hopeless, 1.0) >= alone[0]
