"""What a request loses outside the engine's steps is what predictions say of one that is alone."""

import pytest

from fakes.steps import REGIME, USUAL, work
from gpuplan.domain.traffic.stream import Grouping, requests_of
from gpuplan.performance.kernels.step import StepLoad, step_time_s
from gpuplan.studies.replay.start import request_start_s


def test_a_start_is_a_fixed_time_some_steps_and_a_part_of_the_prompt():
    requests = requests_of([0.0, 1.0], [800, 1200], [100, 300])
    prompt_s = step_time_s(work(), USUAL, StepLoad(1000.0, 500.0, 1.0, 0.0, 0.0))
    step_s = step_time_s(work(), USUAL, StepLoad(0.0, 0.0, 0.0, 1.0, 1100.0))
    expected = REGIME.serve_start_s + REGIME.start_prompts * prompt_s + REGIME.start_steps * step_s
    assert request_start_s(work(), USUAL, REGIME, requests) == pytest.approx(expected)
    ahead_s = request_start_s(work(), USUAL, REGIME, requests, is_ahead=True)
    assert ahead_s == pytest.approx(expected - step_s)


def test_text_that_is_found_again_is_not_read_again():
    shared = Grouping(prefix_group=[0, 0], prefix_tokens=[600, 600])
    fresh = requests_of([0.0, 1.0], [1000, 1000], [100, 100])
    found = requests_of([0.0, 1.0], [1000, 1000], [100, 100], grouping=shared)
    assert request_start_s(work(), USUAL, REGIME, found) < request_start_s(
        work(), USUAL, REGIME, fresh
    )
