"""Sliding windows: fit, predict, plan and simulate hold as many sequences, for every family."""

from math import ceil

import pytest

from gpuplan import api
from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.domain.requests.requests import FitRequest
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import InputError
from gpuplan.performance.memory.groups import has_windows
from gpuplan.studies.replay.replicas import prepared

BLOCK = 16
CONTEXTS = (1_000, 8_192, 40_000)


def families():
    """One model of every mix of layers with a window."""
    found = {}
    for name in models_in_catalog():
        model = find_model(name)
        if has_windows(model) and model.max_context_tokens:
            found.setdefault(tuple(model.caches()), name)
    return sorted(found.values())


def blocks_of(group, n_tokens):
    """Blocks that a sequence holds of a group: its whole length, or what its window can touch."""
    n_whole = ceil(n_tokens / BLOCK)
    return n_whole if group.kind == "full" else min(n_whole, ceil(group.tokens / BLOCK) + 1)


@pytest.mark.parametrize("name", families())
def test_every_verb_holds_as_many_sequences(name):
    counted = 0
    for n_tokens in (n for n in CONTEXTS if n <= find_model(name).max_context_tokens):
        requests = requests_of([0.0, 1.0], [n_tokens - 100] * 2, [100] * 2)
        for n in (1, 8):
            on = f"{n}xB300"
            try:
                fit = api.fit(name, on, FitRequest(tp=n, context_tokens=n_tokens))
                if fit.max_concurrency < 1:
                    continue
                ready = prepared(name, on, requests, SimulateRequest(tp=n))
            except InputError:
                continue  # heads that so many ranks do not divide
            limits = ready.fleet.limits
            pool = limits.admission.blocks.hybrid
            n_blocks, each = limits.n_blocks, ceil(n_tokens / BLOCK)
            if pool is not None:
                n_blocks, each = pool.n_blocks, sum(blocks_of(g, n_tokens) for g in pool.groups)
            # One block is in memory and never handed out.
            assert fit.max_concurrency == (n_blocks + 1) // each
            counted += 1
    assert counted


def test_there_are_families_to_compare():
    assert len(families()) > 10
