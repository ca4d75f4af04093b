"""Single changes that would make a deployment or a job fit: the first of each kind that does."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import Suggestion

N_OTHER_ACCELERATORS = 3
Case = TypeVar("Case")


class Change(NamedTuple, Generic[Case]):
    """One change: what it is, how to type it, the case after it, and what to beware of."""

    change: str
    how: str
    after: Case
    caveat: str = ""


def that_fit(
    changes: Iterable[Change[Case]],
    headroom_bytes: Callable[[Case], float | None],
    *,
    n_most: int = 1,
) -> Iterator[Suggestion]:
    """The first changes that are enough, so the smallest; a headroom of None does not fit."""
    n_found = 0
    for change, how, after, caveat in changes:
        left = headroom_bytes(after)
        if left is not None:
            yield Suggestion(change=change, how=how, headroom_bytes=left, caveat=caveat)
            n_found += 1
        if n_found == n_most:
            return


def larger_than(here: Accelerator, others: Sequence[Accelerator]) -> list[Accelerator]:
    """Accelerators with more memory than this one, the smallest first."""
    known = here.memory.visible_bytes
    sold = (o for o in others if not o.is_cpu and not o.is_announced)
    larger = [o for o in sold if o.memory.visible_bytes > known]
    return sorted(larger, key=lambda o: o.memory.visible_bytes)
