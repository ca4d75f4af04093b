"""One function over many cases, on as many processes as asked.

Every case is computed alone from what it was given, so the number of workers changes the time and
nothing else; answers come in the order of the cases.
"""

import multiprocessing
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from gpuplan.errors import InputError, one

Shared = TypeVar("Shared")
Case = TypeVar("Case")
Answer = TypeVar("Answer")
OnProgress = Callable[[int], None]

_retained: dict[str, Any] = {}  # what a worker process was given once, for all of its cases


def map_cases(
    compute: Callable[[Shared, Case], Answer],
    cases: Sequence[Case],
    *,
    shared: Shared,
    n_workers: int = 1,
    on_progress: OnProgress | None = None,
) -> list[Answer]:
    """`compute(shared, case)` for each case, in order; `on_progress` hears how many are done.

    `shared` is given to each process once: sent to a fresh one, left where it is for a fork. The
    function must be one of a module, so that a fresh process can find it.
    """
    if n_workers < 1:
        raise one(InputError, "execution", "workers", f"got {n_workers}", "use 1 or more")
    answers = []
    for answer in _computed(compute, cases, shared=shared, n_workers=min(n_workers, len(cases))):
        answers.append(answer)
        if on_progress is not None:
            on_progress(len(answers))
    return answers


def _computed(
    compute: Callable[[Shared, Case], Answer],
    cases: Sequence[Case],
    *,
    shared: Shared,
    n_workers: int,
) -> Any:
    if n_workers <= 1:
        yield from (compute(shared, case) for case in cases)
        return
    context = multiprocessing.get_context(start_method())
    with ProcessPoolExecutor(
        n_workers, mp_context=context, initializer=_hold, initargs=(compute, shared)
    ) as pool:
        yield from _mapped(pool, cases)


def start_method() -> str:
    """How a process begins: as a copy of this one, or fresh where a copy is not safe.

    A copy has all modules, compiled code and what is shared; a fresh process takes two CPU-seconds
    to get them. But a copy also has the locks that other threads hold, and nobody to release them.
    """
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def _mapped(pool: ProcessPoolExecutor, cases: Sequence[object]) -> Any:
    """Answers in order; processes begin when the first case is handed in."""
    with warnings.catch_warnings():
        # Later versions of Python also count threads of numerical libraries, which mind forks.
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        return pool.map(_one, cases)


def _hold(compute: Callable[..., Any], shared: object) -> None:
    _retained["compute"], _retained["shared"] = compute, shared


def _one(case: object) -> object:
    return _retained["compute"](_retained["shared"], case)
