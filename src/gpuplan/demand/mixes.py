"""Requests of many clients at once: few large ones with habits of their own, many small.

A production load is no single process: its bursts and its shifts of length come from a few heavy
clients [ServeGen2025]. Each client is drawn alone, window by window, and the streams are merged.
"""

from typing import NamedTuple

import numpy as np

from gpuplan.demand.arrivals import gamma_bursts, weibull_bursts
from gpuplan.demand.lengths import draw_lengths, empirical_lengths
from gpuplan.demand.scale import merged
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.scenario.demand import RequestShape
from gpuplan.domain.traffic.mix import Client, ClientMix, LengthWindow
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError, one

MILD_CV = 0.05  # Assumption: gaps more regular than this are drawn with this deviation
MOST_CV = 100.0  # Assumption: one request in a window says nothing about gaps wilder than this
MAX_EXPECTED = 100_000_000
N_SAMPLES = 1000  # lengths kept for each client of a mix without a recording


class Crowd(NamedTuple):
    """How unlike the clients of a service are."""

    n_clients: int
    skew: float = 1.0  # rates fall as 1 / rank ** skew
    gap_cv_ratio: float = 1.0  # burstiness of each client
    length_cv_ratio: float = 0.5  # deviation over mean of clients' mean lengths


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


def uneven_mix(
    rate_per_s: float, crowd: Crowd, shape: RequestShape, *, duration_s: float, seed: int
) -> ClientMix:
    """A mix without a recording: rates of clients fall by rank, each client has its own lengths.

    A client's lengths are the shape's times a factor of its own, lognormal with mean 1.
    """
    if crowd.n_clients < 1:
        what = f"got {crowd.n_clients} clients"
        raise one(InputError, "mix", "clients", what, "give at least one")
    weight = np.arange(1, crowd.n_clients + 1, dtype=np.float64) ** -crowd.skew
    rates = rate_per_s * weight / weight.sum()
    rng = stream(seed, "clients")
    sigma = np.sqrt(np.log1p(crowd.length_cv_ratio**2))
    factors = rng.lognormal(-(sigma**2) / 2, sigma, (crowd.n_clients, 2))
    clients = tuple(
        _steady_client(i, float(rates[i]), crowd.gap_cv_ratio, lengths=_drawn(shape, factor, rng))
        for i, factor in enumerate(factors)
    )
    return ClientMix(window_s=duration_s, clients=clients)


def _steady_client(number: int, rate: float, cv: float, *, lengths: LengthWindow) -> Client:
    return Client(
        name=str(number),
        start_s=floats([0.0]),
        requests_per_s=floats([rate]),
        gap_cv_ratio=floats([cv]),
        is_weibull=ints([0]),
        lengths=(lengths,),
    )


def _drawn(shape: RequestShape, factor: Floats, rng: np.random.Generator) -> LengthWindow:
    weight = floats(np.ones(N_SAMPLES))
    return LengthWindow(
        start_s=0.0,
        input_tokens=floats(draw_lengths(shape.input, N_SAMPLES, rng) * factor[0]),
        input_weight=weight,
        output_tokens=floats(draw_lengths(shape.output, N_SAMPLES, rng) * factor[1]),
        output_weight=weight,
    )


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
    asked, answered = np.zeros(len(arrive_s)), np.zeros(len(arrive_s))
    ask, answer = (
        stream(seed, cause, member=number) for cause in ("input lengths", "output lengths")
    )
    for i in np.unique(place):
        rows, window = place == i, lengths[i]
        n = int(rows.sum())
        asked[rows] = empirical_lengths(window.input_tokens, n, ask, weights=window.input_weight)
        answered[rows] = empirical_lengths(
            window.output_tokens, n, answer, weights=window.output_weight
        )
    return requests_of(arrive_s, asked, answered)


def _like(client: Client, known: list[Client]) -> Client:
    rate = client.requests_per_s.mean()
    return min(known, key=lambda other: abs(float(other.requests_per_s.mean() - rate)))


def _seed_of(seed: int, number: int, window: int) -> int:
    """A seed of its own for each window of each client."""
    key = np.random.SeedSequence(seed, spawn_key=(number, window))
    return int(key.generate_state(1, np.uint64)[0])


def _check(mix: ClientMix, start_s: float, duration_s: float, factor: float) -> None:
    values = {"duration": duration_s, "factor": factor, "window": mix.window_s}
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise one(InputError, "mix", name, f"got {value:g}", "must be above 0, and finite")
    if not any(client.lengths for client in mix.clients):
        raise one(InputError, "mix", "lengths", "no client has any", "give those of one at least")
    expected = sum(float(c.requests_per_s.max(initial=0)) for c in mix.clients) * duration_s
    if not np.isfinite(start_s) or expected * factor > MAX_EXPECTED:
        what = f"up to {expected * factor:.3g} requests from {start_s:g} s on"
        raise one(InputError, "mix", "duration x factor", what, f"at most {MAX_EXPECTED:,}")
