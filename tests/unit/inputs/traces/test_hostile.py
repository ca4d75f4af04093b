"""Whatever a file holds: a trace with every oddity counted, or an InputError; nothing else."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpuplan.domain.traffic.trace import TraceRead
from gpuplan.errors import InputError
from gpuplan.inputs.traces import source
from gpuplan.inputs.traces.columns import column_map
from gpuplan.inputs.traces.read import read_trace

HEADER = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
GOOD = HEADER + "".join(f"{i},{i + 1},3\n" for i in range(30))


@pytest.fixture
def read(tmp_path):
    def read_text(text, **query):
        path = tmp_path / "trace"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_trace(path, **query)

    return read_text


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("5,1", "2 cells under 3 columns"),
        ("5,1,1,1", "4 cells under 3 columns"),
        ("5,,1", "input tokens is missing"),
        ("5,-1,1", "input tokens is -1"),
        ("5,1.5,1", "input tokens is 1.5"),
        ("5,1,9999999999", "output tokens is 9999999999"),
        ("nan,1,1", "time is nan"),
        ("inf,1,1", "time is inf"),
        ("soon,1,1", "time is soon"),
        ("5,1,\x1b[31m", "output tokens is \\x1b[31m"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens", "input tokens is num_prefill"),
        ("5,\ufffd,1", "input tokens"),
    ],
)
def test_a_bad_line_is_counted_and_shown_with_its_number(read, line, word):
    found = read(GOOD + line + "\n")
    assert len(found.requests) == 30
    assert found.n_bad == 1
    assert found.bad[0].where == "line 32"
    assert word in found.bad[0].what


def test_bad_lines_of_json(read):
    good = json.dumps({"timestamp": 1, "input_length": 2, "output_length": 3, "hash_ids": [1]})
    lines = ["{", "[1]", '"x"', '{"timestamp": 5}', good.replace("[1]", '["a"]'), good[:30],
             good.replace("2", "true"), "[" * 100_000,
             good.replace("1,", "9" * 5000 + ",")]  # fmt: skip
    found = read("\n".join([good] * 20 + lines))
    assert len(found.requests) == 20
    assert found.n_bad == len(lines)
    assert [problem.where for problem in found.bad[:2]] == ["line 21", "line 22"]


def test_only_the_first_bad_lines_are_kept_and_all_are_counted(read):
    found = read(GOOD + "x,1,1\n" * 29)
    assert found.n_bad == 29
    assert len(found.bad) == 20


def test_more_bad_than_good_is_no_trace(read):
    with pytest.raises(InputError, match="31 lines are bad, 30 are good"):
        read(GOOD + "x,1,1\n" * 31)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"   \n \n", "empty"),
        (HEADER.encode(), "holds no requests"),
        (b"0.1,5,6\n0.2,5,6\n", "no header"),
        (b"a,a,b\n1,2,3\n", "twice"),
        (b"x,y\n1,2\n", "no column is known"),
        (b"\x00\x01\x02" * 50, "no column is known|binary"),
        (HEADER.encode() + b"1,\x00,3\n", "binary"),
        ("arrived_at,b\n1,2".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04abcd", "zip"),
        (b"\x28\xb5\x2f\xfdabcd", "zstd"),
        (gzip.compress(b"a,b\n" * 1000, mtime=0)[:40], "to its end"),
        (b"\x1f\x8bnot gzip at all", "to its end"),
        (b"[1, 2", "no JSON"),
        (b"[]", "JSON lines"),
        (b"{}", "empty object|no rows|begins"),
        (b"{" * 200_000, "nests|no JSON"),
        (b"PAR1", "Parquet"),
    ],
)
def test_what_is_no_trace_is_refused(read, content, word):
    with pytest.raises(InputError, match=word):
        read(content)


def test_paths_that_are_no_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="folder"):
        read_trace(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(Path("a\x00b"))


def test_a_line_without_end_is_refused_before_memory_is(read, monkeypatch):
    monkeypatch.setattr(source, "MAX_LINE_CHARS", 1000)
    with pytest.raises(InputError, match="more than 1,000"):
        read(GOOD + "1" * 5000)


def test_an_open_quote_does_not_swallow_the_file_in_silence(read):
    found = read(GOOD + '5,"1,1\n' + "7,1,1\n")
    assert len(found.requests) == 30
    assert found.n_bad >= 1


def test_one_request_is_a_trace(read):
    assert len(read(HEADER + "5,1,1\n").requests) == 1


def test_rows_out_of_order_are_sorted_and_told(read):
    found = read(HEADER + "9,1,1\n2,2,2\n5,3,3\n")
    assert found.requests.input_tokens.tolist() == [2, 3, 1]
    assert found.line.tolist() == [3, 4, 2]
    assert any("out of order: 1" in sentence for sentence in found.remarks)


def test_a_clock_that_starts_again_is_continued_and_told(read):
    once = "".join(f"{i},{i + 1},1\n" for i in range(100))
    found = read(HEADER + once + once)
    assert found.requests.arrive_s.tolist() == list(range(200))
    assert any("starts again at line 102" in sentence for sentence in found.remarks)


def test_negative_times_count_from_the_first(read):
    found = read(HEADER + "-5,1,1\n-3,1,1\n")
    assert found.requests.arrive_s.tolist() == [0.0, 2.0]
    assert any("time 0 is the first request, at -5" in sentence for sentence in found.remarks)


def test_several_runs_in_one_file_must_be_chosen_from(read):
    text = "run,arrival_s,input_tokens,output_tokens\na,1,1,1\nb,1,1,1\n"
    with pytest.raises(InputError, match="choose one with --where run=NAME: a, b"):
        read(text)


@pytest.mark.parametrize(
    "text", ["", "x", "arrive", "arrive=", "a=b", "arrive=a,arrive=b", "unit=h"]
)
def test_column_maps_that_are_unclear_are_refused(text):
    with pytest.raises(InputError):
        column_map(text)


def test_a_column_map_as_typed():
    found = column_map("arrive = ts, input=a b ,output=c,unit=ms")
    assert (found.arrive, found.input_tokens, found.time_unit) == ("ts", "a b", "ms")


lines = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["1,2,3", '{"timestamp":1,"input_length":2,"output_length":3,"hash_ids":[1]}']),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["timestamp", "input_length", "output_length", "hash_ids", "event",
                             "metadata", "metrics", "chat_id", "parent_chat_id", "benchmarks",
                             "requests", "input_lens", "output_lens", "start_times", "x"]),
            inner, max_size=5),
        max_leaves=8,
    ).map(json.dumps),
)  # fmt: skip


@given(head=st.sampled_from(["", HEADER, "TIMESTAMP,ContextTokens,GeneratedTokens\n"]),
       body=st.lists(lines, max_size=6), tail=st.binary(max_size=20))  # fmt: skip
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(head="", body=['{"timestamp": [], "input_length": {}, "output_length": 1}'], tail=b"")
@example(head="", body=['{"benchmarks": [3]}'], tail=b"")
@example(head="", body=['{"chat_id": {}, "parent_chat_id": [], "timestamp": 1, "input_length": 1,'
                        ' "output_length": 1, "hash_ids": []}'], tail=b"")  # fmt: skip
def test_any_bytes_give_a_trace_or_an_error(tmp_path_factory, head, body, tail):
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes((head + "\n".join(body)).encode("utf-8", "replace") + tail)
    found = read_or_problems(path)
    if isinstance(found, TraceRead):
        assert len(found.line) == len(found.requests) > 0
    else:
        assert found
        assert all(problem.what and problem.fix for problem in found)


def read_or_problems(path):
    try:
        return read_trace(path)
    except InputError as error:
        return error.problems


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_quotes_line_ends_blank_lines_and_comments_change_nothing(read, end, quote):
    rows = [f"{quote}{i}{quote},{quote}{i + 1}{quote},3" for i in range(50)]
    plain = read(GOOD.splitlines()[0] + "\n" + "\n".join(f"{i},{i + 1},3" for i in range(50)))
    found = read(end.join(["# made by hand", HEADER.strip(), *rows[:20], "", "# more", *rows[20:]]))
    assert found.requests.arrive_s.tolist() == plain.requests.arrive_s.tolist()
    assert found.requests.input_tokens.tolist() == plain.requests.input_tokens.tolist()
    assert found.line.tolist() == [*range(3, 23), *range(25, 55)]
    assert found.n_bad == 0
    assert "2 comment lines" in found.remarks


def test_a_cell_may_hold_line_ends(read):
    text = 'arrival_s,input_tokens,output_tokens,prompt\n1,2,3,"a\nb, c"\n4,5,6,d\n'
    found = read(text)
    assert found.requests.input_tokens.tolist() == [2, 5]
    assert found.line.tolist() == [3, 4]


def test_blocks_of_lines_keep_their_numbers(read, monkeypatch):
    monkeypatch.setattr("gpuplan.inputs.traces.csv_trace.N_BLOCK_ROWS", 10)
    found = read(GOOD + "30,31\n" + "".join(f"{i},{i},3\n" for i in range(31, 60)))
    assert found.bad[0].where == "line 32"
    assert found.line.tolist() == [*range(2, 32), *range(33, 62)]
