"""What the solver finds is what trying everything finds, on small problems drawn at random."""

import pytest

from fakes.selection import brute_force_usd, draw
from gpuplan.domain.selection import Conflict
from gpuplan.selection.choose import select
from gpuplan.selection.verify import breaches

N_PER_BLOCK = 150


@pytest.mark.parametrize("block", range(8))
def test_selection_is_what_trying_everything_finds(block):
    n_infeasible = 0
    for seed in range(block * N_PER_BLOCK, (block + 1) * N_PER_BLOCK):
        problem = draw(seed)
        usd = brute_force_usd(problem)
        found = select(problem)
        if usd is None:
            assert isinstance(found, Conflict), seed
            n_infeasible += 1
            continue
        assert found.worth_usd == pytest.approx(usd, abs=0.006), seed
        assert found.proof.status == "optimal"
        assert not breaches(problem, found)
    assert 0 < n_infeasible < N_PER_BLOCK
