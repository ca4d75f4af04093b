"""Step times of one's own: a formula as typed, or a table of measured steps."""

import numpy as np
import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.step_times import read_step_table, read_step_times
from gpuplan.studies.inference.step_table import own_step_table

FORMULA = "step_s=0.008,token_s=2e-5,context_s=4e-8,pair_s=1e-9"


def written(folder, rows, head="tokens,step_s,context_tokens,prefill_pairs"):
    path = folder / "steps.csv"
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_a_formula_is_a_line_over_tokens():
    found = read_step_times(FORMULA)
    table = own_step_table(found, max_tokens=2048, max_sequences=4)
    assert table.token_device_s == pytest.approx(0.008 + 2e-5 * np.arange(2049))
    assert (found.context_s, found.pair_s) == (4e-8, 1e-9)
    assert (table.attention.decode_flop, table.attention.prefill_flop) == (4e-8, 1e-9)


@pytest.mark.parametrize(
    "text", ["step_s", "step_s=fast", "steps=1", "step_s=-1", "step_s=0", "step_s=inf"]
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError, match="--step-t"):
        read_step_times(text)


def test_a_log_of_the_formula_gives_it_back(tmp_path):
    draws = np.random.default_rng(1)
    tokens = draws.integers(1, 2000, 200)
    context, pairs = draws.integers(0, 100_000, 200), draws.integers(0, 2_000_000, 200)
    step_s = 0.008 + 2e-5 * tokens + 4e-8 * context + 1e-9 * pairs
    rows = zip(tokens, step_s, context, pairs, strict=True)
    found = read_step_times(str(written(tmp_path, rows)))
    assert found.context_s == pytest.approx(4e-8, rel=1e-6)
    assert found.pair_s == pytest.approx(1e-9, rel=1e-6)
    table = own_step_table(found, max_tokens=4000, max_sequences=1)
    assert table.token_device_s[[100, 1000, 4000]] == pytest.approx([0.01, 0.028, 0.088], rel=1e-5)


def test_a_table_of_tokens_alone_is_a_curve_with_repeats_averaged(tmp_path):
    path = written(tmp_path, [(1, 8.0), (1, 10.0), (101, 19.0)], head="tokens,step_ms")
    found = read_step_table(path)
    table = own_step_table(found, max_tokens=300, max_sequences=1)
    assert table.token_device_s[[0, 1, 51, 101]] == pytest.approx([0.009, 0.009, 0.014, 0.019])
    assert table.token_device_s[201] == pytest.approx(0.029)
    assert (found.context_s, found.pair_s) == (0.0, 0.0)


def test_noise_never_makes_attention_negative(tmp_path):
    rows = [(10, 0.02, 5000, 0), (10, 0.03, 1000, 0), (20, 0.04, 500, 0), (30, 0.05, 0, 0)]
    found = read_step_table(written(tmp_path, rows))
    assert found.context_s == 0.0
    assert (found.step_s >= 0.0).all()


@pytest.mark.parametrize(
    ("head", "row", "match"),
    [
        ("n,step_s", "1,2", "columns"),
        ("tokens,step_s", "1,fast", "numbers"),
        ("tokens,step_s", "1,-1", "below 0"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(tmp_path, head, row, match):
    path = tmp_path / "steps.csv"
    path.write_text(f"{head}\n{row}\n")
    with pytest.raises(InputError, match=match):
        read_step_table(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_step_table(tmp_path / "nothing.csv")


def test_a_table_of_ragged_lines_is_refused_by_line(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text("tokens,step_s\n1,0.01,7,8\n")
    with pytest.raises(InputError, match=r"steps\.csv:2: 4 cells under 2 columns"):
        read_step_table(path)


def test_rows_of_one_size_say_nothing_of_others(tmp_path):
    rows = [(64, 0.009, 0, 0), (64, 0.008, 0, 0)]
    with pytest.raises(InputError, match="of 64 tokens alone"):
        read_step_table(written(tmp_path, rows))
