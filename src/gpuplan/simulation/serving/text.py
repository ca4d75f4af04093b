"""A prefix cache where no prompt shares text: it matters only to requests that are preempted.

Engines keep text by default. Where none is shared, only who was preempted finds its own again, so
a run without the cache is the same run as long as nobody is preempted, and many times faster.
"""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import ints
from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests


def shares_text(requests: Requests, blocks: PrefixBlocks | None = None) -> bool:
    """Some prompt may begin as another does."""
    return blocks is not None or bool((requests.prefix_group >= 0).any())


def is_idle_cache(limits: EngineLimits) -> bool:
    """A cache that vLLM's rules would not look at without preemptions or shared text."""
    return limits.caches_prefixes and limits.admission.prefill_first is None


def without_cache(limits: EngineLimits) -> EngineLimits:
    """The same engine with its cache left out, where that may be tried."""
    return replace(limits, caches_prefixes=False) if is_idle_cache(limits) else limits


def with_lookups(outcome: Outcome) -> Outcome:
    """The run as an engine with a cache reports it: everything was looked up, nothing found."""
    n_requested = int(np.dot(outcome.requests.input_tokens, outcome.times.is_finished))
    none = ints(np.zeros(outcome.n_requests, dtype=np.int64))
    return replace(
        outcome,
        times=replace(outcome.times, n_cached_tokens=none),
        totals=replace(outcome.totals, n_asked_tokens=n_requested),
    )
