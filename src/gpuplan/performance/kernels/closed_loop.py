"""A closed loop of users, iteration by iteration: step times in, mean wait for the first token out.

The engine serves prompts first come, first served, as many per iteration as its token budget
allows, while everything admitted goes on decoding; between changes of the batch it jumps ahead.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.performance.kernels.compiled import kernel
from gpuplan.performance.kernels.regimes import (
    LoopTimes,
    RegimeConstants,
    Served,
    ServingCase,
    closed_loop_at,
    decode_token_s,
    loop_times,
    mixed_load,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork, step_time_s

Floats = NDArray[np.float64]
# Fractional parts of multiples of the golden ratio: even, repeatable, no generator needed.
GOLDEN = 0.6180339887498949
N_WAVES = 4
# Benchmarks draw answer lengths from the upper fifth of the asked one [vLLM-bench-random].
LENGTH_SPREAD_FRAC = 0.2
LEAST_PROMPTS = 1.5  # below, an iteration has room for one prompt only


class PromptTimes(NamedTuple):
    """What prompts add to an iteration: the first pays for reading what all of them share."""

    first_s: float
    further_s: float  # each one more in the same iteration


class LoopLoad(NamedTuple):
    """Lengths in tokens; `spread_frac` is the share by which answers fall short of the longest."""

    prompt_tokens: float
    output_tokens: float
    spread_frac: float
    budget_tokens: float  # of one iteration


@kernel
def answer_tokens(number: int, load: LoopLoad) -> float:
    """Length of the answer of the request with this number, even over its range."""
    part = (number * GOLDEN) % 1.0
    return float(max(1.0, np.round(load.output_tokens * (1.0 - load.spread_frac * part))))


@kernel
def _least(left: Floats, n_running: int) -> float:
    least = left[0]
    for i in range(1, n_running):
        least = min(least, left[i])
    return float(least)


@kernel
def _advance(left: Floats, n_running: int, n_tokens: float) -> int:
    """Everything running makes so many tokens; the number that goes on."""
    n_kept = 0
    for i in range(n_running):
        rest = left[i] - n_tokens
        if rest > 0.5:
            left[n_kept] = rest
            n_kept += 1
    return n_kept


@kernel
def _start(left: Floats, n_running: int, numbers: tuple[int, int], load: LoopLoad) -> None:
    """Requests of these numbers, from and to, begin to decode."""
    for number in range(numbers[0], numbers[1]):
        left[n_running + number - numbers[0]] = answer_tokens(number, load)


@kernel
def _reading_s(n_prompts: float, prompt: PromptTimes) -> float:
    """What so many prompts, or a part of one, add to an iteration."""
    shared_s = prompt.first_s - prompt.further_s
    return float(prompt.further_s * n_prompts + shared_s * min(n_prompts, 1.0))


class LoopRoom(NamedTuple):
    """What a run writes to: per request when it asked and how long it waited, per slot the rest."""

    requested_at: Floats
    waits_s: Floats
    left_tokens: Floats
    decode_s: Floats  # an iteration with 0, 1 … decoding


def loop_room(n_total: int, n_slots: int) -> LoopRoom:
    """Room for so many requests, so many of them at once."""
    return LoopRoom(*np.zeros((2, n_total)), *np.zeros((2, n_slots + 1)))


def users_room(n_sequences: float) -> LoopRoom:
    """Room for the waves of so many users."""
    n_users = max(1, round(n_sequences))
    return loop_room(N_WAVES * n_users, n_users)


@kernel
def _fill_waits(
    room: LoopRoom, prompt: PromptTimes, n_users: int, n_slots: int, load: LoopLoad
) -> None:
    requested_at, waits = room.requested_at, room.waits_s
    left, decode_s = room.left_tokens, room.decode_s
    n_total = len(waits)
    now, read_tokens = 0.0, 0.0
    n_running, n_requested, n_started = 0, min(n_users, n_total), 0
    while n_started < n_total:
        n_ready = min(n_requested - n_started, n_slots - n_running)
        n_read = 0
        if n_ready > 0:
            piece = min(load.budget_tokens, n_ready * load.prompt_tokens - read_tokens)
            now += decode_s[n_running] + _reading_s(piece / load.prompt_tokens, prompt)
            n_read = int((read_tokens + piece) / load.prompt_tokens + 1e-9)
            read_tokens += piece - n_read * load.prompt_tokens
            n_kept = _advance(left, n_running, 1.0)
        else:
            jump = _least(left, n_running)
            now += jump * decode_s[n_running]
            n_kept = _advance(left, n_running, jump)
        n_again = min(n_running - n_kept, n_total - n_requested)
        for i in range(n_requested, n_requested + n_again):
            requested_at[i] = now
        n_requested += n_again
        for i in range(n_started, n_started + n_read):
            waits[i] = now - requested_at[i]
        _start(left, n_kept, (n_started, n_started + n_read), load)
        n_running, n_started = n_kept + n_read, n_started + n_read


@kernel
def _mean(values: Floats, start: int, end: int) -> float:
    total = 0.0
    for i in range(start, end):
        total += values[i]
    return total / (end - start)


@kernel
def _prompt_times(
    work: StepWork, k: StepConstants, case: ServingCase, times: LoopTimes, budget_tokens: float
) -> PromptTimes:
    """One prompt alone, and each further one up to the iteration's budget."""
    first_s = times.prompt_s
    n_most = budget_tokens / case.input_tokens
    if n_most < LEAST_PROMPTS:
        return PromptTimes(first_s, first_s)
    here = times.n_running / case.n_stages
    all_s = step_time_s(work, k, mixed_load(case, n_most, here)) - times.step_s
    return PromptTimes(first_s, min(first_s, (all_s - first_s) / (n_most - 1.0)))


@kernel
def mean_waits(
    work: StepWork,
    k: StepConstants,
    case: ServingCase,
    times: LoopTimes,
    budget_tokens: float,
    room: LoopRoom,
) -> tuple[float, float]:
    """Mean wait of the first wave of users and of the later ones."""
    n_total = len(room.waits_s)
    n_users = n_total // N_WAVES
    n_slots = max(1, min(n_users, int(times.n_running + 0.5)))
    for n in range(n_slots + 1):
        # The empty iteration costs what a prompt does not.
        room.decode_s[n] = decode_token_s(work, k, case, n / case.n_stages)
    # Each data-parallel rank has a budget of its own.
    most_tokens = budget_tokens * work.n_data_parallel
    load = LoopLoad(case.input_tokens, case.output_tokens, LENGTH_SPREAD_FRAC, most_tokens)
    prompt = _prompt_times(work, k, case, times, most_tokens)
    _fill_waits(room, prompt, n_users, n_slots, load)
    return _mean(room.waits_s, 0, n_users), _mean(room.waits_s, n_users, n_total)


@kernel
def served_loop(
    work: StepWork,
    k: StepConstants,
    r: RegimeConstants,
    case: ServingCase,
    budget_tokens: float,
    room: LoopRoom,
) -> Served:
    """What a replica gives to a closed loop of users."""
    times = loop_times(work, k, r, case)
    first_s, later_s = mean_waits(work, k, case, times, budget_tokens, room)
    wait_s = r.first_wave_frac * first_s + (1.0 - r.first_wave_frac) * later_s
    return closed_loop_at(work, k, r, case, wait_s, times)
