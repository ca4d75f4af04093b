"""How far own runs narrow ranges: by nearness, by number, and less where they miss by much."""

import pytest

from gpuplan.calibration.inference.own import ALONE_FRAC, conditions_of, own_figures, width_ratio
from gpuplan.domain.calibration.constants import OwnFigure
from gpuplan.studies.measured.inference import serving_setup

AT = (5.0, 10.0, 8.0, 0.0, 0.0)
ROW = {
    "source": "user", "accelerator": "H100", "n_accelerators": "2", "model": "Qwen/Qwen3-8B",
    "precision": "bf16", "engine": "vllm", "engine_version": "0.10", "tp": "2",
    "regime": "static_batch", "input_tokens": "512", "output_tokens": "128", "batch": "16",
}  # fmt: skip


def run(n_halves: float = 0.5, at=AT, metric: str = "tpot_mean_ms") -> OwnFigure:
    return OwnFigure("c", metric, at, n_halves)


def test_without_runs_nothing_narrows() -> None:
    assert width_ratio([], AT) == 1.0


def test_runs_narrow_the_more_the_nearer_they_are() -> None:
    near, far = (width_ratio([run()], (5.0 + d, *AT[1:])) for d in (0.0, 6.0))
    assert near < far < 1.0


def test_one_usual_run_leaves_what_is_its_own_by_hand() -> None:
    # At the run itself 0.9 of the variance is shared: 1 - 0.81 is left, and 1.6 halves are usual.
    assert width_ratio([run(1 / 1.6)], AT) == pytest.approx((1 - 0.81) ** 0.5)


def test_three_runs_narrow_more_than_one() -> None:
    spread = [run(at=(load, *AT[1:])) for load in (0.0, 5.0, 8.0)]
    assert width_ratio(spread, (3.0, *AT[1:])) < width_ratio(spread[:1], (3.0, *AT[1:]))


def test_a_site_unlike_the_others_stays_wide() -> None:
    assert width_ratio([run(6.0)], AT) > 2 * width_ratio([run(0.5)], AT)


def test_many_repeats_never_claim_more_than_one_run_repeats() -> None:
    assert width_ratio([run(0.0)] * 500, AT) >= (ALONE_FRAC / 501) ** 0.5


def test_what_is_not_stated_keeps_no_condition_apart() -> None:
    assert width_ratio([run()], (None, *AT[1:])) == width_ratio([run()], AT)


def test_runs_of_another_figure_bear_on_pace_but_not_on_first_tokens() -> None:
    runs = [run(), run(metric="ttft_mean_ms")]
    assert own_figures(runs, "c", "output_tokens_per_s") == [runs[0]]
    assert own_figures(runs, "c", "ttft_p99_ms") == [runs[1]]
    assert own_figures(runs, "other", "tpot_mean_ms") == []


def test_conditions_are_in_octaves() -> None:
    assert conditions_of(serving_setup(ROW)) == (4.0, 9.0, 7.0, 1.0, 1.0)
