"""Unquoted words: read alike by everyone, or refused."""

import pytest

from gpuplan.inputs.documents.scalars import MAX_NUMBER_CHARS, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("-5", -5), ("+5", 5), ("0", 0), ("1_000_000", 1_000_000), ("2e12", 2e12),
        ("2.0e+12", 2e12), (".5", 0.5), ("5.", 5.0), ("1.5E-3", 0.0015), ("true", True),
        ("False", False), ("", None), ("~", None), ("null", None), ("fp8", "fp8"),
        ("2026-11-15", "2026-11-15"), ("1.2.3", "1.2.3"), ("8xH100", "8xH100"), ("A+B", "A+B"),
        ("y", "y"), ("n", "n"), ("1_0", "1_0"),
    ],
)  # fmt: skip
def test_plain_words(text: str, value: object) -> None:
    found = resolve(text)
    assert not found.what
    assert found.value == value
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "yes", "no", "NO", "on", "Off", "1:30", "190:20:30", "010", "0x1F", "0b101", "0o17",
        ".nan", ".inf", "-.INF", "NaN", "Infinity", "inf", "1e999", "-1e999", "9" * 5000,
        "0." + "3" * 100,
    ],
)  # fmt: skip
def test_words_that_readers_disagree_on_are_refused(text: str) -> None:
    found = resolve(text)
    assert found.value is None
    assert found.what
    assert found.fix


def test_a_number_at_the_length_bound_is_read() -> None:
    assert resolve("9" * MAX_NUMBER_CHARS).value == int("9" * MAX_NUMBER_CHARS)
    assert resolve("9" * (MAX_NUMBER_CHARS + 1)).what


def test_sexagesimal_message_says_what_to_write() -> None:
    assert "90 for 1:30" in resolve("1:30").fix
