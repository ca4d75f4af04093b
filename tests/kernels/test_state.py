"""What kernels look up instead of counting: blocks of a stretch of steps, the line that rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.arrays import engine_state, refusals_of
from gpuplan.simulation.serving.kernels.engine import lists, state
from gpuplan.simulation.serving.kernels.engine.cost import N_LINES, SOLE
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, fleet_of, limits_of, stream_of

count_phase, blocks_between = (
    getattr(f, "py_func", f) for f in (lists.count_phase, lists.blocks_between)
)


@given(
    bits=st.integers(0, 5),
    offsets=st.lists(st.integers(-1000, 1000), max_size=12),
    n_gone=st.integers(0, 12),
    step=st.integers(1001, 3000),
    k=st.integers(0, 100),
)
def test_blocks_of_a_stretch_of_steps_are_counted_one_by_one(
    bits: int, offsets: list[int], n_gone: int, step: int, k: int
):
    size = 1 << bits
    scalar = np.zeros(state.PHASES + size, dtype=np.int64)
    limit = np.zeros(state.N_LIMITS, dtype=np.int64)
    limit[state.BLOCK_BITS] = bits
    for offset in offsets:
        count_phase(scalar, limit, offset, 1)
    for offset in offsets[:n_gone]:
        count_phase(scalar, limit, offset, -1)
    left = offsets[n_gone:]
    scalar[state.N_DECODES] = len(left)
    # A decode with c tokens needs a block where (c - 1) mod size is 0.
    expected = sum((o + t - 1) % size == 0 for o in left for t in range(step, step + k))
    assert blocks_between(scalar, limit, step, k) == expected


@pytest.mark.parametrize("seed", range(20))
def test_a_sole_line_is_below_no_other_at_any_context(seed: int):
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, 5)
    limits = limits_of(draw, requests)
    table = bent_table(draw, limits) if seed % 2 else fleet_of(limits).table
    sim = engine_state(requests, Fleet(limits=limits, table=table), 60.0)
    lines, slopes = sim.lines[0], sim.slopes[0]
    for regime, n in np.ndindex(lines.shape[:2]):
        sole = lines[regime, n, SOLE]
        for context in (0, 1, 1000, 10**6, 10**8):
            values = [
                int(fixed) + int(slope) * context
                for fixed, slope in zip(lines[regime, n, :N_LINES], slopes[regime], strict=True)
            ]
            assert sole < 0 or values[sole] == max(values)
    if seed % 2 == 0:
        assert (lines[..., SOLE] >= 0).any()


@pytest.mark.parametrize("n_most", [None, 47, 48])
def test_the_short_way_to_refuse_nobody_refuses_as_the_long_one(n_most: int | None):
    limits = EngineLimits(
        max_batch_tokens=64, max_sequences=4, n_blocks=3, block_tokens=16, max_context_tokens=n_most
    )
    most = 49 if n_most is None else n_most
    fits = requests_of([0.0, 1.0], [1, most - 1], [1, 1])
    assert len(refusals_of(fits, limits).accepted) == 2
    one_more = requests_of([0.0, 1.0], [1, most], [1, 1])
    assert refusals_of(one_more, limits).accepted.tolist() == [0]
    assert simulate_serving(fits, fleet_of(limits)).n_completed == 2
