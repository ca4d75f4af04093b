"""Tables in our own columns, and what users give beside outputs that do not say all."""

import pytest

from gpuplan.calibration.runs.detect import MOST_BYTES, read_runs
from gpuplan.calibration.runs.fields import COLUMNS
from gpuplan.calibration.runs.given import assumptions, check_given, split_count, with_given
from gpuplan.errors import InputError

HEAD = "model,accelerator,engine,regime,batch,input_tokens,output_tokens,measured_tpot_mean_ms"
TABLE = f"{HEAD}\nQwen/Qwen3-8B,H100,vLLM,fixed_concurrency,8,1000,200,9.5\n"


def read(text):
    return read_runs(text.encode(), "folder/my_runs.csv")


def given_rows(text, given):
    return with_given(read(text), given, where="my_runs.csv", lengths_known={})


def test_row_has_every_column():
    (row,) = read(TABLE).rows
    assert tuple(row) == COLUMNS
    assert row["id"] == "my_runs.csv#1"
    assert row["measured_tpot_mean_ms"] == "9.5"


def test_every_fault_is_told_at_once():
    text = TABLE.replace("measured_tpot_mean_ms", "measured_tpot_ms").replace(",1000,", ",-3,")
    with pytest.raises(InputError) as caught:
        read(text.replace("accelerator,", "gpu,"))
    told = str(caught.value)
    assert "did you mean measured_tpot" in told
    assert "no column 'accelerator'" in told
    assert "my_runs.csv:2: input_tokens: got '-3'" in told


@pytest.mark.parametrize("cell", ["nan", "inf", "-1", "0", "1e99", "fast"])
def test_numbers_are_numbers(cell):
    with pytest.raises(InputError, match=r"my_runs\.csv:2: measured_tpot_mean_ms"):
        read(TABLE.replace("9.5", cell))


def test_other_columns_are_told_not_read():
    found = read(TABLE.replace("model,", "operator,model,").replace("Qwen/", "ann,Qwen/"))
    assert any("'operator' is not read" in line for line in found.remarks)


@pytest.mark.parametrize(
    "content", [b"", b"   \n", b"\xff\xfe\x00", b"a\x00b", b"hello world", b"{", b"[1, 2]", b"{}"]
)
def test_what_is_no_output_is_refused(content):
    with pytest.raises(InputError) as caught:
        read_runs(content, "x")
    assert all(problem.fix for problem in caught.value.problems)


def test_deep_nesting_is_refused():
    with pytest.raises(InputError):
        read_runs(b"[" * 100_000, "x")
    with pytest.raises(InputError):
        read_runs(b'{"a":' * 100_000, "x")


def test_size_is_bounded():
    with pytest.raises(InputError, match="MiB"):
        read_runs(b"a" * (MOST_BYTES + 1), "x")


def test_a_table_says_for_itself_blanks_are_filled():
    rows, told = given_rows(TABLE, {"model": "other", "engine_version": "0.11"})
    assert rows[0]["model"] == "Qwen/Qwen3-8B"
    assert rows[0]["engine_version"] == "0.11"
    assert told == []


def test_what_is_missing_names_its_flag():
    text = TABLE.replace("vLLM", "").replace("fixed_concurrency,8", ",")
    with pytest.raises(InputError) as caught:
        given_rows(text, {})
    fixes = {problem.fix for problem in caught.value.problems}
    assert fixes == {"give --engine", "give --regime"}


@pytest.mark.parametrize(
    ("regime", "fix"), [("poisson", "give --rate"), ("static_batch", "give --concurrency")]
)
def test_a_kind_of_load_needs_its_number(regime, fix):
    with pytest.raises(InputError, match=fix):
        given_rows(TABLE.replace("fixed_concurrency,8", f"{regime},"), {})


def test_concurrency_makes_a_closed_loop_a_rate_an_open_one():
    text = TABLE.replace("fixed_concurrency,8", ",")
    rows, _ = given_rows(text, {"batch": "16"})
    assert (rows[0]["regime"], rows[0]["batch"]) == ("fixed_concurrency", "16")
    rows, _ = given_rows(text, {"request_rate_per_s": "3"})
    assert rows[0]["regime"] == "poisson"


def test_unknown_precision_is_not_taken_as_published():
    text = TABLE.replace(HEAD, f"{HEAD},precision").replace("9.5", "9.5,iq3_xxs")
    with pytest.raises(InputError, match="iq3_xxs"):
        given_rows(text, {})


def test_cache_precision_stands_beside_the_weights():
    rows, _ = given_rows(TABLE, {"precision": "fp8", "kv_precision": "bf16"})
    assert rows[0]["precision"] == "fp8, fp16 kv"
    assert not any("cache" in a.what for a in assumptions(rows))
    rows, _ = given_rows(TABLE, {"precision": "fp8"})
    assert any("cache" in a.what for a in assumptions(rows))


def test_count_before_the_name():
    assert split_count({"accelerator": "8xH100"}) == {"n_accelerators": "8", "accelerator": "H100"}
    assert split_count({"accelerator": "H100"}) == {"accelerator": "H100"}


def test_conditions_that_cannot_be_are_refused():
    with pytest.raises(InputError) as caught:
        check_given({"colour": "red", "tp": "two", "kv_precision": "int3"})
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "given",
    [{"tp": "8", "n_accelerators": "4"}, {"input_tokens": "1e12"}, {"request_rate_per_s": "1e9"}],
)
def test_numbers_that_no_run_has_are_refused(given):
    text = TABLE.replace("8,1000", "8,")
    with pytest.raises(InputError):
        given_rows(text, {"input_tokens": "10", **given})


def test_tensor_parallel_says_how_many_accelerators():
    rows, _ = given_rows(TABLE, {"tp": "4", "pp": "2"})
    assert rows[0]["n_accelerators"] == "8"
