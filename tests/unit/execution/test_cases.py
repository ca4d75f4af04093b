"""The number of workers changes the time, and nothing else."""

import os
import pickle

import pytest

from fakes.cases import fails, process, scaled
from gpuplan.errors import InputError
from gpuplan.execution.cases import map_cases


def test_answers_are_the_same_bytes_at_any_number_of_workers():
    cases = [7, 1, 300, 2, 5]
    alone = map_cases(scaled, cases, shared=1 / 3, n_workers=1)
    for n_workers in (2, 3):
        together = map_cases(scaled, cases, shared=1 / 3, n_workers=n_workers)
        assert pickle.dumps(together) == pickle.dumps(alone)
    assert [case for _, case in alone] == cases


def test_cases_go_to_other_processes_only_when_asked():
    assert set(map_cases(process, [1, 2], shared=None)) == {os.getpid()}
    assert os.getpid() not in map_cases(process, [1, 2], shared=None, n_workers=2)


def test_progress_is_told_and_errors_come_through():
    seen: list[int] = []
    map_cases(scaled, [1, 2, 3], shared=1.0, told=seen.append)
    assert seen == [1, 2, 3]
    assert map_cases(scaled, [], shared=1.0, n_workers=4) == []
    for n_workers in (1, 2):
        with pytest.raises(InputError, match="here: case 1; another"):
            map_cases(fails, [1, 2], shared=None, n_workers=n_workers)
    with pytest.raises(InputError, match="workers"):
        map_cases(scaled, [1], shared=1.0, n_workers=0)
