"""Bisection finds what a scan finds, in few trials."""

from hypothesis import given
from hypothesis import strategies as st

from gpuplan.candidates.search import largest_load, smallest_that_holds, staffing_bracket


@given(answer=st.integers(1, 400), low=st.integers(1, 400), width=st.integers(0, 50))
def test_bisection_equals_a_scan(answer, low, width):
    tried = []

    def holds(n):
        tried.append(n)
        return n >= answer

    found = smallest_that_holds(holds, low, low + width, most=1000)
    assert found == next(n for n in range(1, 1001) if n >= answer)
    assert found in tried
    assert found == 1 or found - 1 in tried  # one fewer was tried, and failed


def test_no_number_holds():
    assert smallest_that_holds(lambda n: False, 3, 5, most=64) is None


@given(fluid=st.floats(0.01, 500))
def test_bracket_begins_at_what_the_load_needs(fluid):
    low, high = staffing_bracket(fluid)
    assert low >= fluid - 1e-6
    assert low - 1 < fluid or low == 1
    assert high >= low


@given(edge=st.floats(1.0, 99.0))
def test_largest_load_is_found_within_its_tolerance(edge):
    found = largest_load(lambda load: load <= edge, known=0.5, limit=100.0, rel_tol=0.01)
    assert found <= edge
    assert found >= edge * 0.98 - 0.01 * 1.02 * edge


def test_all_loads_hold():
    assert largest_load(lambda load: True, known=1.0, limit=9.0) == 9.0
