"""Servers that form a batch, run it to its end, and only then take the next."""

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPolicy:
    """When a free server begins a batch, and how many requests it takes.

    Static batching waits for `max_batch` requests; a dynamic batcher takes what is there, or waits
    a little for a preferred size [Triton-dynamic-batcher].
    """

    max_batch: int
    max_delay_s: float | None = None  # of the oldest request; None: wait for a preferred size
    preferred_sizes: tuple[int, ...] = ()  # none: only max_batch

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes that are not kept waiting, rising."""
        return tuple(sorted(set(self.preferred_sizes or (self.max_batch,))))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTable:
    """Time of a batch by its size, from 0; the same at peak arithmetic and peak memory rate."""

    batch_s: Floats
    arithmetic_s: Floats
    memory_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchServers:
    """Equal servers of whole requests behind one router; no tokens, no cache."""

    policy: BatchPolicy
    table: BatchTable
    n_engines: int = 1
    router: str = "round_robin"
    seed: int = 0  # of a router that draws
    start_s: float = 0.0  # of every request outside the server
