"""Which column holds what: as typed, as files name it, or a refusal that shows the columns."""

from pathlib import Path

import pytest

from gpuplan.domain.traffic.trace import ColumnMap
from gpuplan.errors import InputError
from gpuplan.inputs.traces.columns import (
    column_map,
    columns_note,
    columns_of,
    columns_taken,
    find,
    plain,
)

PATH = Path("trace.csv")
MAP = ColumnMap(arrive="ts", input_tokens="in", output_tokens="out", time_unit="ms")


def test_a_typed_map_is_read():
    assert column_map("arrive=ts, input=in ,output=out,unit=ms") == MAP
    assert columns_taken(MAP) == {
        "arrive": "ts",
        "input": "in",
        "output": "out",
        "session": None,
        "priority": None,
        "max": None,
    }
    note = "columns taken: time = ts, input = in, output = out, session = none, priority = none"
    assert columns_note(MAP) == note


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "nothing is mapped"),
        ("arrive", "got 'arrive'"),
        ("arrive=", "got 'arrive='"),
        ("when=ts", "got 'when=ts'"),
        ("arrive=a,arrive=b", "arrive is given twice"),
        ("arrive=a,unit=weeks", "unit is 'weeks'"),
    ],
)
def test_unclear_maps_are_refused(text, what):
    with pytest.raises(InputError, match=what):
        column_map(text)


def test_all_faults_of_a_map_come_at_once():
    with pytest.raises(InputError) as caught:
        column_map("when=ts,unit=weeks,input")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["Timestamp", "ISL", "OSL"], ("Timestamp", "ISL", "OSL")),
        (["start time", "Prompt-Tokens", "completion.tokens"],
         ("start time", "Prompt-Tokens", "completion.tokens")),
        (["time", "arrival", "input_len", "output_len"], ("arrival", "input_len", "output_len")),
        (["input_tokens", "output_tokens"], (None, "input_tokens", "output_tokens")),
    ],
)  # fmt: skip
def test_names_that_files_use_are_known(names, wanted):
    found = columns_of(PATH, names, None)
    assert (found.arrive, found.input_tokens, found.output_tokens) == wanted


def test_case_and_gaps_do_not_matter_and_the_first_wanted_name_wins():
    assert plain(" Session-ID ") == "session_id"
    assert find(["B", "a"], ["a", "b"]) == "a"
    assert find(["x"], ["a", "b"]) is None


def test_what_is_missing_is_named_with_what_there_is():
    with pytest.raises(InputError) as caught:
        columns_of(PATH, ["when", "chars"], None)
    problems = [str(problem) for problem in caught.value.problems]
    assert len(problems) == 2
    assert "no column is known to hold input tokens" in problems[0]
    assert "--columns output=COLUMN; the file has when, chars" in problems[1]


def test_a_mapped_column_must_be_there():
    names = ["ts", "in", "out"]
    assert columns_of(PATH, names, MAP) is MAP
    wrong = ColumnMap(arrive="tss", input_tokens="in", output_tokens="zzz")
    with pytest.raises(InputError) as caught:
        columns_of(PATH, names, wrong)
    problems = [str(problem) for problem in caught.value.problems]
    assert "has no column 'tss' for arrive; did you mean ts?" in problems[0]
    assert "has no column 'zzz' for output; map one with" in problems[1]
    empty = ColumnMap(arrive=None, input_tokens=None, output_tokens="out")
    with pytest.raises(InputError, match="neither time nor length"):
        columns_of(PATH, names, empty)
