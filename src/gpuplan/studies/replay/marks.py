"""A load with priorities or lengths of its own: what a source does not say, drawn beside it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.demand.scale import served
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import ints
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import Requests
from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import InputError, Problem, one
from gpuplan.inputs.traces.read import read_trace

SUM_ERROR = 1e-6


def with_priorities(
    taken: LoadSource, mix: tuple[tuple[int, float], ...], *, seed: int = 0
) -> LoadSource:
    """Each request with a priority, drawn by the shares of `mix`; lower numbers go first."""
    _check_mix(mix)
    if taken.loop is not None:
        fix = "use --rate or --trace"
        raise one(InputError, "simulate", "--priorities", "with users who wait", fix)
    numbers, shares = zip(*mix, strict=True)
    draws = stream(seed, "priority").choice(len(mix), size=len(taken.requests), p=shares)
    return replace(taken, requests=replace(taken.requests, priority=ints(np.array(numbers)[draws])))


def one_priority(limits: EngineLimits, requests: Requests) -> list[Assumption]:
    """Priority among requests that are all alike is first come, first served."""
    isone_priority = bool((requests.priority == requests.priority[0]).all())
    if limits.scheduling != "priority" or not isone_priority:
        return []
    why = "no request of this load has another priority"
    return [assume("priority", "first come, first served", why, "--priorities")]


def with_adapters(requests: Requests, use: LoraUse | None, *, seed: int = 0) -> Requests:
    """Each request with a LoRA adapter: who waits for one, the engine's slots decide."""
    if use is None or (requests.adapter >= 0).any():
        return requests
    draws = stream(seed, "adapters")
    adapter = draws.integers(0, use.n_adapters, len(requests))
    adapter[draws.random(len(requests)) >= use.request_frac] = -1
    return replace(requests, adapter=ints(adapter))


def _check_mix(mix: tuple[tuple[int, float], ...]) -> None:
    problems = [
        Problem("--priorities", f"got a share of {share:g}", "a share is above 0, and at most 1")
        for _, share in mix
        if not 0 < share <= 1
    ]
    total = sum(share for _, share in mix)
    if not problems and abs(total - 1.0) > SUM_ERROR:
        problems.append(Problem("--priorities", f"shares sum to {total:g}", "let them sum to 1"))
    if len({number for number, _ in mix}) < len(mix):
        problems.append(Problem("--priorities", "a number stands twice", "name each once"))
    if problems:
        raise InputError("simulate", problems)


def with_shared_prefix(taken: LoadSource, n_tokens: int) -> LoadSource:
    """Every prompt begins with the same tokens, a system prompt, as far as it is so long."""
    if n_tokens < 1:
        fix = "give 1 token or more"
        raise one(InputError, "simulate", "--shared-prefix", f"got {n_tokens}", fix)
    if taken.loop is not None or (taken.requests.prefix_group >= 0).any():
        what = "with prompts that share other text already, or users who wait"
        raise one(InputError, "simulate", "--shared-prefix", what, "use --rate, without --turns")
    requests = taken.requests
    shared = np.minimum(n_tokens, requests.input_tokens)
    group = ints(np.zeros(len(requests), dtype=np.int64))
    return replace(
        taken, requests=replace(requests, prefix_group=group, prefix_tokens=ints(shared))
    )


def with_lengths(
    taken: LoadSource, path: Path, query: TraceQuery | None = None, *, seed: int = 0
) -> LoadSource:
    """The same arrivals with lengths of a recording: whole rows, drawn with replacement.

    A prompt keeps its answer: drawn apart they would lose what ties them together.
    """
    read = read_trace(path, query)
    known, n_empty = served(read.requests)
    if not len(known):
        what = f"{path}: no request has tokens"
        raise one(InputError, "simulate", "--lengths-from", what, "give a file with lengths")
    rows = stream(seed, "recorded lengths").integers(0, len(known), len(taken.requests))
    requested, answered = ints(known.input_tokens[rows]), ints(known.output_tokens[rows])
    loop = taken.loop
    if loop is not None:
        loop = replace(loop, input_tokens=requested, output_tokens=answered)
    assumed = tuple(
        a for a in taken.assumptions if a.what not in ("input lengths", "output lengths")
    )
    why = f"drawn from {len(known):,} requests of {path.name}, prompt and answer together"
    mean = f"{known.input_tokens.mean():,.0f} in, {known.output_tokens.mean():,.0f} out on average"
    drawn = Assumption(what="lengths", value=mean, why=why, change="--lengths-from")
    notes = [f"{n_empty:,} requests without tokens are excluded"] if n_empty else []
    notes += [f"{read.n_bad:,} bad lines excluded", *map(str, read.bad)] if read.n_bad else []
    return replace(
        taken,
        requests=replace(taken.requests, input_tokens=requested, output_tokens=answered),
        loop=loop,
        assumptions=(*assumed, drawn),
        remarks=(*taken.remarks, *(f"{path.name}: {note}" for note in notes)),
    )
