"""From a described load to requests: a scenario's arrivals and lengths, drawn at random."""

from collections.abc import Iterator

import numpy as np

from gpuplan.demand.arrivals import burst_blocks, bursts
from gpuplan.demand.lengths import draw_lengths
from gpuplan.demand.profile import hourly_weights, warped
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.scenario.demand import Arrivals, RequestShape
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.errors import InputError, one

N_BLOCK = 1_000_000


def requests_for(
    arrivals: Arrivals, shape: RequestShape, *, duration_s: float, seed: int
) -> Requests:
    """Requests of a load as described.

    With an hourly profile the mean rate moves by it, time 0 being its first hour; without one the
    load stays at its peak throughout. The expected prefix cache hit rate is one prefix common to
    all requests.
    """
    arrive = _arrive_s(arrivals, duration_s=duration_s, seed=seed)
    return _shaped(arrive, shape, _length_streams(seed))


def request_blocks(
    arrivals: Arrivals, shape: RequestShape, *, duration_s: float, seed: int, n_block: int = N_BLOCK
) -> Iterator[Requests]:
    """The same load in blocks, in order of time: memory does not grow with the duration."""
    profile = arrivals.hourly_profile
    most = float(hourly_weights(profile).max()) if profile else 1.0
    streams = _length_streams(seed)
    blocks = burst_blocks(
        _rate_per_s(arrivals),
        duration_s * most,
        cv_ratio=arrivals.burstiness_ratio,
        seed=seed,
        n_block=n_block,
    )
    for block in blocks:
        arrive = warped(block, profile) if profile else block
        arrive = floats(arrive[arrive < duration_s])
        if not len(arrive):
            return
        yield _shaped(arrive, shape, streams)


def _length_streams(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    return stream(seed, "input lengths"), stream(seed, "output lengths")


def _shaped(
    arrive: Floats,
    shape: RequestShape,
    streams: tuple[np.random.Generator, np.random.Generator],
) -> Requests:
    n_input = draw_lengths(shape.input, len(arrive), streams[0])
    n_output = draw_lengths(shape.output, len(arrive), streams[1])
    prefix = np.floor(n_input * shape.prefix_hit_frac.mid)
    group = np.full(len(arrive), 0 if shape.prefix_hit_frac.mid > 0 else -1)
    grouping = Grouping(prefix_group=group, prefix_tokens=prefix)
    return requests_of(arrive, n_input, n_output, grouping=grouping)


def _arrive_s(arrivals: Arrivals, *, duration_s: float, seed: int) -> Floats:
    rate = _rate_per_s(arrivals)
    cv = arrivals.burstiness_ratio
    if not arrivals.hourly_profile:
        return bursts(rate, duration_s, cv_ratio=cv, seed=seed)
    # An hour may run faster than the mean clock: enough is drawn, and what is late is cut.
    most = float(hourly_weights(arrivals.hourly_profile).max())
    drawn = bursts(rate, duration_s * most, cv_ratio=cv, seed=seed)
    arrive = warped(drawn, arrivals.hourly_profile)
    return floats(arrive[arrive < duration_s])


def _rate_per_s(arrivals: Arrivals) -> float:
    """The mean rate where a profile moves it, else the peak, which is taken to last."""
    rate = arrivals.mean_requests_per_s if arrivals.hourly_profile else arrivals.peak_requests_per_s
    if rate is None:
        fix = "give requests per second, or read a trace, or run a closed loop"
        raise one(InputError, "demand", "arrivals", "no rate is known", fix)
    return rate
