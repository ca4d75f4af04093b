"""Requests from what was typed: fields by name, durations in seconds, own fields over both."""

from typing import NamedTuple

import pytest

from gpuplan.domain.cluster.answer import EtaRequest
from gpuplan.domain.requests.requests import FitRequest
from gpuplan.domain.requests.typed import request_of
from gpuplan.server.rest.bodies import FitBody


class Options(NamedTuple):
    n_accelerators: int = 4
    duration_h: float = 2.0
    at_h: float | None = None
    accelerator: str | None = "H100"
    output: str = "table"  # no field of the request


def test_fields_are_filled_by_name_and_in_base_units():
    asked = request_of(EtaRequest, Options(at_h=0.5))
    assert asked == EtaRequest(n_accelerators=4, duration_s=7200.0, at_s=1800.0, accelerator="H100")


def test_what_was_left_out_stays_unknown_and_own_fields_win():
    asked = request_of(EtaRequest, Options(), team="search", n_accelerators=1)
    assert (asked.at_s, asked.team, asked.n_accelerators) == (None, "search", 1)


def test_a_body_fills_a_request_like_options_and_a_field_of_no_noun_is_refused():
    body = FitBody(model="m", on="H100", tp=2, context_tokens=8192)
    assert request_of(FitRequest, body) == FitRequest(tp=2, context_tokens=8192)
    with pytest.raises(TypeError):
        request_of(FitRequest, body, colour="red")
