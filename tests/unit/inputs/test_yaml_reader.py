"""The reader: plain values with lines, and a clear refusal of everything else."""

import contextlib
import json
import time
from pathlib import Path

import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.documents.document import Document, show_path
from gpuplan.inputs.documents.yaml_reader import (
    MAX_ALIASED_NODES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    read_yaml,
    read_yaml_text,
)


def read(text: str) -> Document:
    return read_yaml_text(text, name="s.yaml")


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    return str(caught.value)


def bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for last, this in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{this}: &{this} [{', '.join([f'*{last}'] * 9)}]")
    return "\n".join(lines)


def test_values_and_lines() -> None:
    document = read("a: 1\nb:\n  - c: two\n    d: 3.5\n  - [true, null]\n")
    assert document.data == {"a": 1, "b": [{"c": "two", "d": 3.5}, [True, None]]}
    assert document.line_of(("a",)) == 1
    assert document.line_of(("b",)) == 2
    assert document.line_of(("b", 0, "d")) == 4
    assert document.line_of(("b", 1, 0)) == 5
    assert document.line_of(("b", 0, "absent", "deeper")) == 3
    assert document.place(("b", 0, "d")) == "s.yaml:4: b[0].d"


def test_paths_are_shown_as_people_write_them() -> None:
    assert show_path(("workloads", 0, "slo", "ttft_p95_ms")) == "workloads[0].slo.ttft_p95_ms"
    assert show_path(()) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("a: 1\nb: 2\na: 3\n", "lines 1 and 3"),
        ("a: no\n", "true or false"),
        ("a:\n\t- b\n", "tab"),
        ("a: !!python/object/apply:os.system [ls]\n", "tag"),
        ("a: !mine 5\n", "tag"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("<<: {a: 1}\n", "merges"),
        ("? [a, b]\n: c\n", "key is a list"),
        ("? {a: b}\n: c\n", "key is a list or a mapping"),
        ("'': 1\n", "key is empty"),
        ("&a [*a]\n", "stands for nothing before it"),
        ("a: *nobody\n", "stands for nothing"),
        ("a: &x k\n*x : 1\n", "key is an alias"),
        ("a: [1, 2\n", "not YAML"),
        ("a: b: c\n", "not YAML"),
        ("a: \x01\n", "character"),
        ("a: '\ud800'\n", "character"),
        ("a: " + "9" * 5000, "5000 characters"),
        ("[" * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
        ("{a: " * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH}"),
        (f"[{'1,' * (MAX_NODES + 1)}]", f"more than {MAX_NODES}"),
        ("a: " + "x" * MAX_BYTES, "larger than 2 MB"),
    ],
)  # fmt: skip
def test_refusals_say_why(text: str, words: str) -> None:
    assert words in refusal(text)


def test_every_refusable_scalar_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read("a: no\nb: 1:30\nc: 010\nd: .nan\ne: 1\ne: 2\n")
    assert len(caught.value.problems) == 5
    assert caught.value.problems[2].where == "s.yaml:3: c"
    assert caught.value.exit_code == 2


def test_billion_laughs_costs_nothing() -> None:
    assert f"more than {MAX_ALIASED_NODES}" in refusal(bomb())


def test_a_few_aliases_are_fine_and_keep_their_lines() -> None:
    document = read("a: &x {k: 1}\nb: *x\n")
    assert document.data == {"a": {"k": 1}, "b": {"k": 1}}
    assert document.line_of(("b",)) == 2


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).data != []


def test_an_alias_cannot_smuggle_depth() -> None:
    deep = "[" * 30 + "]" * 30
    assert "deeper" in refusal(f"a: &x {deep}\nb: {'[' * 30}*x{']' * 30}\n")


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_is_read_as_it_is(indent: int | str | None) -> None:
    data = {"a": [1, 2.5e-7, True, None, "tab\there", "😀", 'q"\\/'], "no": {"b": "yes"}}
    assert read(json.dumps(data, indent=indent)).data == data
    assert read(json.dumps(data, indent=indent, ensure_ascii=False)).data == data


def test_json_without_numbers_is_refused() -> None:
    assert "finite" in refusal(json.dumps({"a": float("nan")}))
    assert "finite" in refusal(json.dumps({"a": float("inf")}))


def test_keys_stay_words() -> None:
    assert read("no: 1\n8: 2\n1:30: 3\n").data == {"no": 1, "8": 2, "1:30": 3}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("name: x".encode("utf-16"), "UTF-16"),
        ("name: x".encode("utf-16-le"), "zero byte"),
        ("name: x".encode("utf-32"), "UTF-32"),
        ("a: 1\nname: café".encode("latin-1"), ":2: byte 0xe9 is not UTF-8"),
        (b"\x7fELF\x00\x00", "zero byte"),
        (b"", "empty"),
    ],
)
def test_wrong_encodings(tmp_path: Path, raw: bytes, words: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        read_yaml(path)
    assert words in str(caught.value)


def test_a_utf8_mark_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes("name: café\n".encode("utf-8-sig"))
    assert read_yaml(path).data == {"name": "café"}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.yaml", Path("a\0b")):
        with pytest.raises(InputError, match="cannot be read"):
            read_yaml(path)


def test_a_huge_file_is_refused_before_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000_000)
    with pytest.raises(InputError, match="larger than 2 MB"):
        read_yaml(path)


@pytest.mark.parametrize(
    "text",
    [
        "{" + '"' + '\\"' * 900_000,
        "{" * 900_000,
        "\n".join(f"k{i}: &a{i} [1]" for i in range(40_000)),
        "a: " + "1:" * 900_000,
        "a: " + "0" * 1_900_000,
        "- " * 900_000,
        "&a " * 600_000,
        "'" * 1_900_000,
        "a: |\n" + " x\n" * 600_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_files_are_answered_at_once(text: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(InputError):
        read(text)
    assert time.process_time() - begin < 5.0


def test_messages_cannot_move_the_terminal() -> None:
    told = refusal('"\\e[2J\\u2028": 1\n"\\e[2J\\u2028": 2\n')
    assert "\x1b" not in told
    assert "\\x1b[2J\\u2028" in told
