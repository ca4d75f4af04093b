"""Tables that others wrote: read, or refused with the reason."""

import csv
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan import csv_rows
from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.hardware.software import Version
from gpuplan.errors import InputError


def written(folder: Path, content: bytes) -> Path:
    path = folder / "rows.csv"
    path.write_bytes(content)
    return path


def test_rows_by_column(tmp_path):
    path = written(tmp_path, b'\xef\xbb\xbfid,note\n1,"a, b"\n\n2,\n')
    assert read_csv_rows(path) == [{"id": "1", "note": "a, b"}, {"id": "2", "note": ""}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"id,id\n1,2\n", "twice"),
        (b"id\n\xff\xfe\n", "UTF-8"),
        (b"id\n\x00\n", "binary"),
        (b"id,b\n1\n1,2,3\n", "cells under 2 columns"),
        (b"PK\x03\x04\x00\x00", "binary"),
    ],
)
def test_faults_are_told(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        read_csv_rows(written(tmp_path, content))


def test_every_ragged_line_is_named(tmp_path):
    with pytest.raises(InputError) as refused:
        read_csv_rows(written(tmp_path, b"a,b\n1\n1,2\n1,2,3\n"))
    assert [problem.where for problem in refused.value.problems] == ["line 2", "line 4"]


def test_missing_and_huge_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="cannot be read"):
        read_csv_rows(tmp_path / "nothing.csv")
    monkeypatch.setattr(csv_rows, "MAX_BYTES", 3)
    with pytest.raises(InputError, match="bytes"):
        read_csv_rows(written(tmp_path, b"a,b\n"))


@given(st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_bytes_give_rows_or_a_reason(tmp_path, content):
    try:
        rows = read_csv_rows(written(tmp_path, content))
    except InputError:
        return
    assert all(len(row) == len(rows[0]) for row in rows)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_may_be_parted_as_spreadsheets_part_them(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    path.write_text(delimiter.join(["a", "b"]) + "\n" + delimiter.join(["1", "x"]) + "\n")
    assert read_csv_rows(path) == [{"a": "1", "b": "x"}]


def test_commas_are_decimal_points_where_semicolons_part_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c\n12,5;TP4, EP4;1.5\n")
    assert read_csv_rows(path) == [{"a": "12.5", "b": "TP4, EP4", "c": "1.5"}]


def test_other_readers_keep_their_limit(tmp_path):
    usual = csv.field_size_limit()
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    read_csv_rows(path)
    assert csv.field_size_limit() == usual


def test_packaged_tables_are_read_once():
    rows = csv_rows.packaged_rows("gpuplan.calibration", "data/measured/power_caps.csv")
    assert rows is csv_rows.packaged_rows("gpuplan.calibration", "data/measured/power_caps.csv")
    assert {"gpu", "cap_w", "slowdown"} <= set(rows[0])


def test_a_quoted_cell_keeps_its_line_break():
    text = 'a,b\n"one\ntwo",2\n\n3,4\n'
    assert csv_rows.csv_rows(text, source="x") == [
        {"a": "one\ntwo", "b": "2"},
        {"a": "3", "b": "4"},
    ]
    assert [n for n, _ in csv_rows.csv_cells(text, source="x")] == [1, 3, 5]


def test_a_given_delimiter_is_not_guessed():
    assert csv_rows.csv_rows("a;b,c\n1;2,3\n", source="x", delimiter=",") == [
        {"a;b": "1;2", "c": "3"}
    ]


class Board(NamedTuple):
    """A row of a table, with every kind of field that tables have."""

    name: str
    n_slots: int
    price_usd: float | None
    words: tuple[str, ...]
    sizes: frozenset[int]
    sold_on: date
    is_sure: bool
    cuda: Version | None
    note: str = "none"


ROW = {
    "name": "H100", "n_slots": "2", "price_usd": "", "words": "h100 hopper", "sizes": "80 94",
    "sold_on": "2022-10-01", "sure": "yes", "cuda": "11.8", "maker": "no field has this",
}  # fmt: skip


def test_a_noun_has_the_cells_of_its_fields_read_by_their_types():
    made = csv_rows.noun_from(Board, ROW)
    assert made == Board(
        name="H100",
        n_slots=2,
        price_usd=None,
        words=("h100", "hopper"),
        sizes=frozenset({80, 94}),
        sold_on=date(2022, 10, 1),
        is_sure=True,
        cuda=Version.read("11.8"),
    )
    assert isinstance(made.n_slots, int)
    assert csv_rows.noun_from(Board, ROW | {"price_usd": "30000"}).price_usd == 30_000.0


def test_fields_that_the_caller_works_out_win():
    assert csv_rows.noun_from(Board, ROW, name="H200", note="ours")[::8] == ("H200", "ours")


def test_cells_that_are_no_numbers_and_columns_that_lack_are_errors():
    with pytest.raises(ValueError, match="two"):
        csv_rows.noun_from(Board, ROW | {"n_slots": "two"})
    with pytest.raises(TypeError, match="name"):
        csv_rows.noun_from(Board, {k: v for k, v in ROW.items() if k != "name"})
