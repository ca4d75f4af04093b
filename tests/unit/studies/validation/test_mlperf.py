"""Submissions to MLPerf Inference beside the rates we know."""

import pytest

from gpuplan.studies.validation.mlperf import language_model, predicted_submission
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


def test_language_models_have_the_rate_of_their_serving() -> None:
    given = {"model_benchmark": "mixtral-8x7b", "software": "TensorRT 10.2.0, CUDA 12.4"}
    rows = [
        row(**given, result="52000", result_units="Tokens/s"),
        row(**given, result="356", result_units="Samples/s"),
        row(**given, result="51000", result_units="Tokens/s", scenario="Server"),
    ]
    (tokens, samples, server), refused = predicted_rows(rows, predicted_submission)
    assert refused == []
    rate = tokens.predicted["result"].value
    assert rate == pytest.approx(52000, rel=0.25)
    assert samples.predicted["result"].value == pytest.approx(rate / 146)  # tokens of an answer
    assert 0.8 * rate < server.predicted["result"].value < rate


@pytest.mark.parametrize(
    ("benchmark", "model"),
    [
        ("llama2-70b-99.9", "llama-2-70b"),
        ("llama2-70b-interactive-99", "llama-2-70b"),
        ("llama3.1-405b", "llama-3.1-405b"),
        ("llama3_1-8b", "llama-3.1-8b"),
        ("gpt-oss-120b", "gpt-oss-120b"),
        ("bert-99", None),
        ("", None),
    ],
)
def test_benchmarks_name_their_language_model(benchmark: str, model: str | None) -> None:
    assert language_model(benchmark) == model


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
