"""Tables of llama.cpp runs become rows of serving tables."""

import pytest

from gpuplan.inputs.llama_matrix import serving_rows


def row(**given: str) -> dict[str, str]:
    base = {"engine": "llama.cpp (May 2024)", "gpu": "4090 24GB", "model": "LLaMA 3 8B Q4_K_M",
            "phase": "decode", "tokens": "512", "tok_s": "130.58"}  # fmt: skip
    return base | given


def test_writing_is_a_batch_of_one_from_an_empty_context() -> None:
    (found,) = serving_rows([row()])
    assert found["regime"] == "static_batch"
    assert (found["input_tokens"], found["output_tokens"]) == ("1", "512")
    assert found["measured_output_tokens_per_s"] == "130.58"
    assert (found["accelerator"], found["model"], found["precision"]) == (
        "RTX 4090", "Llama-3-8B", "Q4_K_M",
    )  # fmt: skip


def test_reading_is_the_time_to_the_first_token() -> None:
    (found,) = serving_rows([row(phase="prefill", tokens="1024", tok_s="512")])
    assert float(found["measured_ttft_mean_ms"]) == pytest.approx(2000.0)


@pytest.mark.parametrize(
    ("text", "card", "n"),
    [
        ("3090 24GB * 6", "RTX 3090", "6"),
        ("RTX 6000 Ada 48GB * 4", "RTX 6000 Ada", "4"),
        ("A100 PCIe 80GB", "A100 PCIe 80GB", "1"),
        ("L40S 48GB", "L40S", "1"),
    ],
)
def test_cards_are_named_and_counted(text: str, card: str, n: str) -> None:
    (found,) = serving_rows([row(gpu=text)])
    assert (found["accelerator"], found["n_accelerators"], found["pp"]) == (card, n, n)


def test_runs_that_did_not_fit_have_no_rate() -> None:
    assert serving_rows([row(tok_s="")]) == []
