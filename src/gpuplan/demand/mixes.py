"""Requests of a client population: a few heavy clients with patterns of their own, many light.

A production load is no single process: its bursts and its length shifts come from a few heavy
clients [ServeGen2025]. Each client is drawn alone, window by window, and the streams are merged.
"""

import numpy as np

from gpuplan.demand.arrivals import gamma_bursts, weibull_bursts
from gpuplan.demand.lengths import empirical_lengths
from gpuplan.demand.scale import merged
from gpuplan.demand.streams import require_positive, stream
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.domain.traffic.trace import Client, ClientMix, LengthWindow
from gpuplan.errors import InputError, one

MILD_CV = 0.05  # Assumption: arrivals more regular than this are drawn with this CV
MOST_CV = 100.0  # Assumption: one request in a window is no evidence of a higher CV than this
MAX_EXPECTED = 100_000_000


def mix_requests(
    mix: ClientMix, *, start_s: float, duration_s: float, factor: float = 1.0, seed: int
) -> tuple[Requests, Ints]:
    """Requests from a time of the mix on, time 0 being that time, and the client of each.

    A larger factor speeds every client up; its burstiness and its lengths stay its own. Clients
    whose lengths are unknown are drawn with those of the client nearest in rate.
    """
    _check(mix, start_s, duration_s, factor)
    parts, owners = [], []
    known = [client for client in mix.clients if client.lengths]
    for number, client in enumerate(mix.clients):
        arrive = _arrivals(
            client, number, mix.window_s, span=(start_s, duration_s), factor=factor, seed=seed
        )
        lengths = client.lengths or _like(client, known).lengths
        parts.append(_requests(arrive, lengths, number, start_s=start_s, seed=seed))
        owners.append(np.full(len(arrive), number))
    arrivals = np.concatenate([part.arrive_s for part in parts])
    order = np.argsort(arrivals, kind="stable")
    return merged(parts), np.concatenate(owners)[order]


def _arrivals(
    client: Client,
    number: int,
    window_s: float,
    *,
    span: tuple[float, float],
    factor: float,
    seed: int,
) -> Floats:
    start_s, duration_s = span
    parts = []
    for i in np.flatnonzero(client.requests_per_s > 0):
        begin = float(client.start_s[i]) - start_s
        if begin + window_s <= 0 or begin >= duration_s:
            continue
        cv = float(np.clip(client.gap_cv_ratio[i] or 1.0, MILD_CV, MOST_CV))
        draw = weibull_bursts if client.is_weibull[i] else gamma_bursts
        own_seed = _seed_of(seed, number, int(i))
        rate = float(client.requests_per_s[i]) * factor
        parts.append(draw(rate, window_s, cv_ratio=cv, seed=own_seed) + begin)
    arrive = np.concatenate(parts) if parts else np.array([])
    return floats(np.sort(arrive[(arrive >= 0) & (arrive < duration_s)]))


def _requests(
    arrive_s: Floats, lengths: tuple[LengthWindow, ...], number: int, *, start_s: float, seed: int
) -> Requests:
    """Lengths by the window that holds each arrival; before the first window, by the first."""
    edges = np.array([window.start_s for window in lengths])
    place = np.maximum(0, np.searchsorted(edges, arrive_s + start_s, side="right") - 1)
    n_input, n_output = np.zeros(len(arrive_s)), np.zeros(len(arrive_s))
    inputs = stream(seed, "input lengths", member=number)
    outputs = stream(seed, "output lengths", member=number)
    for i in np.unique(place):
        rows, window = place == i, lengths[i]
        n = int(rows.sum())
        n_input[rows] = empirical_lengths(
            window.input_tokens, n, inputs, weights=window.input_weight
        )
        n_output[rows] = empirical_lengths(
            window.output_tokens, n, outputs, weights=window.output_weight
        )
    return requests_of(arrive_s, n_input, n_output)


def _like(client: Client, known: list[Client]) -> Client:
    rate = client.requests_per_s.mean()
    return min(known, key=lambda other: abs(float(other.requests_per_s.mean() - rate)))


def _seed_of(seed: int, number: int, window: int) -> int:
    """A seed of its own for each window of each client."""
    key = np.random.SeedSequence(seed, spawn_key=(number, window))
    return int(key.generate_state(1, np.uint64)[0])


def _check(mix: ClientMix, start_s: float, duration_s: float, factor: float) -> None:
    require_positive("mix", duration=duration_s, factor=factor, window=mix.window_s)
    if not any(client.lengths for client in mix.clients):
        raise one(InputError, "mix", "lengths", "no client has any", "give those of one at least")
    expected = sum(float(c.requests_per_s.max(initial=0)) for c in mix.clients) * duration_s
    if not np.isfinite(start_s) or expected * factor > MAX_EXPECTED:
        what = f"up to {expected * factor:.3g} requests from {start_s:g} s on"
        raise one(InputError, "mix", "duration x factor", what, f"at most {MAX_EXPECTED:,}")
