"""A sweep: every case that is not finished yet is computed once and kept; the order is its own."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gpuplan.execution.engines import Compute, on_cores, on_ray
from gpuplan.execution.store import ResultStore

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
