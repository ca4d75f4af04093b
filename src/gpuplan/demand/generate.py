"""From a described load to requests: what a scenario says about arrivals and lengths, drawn."""

import numpy as np

from gpuplan.demand.arrivals import bursts
from gpuplan.demand.lengths import draw_lengths
from gpuplan.demand.profile import growth_ratio, hourly_weights, warped
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.demand import Arrivals, RequestShape
from gpuplan.domain.stream import Grouping, Requests, requests_of
from gpuplan.errors import InputError, one


def requests_for(
    arrivals: Arrivals,
    shape: RequestShape,
    *,
    duration_s: float,
    seed: int,
    after_s: float = 0.0,
    growth_per_month_frac: float = 0.0,
) -> Requests:
    """Requests of a load as described, after this time of growth.

    With an hourly profile the mean rate moves by it, time 0 being its first hour; without one the
    load stays at its peak throughout. The expected share of prompts found in the cache is one
    prefix common to all requests.
    """
    ratio = growth_ratio(growth_per_month_frac, after_s)
    arrive = _arrive_s(arrivals, ratio, duration_s=duration_s, seed=seed)
    asked = draw_lengths(shape.input, len(arrive), stream(seed, "input lengths"))
    answered = draw_lengths(shape.output, len(arrive), stream(seed, "output lengths"))
    prefix = np.floor(asked * shape.prefix_hit_frac.mid)
    group = np.full(len(arrive), 0 if shape.prefix_hit_frac.mid > 0 else -1)
    grouping = Grouping(prefix_group=group, prefix_tokens=prefix)
    return requests_of(arrive, asked, answered, grouping=grouping)


def _arrive_s(arrivals: Arrivals, ratio: float, *, duration_s: float, seed: int) -> Floats:
    rate = arrivals.mean_requests_per_s if arrivals.hourly_profile else arrivals.peak_requests_per_s
    if rate is None:
        fix = "give requests per second, or read a trace, or run a closed loop"
        raise one(InputError, "demand", "arrivals", "no rate is known", fix)
    cv = arrivals.burstiness_ratio
    if not arrivals.hourly_profile:
        return bursts(rate * ratio, duration_s, cv_ratio=cv, seed=seed)
    # An hour may run faster than the mean clock: enough is drawn, and what is late is cut.
    most = float(hourly_weights(arrivals.hourly_profile).max())
    drawn = bursts(rate * ratio, duration_s * most, cv_ratio=cv, seed=seed)
    arrive = warped(drawn, arrivals.hourly_profile)
    return floats(arrive[arrive < duration_s])
