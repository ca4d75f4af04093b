"""Submissions to MLPerf Inference beside the rates we know."""

import pytest

from gpuplan.studies.validation.mlperf import predicted_submission
from gpuplan.studies.validation.report import predicted_rows


def row(**given: str) -> dict[str, str]:
    base = {"submission_id": "1", "model_benchmark": "resnet", "scenario": "Offline",
            "result": "700000", "accelerators_total": "8", "accelerator": "NVIDIA H100-SXM-80GB",
            "power_result": ""}  # fmt: skip
    return base | given


def test_boards_add_up() -> None:
    (eight, one), refused = predicted_rows(
        [row(), row(accelerators_total="1")], predicted_submission
    )
    assert refused == []
    assert eight.predicted["result"].value == pytest.approx(8 * one.predicted["result"].value)
    assert eight.measured == {"result": 700000.0}


def test_a_promised_latency_costs_rate_and_certainty() -> None:
    (offline, server), _ = predicted_rows([row(), row(scenario="Server")], predicted_submission)
    fast, slow = offline.predicted["result"], server.predicted["result"]
    assert slow.value < fast.value
    assert slow.high / slow.low > fast.high / fast.low


def test_a_board_never_submitted_has_a_wider_range() -> None:
    (known, new), _ = predicted_rows([row(), row(accelerator="B200")], predicted_submission)
    ratios = [found.predicted["result"].high / found.predicted["result"].low
              for found in (known, new)]  # fmt: skip
    assert ratios[0] < ratios[1]


@pytest.mark.parametrize(
    "given",
    [
        {"scenario": "SingleStream"},
        {"power_result": "5000"},
        {"accelerators_total": "0"},
        {"accelerator": "NVIDIA A100 (1x1g.10gb MIG)"},
        {"model_benchmark": "gptj-99"},
    ],
)
def test_what_is_no_rate_of_whole_boards_is_told(given: dict[str, str]) -> None:
    predicted, refused = predicted_rows([row(**given)], predicted_submission)
    assert predicted == []
    assert len(refused) == 1
