"""The number of workers changes the time, and nothing else."""

import os
import pickle
import sys
import threading
from collections.abc import Iterator

import pytest

from fakes.cases import fails, process, scaled
from gpuplan.errors import InputError
from gpuplan.execution.cases import map_cases, start_method


@pytest.fixture
def another_thread() -> Iterator[None]:
    """A thread that lives for as long as the test."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


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
    map_cases(scaled, [1, 2, 3], shared=1.0, on_progress=seen.append)
    assert seen == [1, 2, 3]
    assert map_cases(scaled, [], shared=1.0, n_workers=4) == []
    for n_workers in (1, 2):
        with pytest.raises(InputError, match="here: case 1; another"):
            map_cases(fails, [1, 2], shared=None, n_workers=n_workers)
    with pytest.raises(InputError, match="workers"):
        map_cases(scaled, [1], shared=1.0, n_workers=0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process is fresh")
def test_a_process_is_copied_only_where_no_other_thread_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert start_method() == "fork"
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert start_method() == "spawn"


@pytest.mark.usefixtures("another_thread")
def test_fresh_processes_give_the_same_bytes():
    assert start_method() == "spawn"
    cases = [7, 1, 300]
    alone = map_cases(scaled, cases, shared=1 / 3)
    assert pickle.dumps(map_cases(scaled, cases, shared=1 / 3, n_workers=2)) == pickle.dumps(alone)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_is_shared_reaches_copies_and_fresh_processes(
    monkeypatch: pytest.MonkeyPatch, n_threads: int
):
    monkeypatch.setattr(threading, "active_count", lambda: n_threads)
    cases = list(range(6))
    together = map_cases(scaled, cases, shared=0.1, n_workers=2)
    assert together == map_cases(scaled, cases, shared=0.1)
