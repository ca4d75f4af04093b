"""The loop against theory and against a plain model that never jumps."""

import numpy as np
import pytest

from fakes.steps import REGIME, USUAL, case, closed_loop, work
from gpuplan.performance.kernels.closed_loop import (
    LoopLoad,
    PromptTimes,
    _fill_waits,
    answer_tokens,
    loop_room,
    mean_waits,
    served_loop,
    users_room,
)
from gpuplan.performance.kernels.columns import all_floats
from gpuplan.performance.kernels.regimes import (
    decode_token_s,
    loop_times,
    mixed_load,
)
from gpuplan.performance.kernels.step import step_time_s
from gpuplan.performance.serving.regimes import loop_waits
from gpuplan.studies.inference.work import ById

PROMPT = PromptTimes(0.03, 0.02)


def first_token_waits(decode_s, prompt, n_users, n_slots, load, n_total):
    """Wait of every request, in order of asking; decode_s[n]: an iteration with n decoding."""
    room = loop_room(n_total, n_slots)._replace(decode_s=np.ascontiguousarray(decode_s))
    _fill_waits(room, prompt, n_users, n_slots, load)
    return room.waits_s


def stepped_waits(decode_s, prompt, n_users, n_slots, load, n_total):
    """Token by token, with lists: the oracle."""
    now, queue, running, waits, done_tokens = 0.0, [(i, 0.0) for i in range(n_users)], [], {}, 0.0
    n_asked = n_users
    while len(waits) < n_total:
        n_ready = min(len(queue), n_slots - len(running))
        piece = min(load.budget_tokens, n_ready * load.prompt_tokens - done_tokens)
        piece = max(piece, 0.0) if n_ready else 0.0
        n_pieces = piece / load.prompt_tokens
        alone_s, rest_s = min(n_pieces, 1.0) * prompt.first_s, max(n_pieces - 1.0, 0.0)
        now += decode_s[len(running)] + alone_s + rest_s * prompt.further_s
        running = [left - 1 for left in running]
        n_done = sum(left < 0.5 for left in running)
        running = [left for left in running if left >= 0.5]
        for _ in range(n_done):
            if n_asked < n_total:
                queue.append((n_asked, now))
                n_asked += 1
        done_tokens += piece
        while queue and done_tokens > load.prompt_tokens - 1e-6:
            number, asked = queue.pop(0)
            waits[number] = now - asked
            running.append(answer_tokens(number, load))
            done_tokens -= load.prompt_tokens
    return np.array([waits[i] for i in range(n_total)])


@pytest.mark.parametrize(
    ("n_users", "n_slots", "prompt", "output", "budget"),
    [(1, 1, 100.0, 20.0, 512.0), (8, 8, 100.0, 30.0, 256.0), (12, 5, 300.0, 17.0, 128.0),
     (16, 16, 64.0, 50.0, 8192.0)],
)  # fmt: skip
def test_jumping_equals_stepping(n_users, n_slots, prompt, output, budget):
    decode_s = 0.010 + 0.001 * np.arange(n_slots + 1)
    load = LoopLoad(prompt, output, 0.2, budget)
    fast = first_token_waits(decode_s, PROMPT, n_users, n_slots, load, 4 * n_users)
    slow = stepped_waits(decode_s, PROMPT, n_users, n_slots, load, 4 * n_users)
    assert fast == pytest.approx(slow, rel=1e-9, abs=1e-12)


def test_a_lone_user_waits_for_one_prompt():
    waits = first_token_waits(
        np.array([0.004, 0.01]),
        PromptTimes(0.05, 0.05),
        1,
        1,
        LoopLoad(128.0, 10.0, 0.0, 8192.0),
        5,
    )
    assert waits == pytest.approx(np.full(5, 0.054))


def test_simultaneous_arrival_waits_half_the_queue():
    # Trap: n prompts at once, one per iteration, wait (n + 1) / 2 iterations on average.
    n = 16
    load = LoopLoad(100.0, 1000.0, 0.0, 100.0)
    waits = first_token_waits(np.zeros(n + 1), PromptTimes(0.1, 0.1), n, n, load, n)
    assert waits.mean() == pytest.approx(0.1 * (n + 1) / 2)


def test_the_room_compiles_the_loop_once():
    if not hasattr(mean_waits, "signatures"):
        pytest.skip("compilation is off")
    before = len(mean_waits.signatures)
    for n in (1.0, 7.0, 40.0):
        here = case(n_sequences=n)
        times = loop_times(work(), USUAL, REGIME, here)
        loop_waits(work(), USUAL, times, case=here, batch_tokens=8192.0)
    assert len(mean_waits.signatures) <= before + 1


def plain_loop(doing, here, budget_tokens):
    """The same loop with columns and plain numbers: what the compiled one must equal."""
    times = loop_times(doing, USUAL, REGIME, here)
    n_users = max(1, round(here.n_sequences))
    n_slots = max(1, min(n_users, int(times.n_running + 0.5)))
    decode_s = decode_token_s(doing, USUAL, here, np.arange(n_slots + 1.0) / here.n_stages)
    n_most, first_s = budget_tokens / here.input_tokens, times.prompt_s
    further_s = first_s
    if n_most >= 1.5:
        load = mixed_load(here, n_most, times.n_running / here.n_stages)
        all_s = step_time_s(doing, USUAL, load) - times.step_s
        further_s = min(first_s, (all_s - first_s) / (n_most - 1.0))
    load = LoopLoad(here.input_tokens, here.output_tokens, 0.2, budget_tokens)
    prompt = PromptTimes(first_s, further_s)
    waits_s = first_token_waits(decode_s, prompt, n_users, n_slots, load, 4 * n_users)
    share = REGIME.first_wave_frac
    wait_s = share * waits_s[:n_users].mean() + (1.0 - share) * waits_s[n_users:].mean()
    return closed_loop(doing, USUAL, REGIME, here, wait_s)


@pytest.mark.parametrize("n_users", [1.0, 6.0, 40.0, 300.0])
@pytest.mark.parametrize("n_stages", [1.0, 4.0])
@pytest.mark.parametrize("budget_tokens", [512.0, 8192.0])
def test_compiled_equals_plain(n_users, n_stages, budget_tokens):
    doing = all_floats(work())
    here = case(n_sequences=n_users, n_stages=n_stages)
    found = served_loop(doing, USUAL, REGIME, here, budget_tokens, users_room(n_users))
    assert tuple(found) == pytest.approx(tuple(plain_loop(doing, here, budget_tokens)), rel=1e-12)


def test_a_key_by_identity_equals_itself_only():
    keys = [ById(value) for value in ([1], [1])]
    assert keys[0] == ById(keys[0].value)
    assert keys[0] != keys[1]
    assert hash(keys[0]) == hash(ById(keys[0].value))
