"""The first change of a kind that fits is the one that is suggested."""

from dataclasses import replace

from fakes import models
from gpuplan.performance.memory.suggestions import Change, larger_than, that_fit
from gpuplan.units import GIB


def room(n):
    return None if n < 3 else float(n)


def test_the_first_that_fits_is_taken_and_no_more():
    changes = [Change(f"n {n}", f"--n {n}", n, "slow") for n in range(6)]
    [found] = that_fit(changes, room)
    assert (found.change, found.how, found.headroom_bytes, found.caveat) == (
        "n 3",
        "--n 3",
        3.0,
        "slow",
    )


def test_several_are_taken_where_several_are_wanted():
    changes = (Change(f"n {n}", "", n) for n in range(9))
    assert [found.headroom_bytes for found in that_fit(changes, room, n_most=2)] == [3.0, 4.0]
    assert next(changes).after == 5  # nothing beyond is tried


def test_nothing_fits_nothing_is_suggested():
    assert list(that_fit([Change("n 1", "", 1)], room)) == []


def test_larger_accelerators_come_smallest_first_and_without_cpus():
    here, big, bigger = (models.device(n * GIB) for n in (40, 60, 80))
    cpu = replace(
        bigger, form_factor="socket", memory=replace(bigger.memory, visible_bytes=500 * GIB)
    )
    assert cpu.is_cpu
    assert larger_than(here, [bigger, cpu, here, big]) == [big, bigger]
