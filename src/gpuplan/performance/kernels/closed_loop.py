"""A closed loop of users, iteration by iteration: step times in, mean wait for the first token out.

The engine serves prompts first come, first served, as many per iteration as its token budget
allows, while everything admitted goes on decoding; between changes of the batch it jumps ahead.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Fractional parts of multiples of the golden ratio: even, repeatable, no generator needed.
GOLDEN = 0.6180339887498949


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


@njit(cache=True)
def answer_tokens(number: int, load: LoopLoad) -> float:
    """Length of the answer of the request with this number, even over its range."""
    part = (number * GOLDEN) % 1.0
    return float(max(1.0, np.round(load.output_tokens * (1.0 - load.spread_frac * part))))


@njit(cache=True)
def _least(left: Floats, n_running: int) -> float:
    least = left[0]
    for i in range(1, n_running):
        least = min(least, left[i])
    return float(least)


@njit(cache=True)
def _advance(left: Floats, n_running: int, n_tokens: float) -> int:
    """Everything running makes so many tokens; the number that goes on."""
    n_kept = 0
    for i in range(n_running):
        rest = left[i] - n_tokens
        if rest > 0.5:
            left[n_kept] = rest
            n_kept += 1
    return n_kept


@njit(cache=True)
def _start(left: Floats, n_running: int, numbers: tuple[int, int], load: LoopLoad) -> None:
    """Requests of these numbers, from and to, begin to decode."""
    for number in range(numbers[0], numbers[1]):
        left[n_running + number - numbers[0]] = answer_tokens(number, load)


@njit(cache=True)
def _reading_s(n_prompts: float, prompt: PromptTimes) -> float:
    """What so many prompts, or a part of one, add to an iteration."""
    shared_s = prompt.first_s - prompt.further_s
    return float(prompt.further_s * n_prompts + shared_s * min(n_prompts, 1.0))


@njit(cache=True)
def first_token_waits(
    decode_s: Floats, prompt: PromptTimes, n_users: int, n_slots: int, load: LoopLoad, n_total: int
) -> Floats:
    """Wait of every request, in order of asking; decode_s[n]: an iteration with n decoding."""
    asked_at, waits, left = np.zeros(n_total), np.zeros(n_total), np.zeros(n_slots + 1)
    now, read_tokens = 0.0, 0.0
    n_running, n_asked, n_started = 0, min(n_users, n_total), 0
    while n_started < n_total:
        n_ready = min(n_asked - n_started, n_slots - n_running)
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
        n_again = min(n_running - n_kept, n_total - n_asked)
        asked_at[n_asked : n_asked + n_again] = now
        n_asked += n_again
        waits[n_started : n_started + n_read] = now - asked_at[n_started : n_started + n_read]
        _start(left, n_kept, (n_started, n_started + n_read), load)
        n_running, n_started = n_kept + n_read, n_started + n_read
    return waits
