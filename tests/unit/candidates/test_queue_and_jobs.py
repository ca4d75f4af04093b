"""Formulas where nothing is simulated: jobs with a deadline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.candidates.jobs import Deadline, fewest_for, part_of_node, wall_s, whole_nodes


@given(
    work=st.floats(1e3, 1e9), deadline=st.floats(1e3, 1e6), node=st.sampled_from([1, 4, 8, 72]),
    loss=st.floats(0.0, 1e-4),
)  # fmt: skip
def test_fewest_equals_a_scan(work, deadline, node, loss):
    def useful(n):
        return max(0.0, 1.0 - loss * n)

    found = fewest_for(
        Deadline(
            accelerator_s=work, deadline_s=deadline, n_per_node=node, n_least=1, goodput_at=useful
        )
    )
    counts = range(node, 40_000, node)
    scan = next(
        (n for n in counts if (t := wall_s(work, n, useful)) and t <= deadline * (1 + 1e-9)), None
    )
    if scan is not None:
        assert found == scan
    elif found is not None:
        assert found >= counts[-1]
    if found is not None:
        assert found % node == 0


def test_unknown_goodput_takes_nothing_off():
    assert wall_s(100.0, 4, lambda n: None) == 25.0
    assert (
        fewest_for(
            Deadline(
                accelerator_s=100.0,
                deadline_s=10.0,
                n_per_node=8,
                n_least=1,
                goodput_at=lambda n: None,
            )
        )
        == 16
    )


def test_memory_sets_a_floor():
    found = fewest_for(
        Deadline(
            accelerator_s=1.0, deadline_s=1e9, n_per_node=8, n_least=30, goodput_at=lambda n: None
        )
    )
    assert found == 32
    assert whole_nodes(0.1, 8) == 8


@pytest.mark.parametrize(
    ("hours", "n"), [(1, 1), (9, 1), (11, 2), (39, 4), (41, None), (200, None)]
)
def test_a_short_run_takes_a_part_of_a_node(hours, n):
    """Ten hours are allowed: so many accelerator-hours ask for 1, 2 or 4 of 8, or a whole node."""
    found = part_of_node(
        Deadline(
            accelerator_s=hours * 3600.0,
            deadline_s=10 * 3600.0,
            n_per_node=8,
            n_least=1,
            goodput_at=lambda _: None,
        )
    )
    assert found == n


def test_states_that_need_more_than_a_part_take_more():
    found = part_of_node(
        Deadline(
            accelerator_s=60.0,
            deadline_s=3600.0,
            n_per_node=8,
            n_least=3,
            goodput_at=lambda _: None,
        )
    )
    assert found == 4
