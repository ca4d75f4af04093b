"""No configuration ends in a traceback: it is read, or refused with reasons."""

import json
from importlib.resources import files

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.catalog.architectures.read import read_model
from gpuplan.domain.model.network import Model
from gpuplan.errors import InputError

LINES = files("gpuplan.catalog").joinpath("data/models.jsonl").read_text("utf-8").splitlines()
SMALL = [line for line in LINES if len(line) < 2500]
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20),
    st.lists(st.one_of(st.integers(-3, 3), st.text(max_size=3), st.none()), max_size=8),
    st.dictionaries(st.text(max_size=5), st.integers(-2, 2), max_size=3),
)  # fmt: skip


def _paths(values: dict[str, object], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in values.items():
        found.append((*before, name))
        if isinstance(value, dict):
            found += _paths(value, (*before, name))
    return found


@st.composite
def spoiled(draw):
    config = json.loads(draw(st.sampled_from(SMALL)))["config"]
    for _ in range(draw(st.integers(1, 3))):
        *before, last = draw(st.sampled_from(_paths(config)))
        place = config
        for name in before:
            place = place[name] if isinstance(place.get(name), dict) else place
        if draw(st.booleans()):
            place[last] = draw(ODD)
        else:
            place.pop(last, None)
    return config


def _read(config: dict[str, object]) -> Model | None:
    """The model, or None where the configuration is refused with reasons."""
    try:
        return read_model(config, name="spoiled")
    except InputError as error:
        return None if error.problems else pytest.fail("refused without a reason")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoiled())
def test_a_spoiled_configuration_is_read_or_refused(config):
    model = _read(config)
    if model is not None:
        assert model.n_params >= model.n_active_params >= 0
        assert model.kv_bytes_per_token() >= 0
        assert model.forward_flop_per_token(100) >= 0


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=12), ODD, max_size=8))
def test_garbage_is_refused(config):
    assert _read(config) is None
