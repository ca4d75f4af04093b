"""A sweep: every case that is not finished yet is computed once and kept; the order is its own.

Where cases are computed: in this process, on its cores, or on a Ray cluster.

Answers come as they are finished. Only a few cases are handed out ahead of the workers, so memory
does not grow with their number; a case whose worker was lost is handed out again.
"""

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext, redirect_stdout
from importlib import import_module
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from gpuplan.errors import InputError, SolverError, one
from gpuplan.execution.store import ResultStore

Compute = Callable[[Any], Any]
Numbered = tuple[int, Any]
AHEAD = 2  # cases for each worker that are handed out at once
EACH_S, MOST_EACH = 0.5, 64  # of work that Ray hands out at once: short cases go together
MAX_TRIES = 4  # of a case whose workers die: then the case kills them


Progressed = Callable[[int], None]


class Engine(NamedTuple):
    """Where to compute, and on how many workers."""

    name: str = "local"  # or ray
    n_workers: int = 1
    address: str | None = None  # of a Ray cluster; None: one of its own, on this server


class SweepCase(NamedTuple):
    """What to compute, under the digest of all that it depends on."""

    digest: str
    case: Any  # plain data, for the function that computes


def sweep(
    compute: Compute,
    cases: Sequence[SweepCase],
    *,
    store: ResultStore,
    engine: Engine,
    progressed: Progressed | None = None,
) -> int:
    """Compute and keep what is not in the store; how many cases that were.

    Cases that are equal are computed once. Whatever ends the sweep, what is finished is kept.
    """
    left = {each.digest: each.case for each in cases if not store.has(each.digest)}
    digests, n_done = list(left), len(cases) - len(left)
    if progressed is not None:
        progressed(n_done)
    # Ray prints what it lost to where results are written.
    aside = redirect_stdout(sys.stderr) if engine.name == "ray" else nullcontext()
    with aside:
        for n_new, (place, result) in enumerate(_answers(compute, list(left.values()), engine), 1):
            store.write(digests[place], result)
            if progressed is not None:
                progressed(n_done + n_new)
    return len(left)


def _answers(compute: Compute, cases: list[Any], engine: Engine) -> Iterator[tuple[int, Any]]:
    if not cases:
        return iter(())
    if engine.name == "ray":
        return on_ray(compute, cases, engine.n_workers, engine.address)
    return on_cores(compute, cases, min(engine.n_workers, len(cases)))


def on_cores(compute: Compute, cases: Sequence[Any], n_workers: int) -> Iterator[Numbered]:
    """Place and answer of every case, as they are finished; 1 worker is this process itself."""
    if n_workers <= 1:
        yield from ((place, compute(case)) for place, case in enumerate(cases))
        return
    left, tries = dict(enumerate(cases)), dict.fromkeys(range(len(cases)), 0)
    while left:
        under_way: list[int] = []
        try:
            for place, answer in _pooled(compute, left, n_workers, under_way):
                del left[place]
                yield place, answer
        except BrokenProcessPool:
            for place in under_way:
                tries[place] += 1
            _refuse_deadly(tries)


def _pooled(
    compute: Compute, left: dict[int, Any], n_workers: int, under_way: list[int]
) -> Iterator[Numbered]:
    # Fresh processes: a copy of this one would hold locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    waiting = iter(list(left.items()))
    with ProcessPoolExecutor(n_workers, mp_context=context) as pool:
        running: dict[Future[Any], int] = {}
        try:
            while True:
                for place, case in islice(waiting, AHEAD * n_workers - len(running)):
                    running[pool.submit(compute, case)] = place
                    under_way.append(place)
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    answer, place = done.result(), running.pop(done)
                    under_way.remove(place)
                    yield place, answer
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _refuse_deadly(tries: dict[int, int]) -> None:
    deadly = [place for place, n in tries.items() if n >= MAX_TRIES]
    if deadly:
        what = f"its worker was lost {MAX_TRIES} times"
        fix = "is there enough memory? Use fewer workers"
        raise one(SolverError, "execution", f"case {deadly[0]}", what, fix)


def on_ray(
    compute: Compute, cases: Sequence[Any], n_workers: int, address: str | None
) -> Iterator[Numbered]:
    """The same on a Ray cluster; Ray itself hands out again what a lost worker had."""
    ray = _ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, address, n_workers)
    try:
        remote = ray.remote(num_cpus=1, max_retries=MAX_TRIES)(_several)
        at, n_each, running = 0, 1, dict[Any, int]()
        while True:
            while at < len(cases) and len(running) < AHEAD * n_workers:
                # The last ones are shared out, so that no worker is left with many.
                n = max(1, min(n_each, (len(cases) - at) // (AHEAD * n_workers)))
                running[remote.remote(compute, cases[at : at + n])] = at
                at += n
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for each in done:
                first, (answers, spent_s) = running.pop(each), ray.get(each)
                n_each = max(1, min(MOST_EACH, int(EACH_S * len(answers) / max(spent_s, 1e-6))))
                yield from enumerate(answers, first)
    finally:
        if is_ours:
            ray.shutdown()


def _several(compute: Compute, cases: Sequence[Any]) -> tuple[list[Any], float]:
    """Answers of a few cases, and the seconds that they took."""
    begun_s = perf_counter()
    return [compute(case) for case in cases], perf_counter() - begun_s


def _connect(ray: Any, address: str | None, n_workers: int) -> None:
    where = {"address": address} if address else {"num_cpus": n_workers}
    try:
        ray.init(**where, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, OSError, ValueError, RuntimeError) as error:
        what = f"{address or 'a local cluster'}: {str(error).partition(chr(10))[0][:200]}"
        fix = "start Ray there (`ray start --head`), or give another --address"
        raise one(InputError, "execution", "--address", what, fix) from error


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        fix = "install gpuplan[ray]"
        raise one(InputError, "execution", "ray", "is not installed", fix) from error
