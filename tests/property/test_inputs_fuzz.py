"""Whatever a file holds: a Scenario or an InputError, the same each time, nothing else."""

import copy
import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fakes.scenarios import read_scenario_text
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving
from gpuplan.errors import InputError
from gpuplan.inputs.documents.document import Document
from gpuplan.inputs.documents.yaml_reader import read_yaml, read_yaml_text
from gpuplan.inputs.scenario.read import read_scenario

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))
SOUND = [read_yaml(path).data for path in EXAMPLES]
KEYS = sorted({key for data in SOUND for key in str(data).replace("'", " ").split() if "_" in key})

names = st.one_of(
    st.sampled_from(["name", "workloads", "kind", "demand", "slo", "model", "low", "<<", "no", ""]),
    st.sampled_from(KEYS),
    st.text(max_size=12),
)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 1, 1e-320, 1e308, -1e308, 1e24, 1e25, 10**39, 10**400, 0.5, 168]),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=20), names)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)
quick = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome(text: str) -> Scenario | str:
    """The scenario, or the words of the refusal; any other end is a failure of the test."""
    result = attempt(lambda: read_scenario_text(text, name="s.yaml"))
    if isinstance(result, Scenario):
        assert_finite(result)
        return result
    assert isinstance(result, InputError)
    assert result.problems
    assert all(p.where and p.what and p.fix for p in result.problems)
    assert all(part.isprintable() for p in result.problems for part in p)
    assert result.exit_code == 2
    return str(result)


def attempt(read: Callable[[], object]) -> object:
    try:
        return read()
    except InputError as error:
        return error


def assert_finite(value: Any) -> None:
    if isinstance(value, float):
        assert math.isfinite(value)
    elif is_dataclass(value):
        for field in fields(value):
            assert_finite(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            assert_finite(item)


@quick
@given(st.binary(max_size=400))
@example(b"\xff\xfea\x00")
@example(b"a: \xe9")
@example(b"\xef\xbb\xbfname: x")
@example(b"a: !!python/object/apply:os.system ['true']")
@example(b"--- \n--- \n")
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(raw)
    result = attempt(lambda: read_scenario(path))
    assert isinstance(result, Scenario | InputError)


@quick
@given(st.text(alphabet=st.sampled_from("ab:- \n\t{}[],&*!|>'\"#%@`?<=~.0123x_\\/é\u2028\ud800"),
               max_size=120))  # fmt: skip
def test_any_text_in_the_letters_of_yaml(text: str) -> None:
    document = attempt(lambda: read_yaml_text(text, name="s.yaml"))
    if isinstance(document, Document):
        json.dumps(document.data, allow_nan=False)
        assert document.line_of(()) is not None
    outcome(text)


@quick
@given(values)
def test_any_structure(value: Any) -> None:
    outcome(yaml.safe_dump(value, allow_unicode=True))
    outcome(json.dumps(value))


@quick
@given(st.dictionaries(names, values, max_size=6), st.sampled_from(SOUND))
def test_any_keys_beside_sound_ones(extra: dict[str, Any], data: Any) -> None:
    outcome(json.dumps({**data, **extra}))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        found.append((value, key))
        found += places(item)
    return found


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A sound scenario with up to three keys dropped, renamed, or given another value."""
    data = copy.deepcopy(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(1, 3))):
        found = places(data)
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        action = draw(st.sampled_from(["drop", "rename", "replace", "number", "wrap", "twin"]))
        _mutate(draw, container, key, action=action)
    return data


def _mutate(draw: st.DrawFn, container: Any, key: Any, *, action: str) -> None:
    if action == "drop":
        del container[key]
    elif action == "rename" and isinstance(container, dict):
        container[draw(names)] = container.pop(key)
    elif action == "number":
        container[key] = draw(numbers)
    elif action == "wrap":
        container[key] = draw(st.sampled_from([[container[key]], {"mid": container[key]}]))
    elif action == "twin" and isinstance(container, list):
        container.append(container[key])
    else:
        container[key] = draw(values)


@settings(quick, max_examples=600)
@given(mutants())
def test_any_mutant_of_a_sound_scenario(data: Any) -> None:
    text = json.dumps(data, indent=1)
    first = outcome(text)
    assert outcome(text) == first
    # A refusal names the line that it is about.
    if isinstance(first, str):
        assert all(line.startswith("  s.yaml:") for line in first.splitlines()[1:])


def sound_numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


@quick
@given(
    users=sound_numbers(1, 1e9),
    active=sound_numbers(1e-6, 1),
    rate=sound_numbers(1e-3, 1e4),
    lengths=st.tuples(sound_numbers(1, 1e6), sound_numbers(2, 1e6)),
    ttft_ms=sound_numbers(1, 1e6),
    ratio=sound_numbers(1, 100),
)
def test_a_sound_scenario_is_read_as_written(
    users: float, active: float, rate: float, lengths: tuple[float, float], ttft_ms: float,
    ratio: float,
) -> None:  # fmt: skip
    data = {
        "name": "x",
        "workloads": [
            {
                "name": "w",
                "kind": "online_inference",
                "model": "m",
                "demand": {
                    "users": users, "active_frac": active, "requests_per_user_per_h": rate,
                    "peak_to_mean": ratio,
                },
                "request": {"input_tokens": lengths[0], "output_tokens": lengths[1]},
                "slo": {"ttft_p95_ms": ttft_ms},
            }
        ],
    }  # fmt: skip
    read = outcome(yaml.safe_dump(data))
    assert isinstance(read, Scenario)
    work = read.workloads[0].work
    assert isinstance(work, Serving)
    peak = work.arrivals.peak_requests_per_s
    assert peak == pytest.approx(users * active * rate / 3600)
    assert work.arrivals.mean_requests_per_s == pytest.approx(users * active * rate / 3600 / ratio)
    assert work.request.input.mean_tokens == lengths[0]
    assert work.request.output.mean_tokens == lengths[1]
    assert work.slo.limit_s("ttft", "p95") == pytest.approx(ttft_ms / 1000)
    # YAML and JSON say the same.
    assert outcome(json.dumps(data)) == read


@quick
@given(st.recursive(
    st.one_of(st.booleans(), st.integers(-10**15, 10**15), st.text(max_size=10),
              st.floats(allow_nan=False, allow_infinity=False), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(min_size=1, max_size=8).filter(str.strip), inner, max_size=4)),
    max_leaves=20,
))  # fmt: skip
def test_the_reader_reads_what_json_says(value: Any) -> None:
    text = json.dumps([value])
    # Lone surrogates and C0 characters are text to JSON and not to YAML: refused, not changed.
    try:
        assert read_yaml_text(text, name="x").data == [value]
    except InputError:
        assert "\\u" in text or "\x7f" in text
