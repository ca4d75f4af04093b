"""Time of collectives, in: message, ranks and link; out: seconds of the quickest algorithm.

A message is counted as its library counts it: all-reduce, the vector that every rank holds;
all-gather and reduce-scatter, the whole vector (all parts); all-to-all, what one rank sends in
all, its own part included. `algbw` is message / time; `busbw` is algbw times the share that a
ring must carry (2(n-1)/n for all-reduce, (n-1)/n for the others) [nccl-tests].
"""

from collections.abc import Callable
from math import ceil, log2

from gpuplan.domain.hardware.links import LinkModel, Protocol
from gpuplan.errors import InputError, one
from gpuplan.performance.kernels.curves import (
    FREE,
    AllReduceTerms,
    Curve,
    curve_time_s,
    quickest_time_s,
)

# Seconds of a message among so many ranks on a link.
TimeOf = Callable[[float, int, LinkModel], float]


def all_reduce_terms(n_ranks: int, link: LinkModel) -> AllReduceTerms:
    """What an all-reduce among these ranks costs, per algorithm; computed once per layout."""
    _check_ranks(n_ranks)
    if n_ranks == 1:
        return AllReduceTerms(FREE, FREE, FREE, FREE, FREE)
    ring = _curve(2 * (n_ranks - 1), _passed(n_ranks, 2), n_ranks, link=link, protocol=link.ring)
    one_shot, two_shot = _direct(n_ranks, link, ring)
    return AllReduceTerms(
        ring=ring,
        tree=_tree(n_ranks, link) if link.has_tree else ring,
        switch=_switch(n_ranks, link, ring),
        one_shot=one_shot,
        two_shot=two_shot,
    )


def all_reduce_time_s(message_bytes: float, n_ranks: int, link: LinkModel) -> float:
    """Every rank holds the sum: the quickest of ring, tree, switch and direct kernels."""
    return float(quickest_time_s(message_bytes, all_reduce_terms(n_ranks, link)))


def all_gather_curve(n_ranks: int, link: LinkModel) -> Curve:
    """All-gather and reduce-scatter: n-1 steps of a ring [Thakur2005]."""
    _check_ranks(n_ranks)
    if n_ranks == 1:
        return FREE
    return _curve(n_ranks - 1, _passed(n_ranks, 1), n_ranks, link=link, protocol=link.ring)


def all_gather_time_s(message_bytes: float, n_ranks: int, link: LinkModel) -> float:
    """Every rank holds all parts; the message is the whole vector."""
    return curve_time_s(message_bytes, all_gather_curve(n_ranks, link))


def all_to_all_curve(n_ranks: int, link: LinkModel) -> Curve:
    """Every pair talks at once: one step of latency, (n-1)/n of the message on the wire."""
    _check_ranks(n_ranks)
    if n_ranks == 1:
        return FREE
    return _curve(1, _passed(n_ranks, 1), n_ranks, link=link, protocol=link.pairwise)


def all_to_all_time_s(message_bytes: float, n_ranks: int, link: LinkModel) -> float:
    """Every rank sends its own piece to every other; the message is what one rank sends."""
    return curve_time_s(message_bytes, all_to_all_curve(n_ranks, link))


def point_to_point_time_s(message_bytes: float, link: LinkModel) -> float:
    """One rank sends to one other over the links that join the two."""
    protocol = link.pairwise
    rate = link.line_bytes_per_s(2) * protocol.rate_frac
    fixed_s = protocol.launch_s + protocol.alpha_s
    curve = Curve(fixed_s, 1 / rate, protocol.ramp_s, protocol.ramp_bytes)
    return curve_time_s(message_bytes, curve)


def hierarchical_time_s(
    time_s: TimeOf,
    message_bytes: float,
    inside: tuple[int, LinkModel],
    outside: tuple[int, LinkModel],
) -> float:
    """A collective over nodes: both levels run as one pipeline, so the slower one sets the pace.

    Ranks and link inside a node, nodes and link outside: what one node has towards the fabric,
    all its NICs together. Latencies add; the transfers of both levels overlap chunk by chunk.
    """
    latencies_s, transfers_s = 0.0, 0.0
    for n_ranks, link in (inside, outside):
        latency_s = time_s(0.0, n_ranks, link)
        latencies_s += latency_s
        transfers_s = max(transfers_s, time_s(message_bytes, n_ranks, link) - latency_s)
    return latencies_s + transfers_s


def _passed(n_ranks: int, n_passes: int) -> float:
    """Share of the message that every rank puts on the wire in a ring."""
    return n_passes * (n_ranks - 1) / n_ranks


def _curve(
    n_steps: int, wire_frac: float, n_ranks: int, *, link: LinkModel, protocol: Protocol
) -> Curve:
    rate = link.line_bytes_per_s(n_ranks) * protocol.rate_frac
    # A rank's own part is copied or reduced locally while nothing of it is on the wire.
    s_per_byte = (wire_frac + protocol.copy_frac / n_ranks) / rate
    fixed_s = protocol.launch_s + n_steps * protocol.alpha_s
    return Curve(fixed_s, s_per_byte, protocol.ramp_s, protocol.ramp_bytes / wire_frac)


def _tree(n_ranks: int, link: LinkModel) -> Curve:
    """Double binary tree: 2·log2(n) steps, every rank sends the message twice [Sanders2009]."""
    ring = link.ring
    rate = link.line_bytes_per_s(n_ranks) * ring.rate_frac
    fixed_s = ring.launch_s + 2 * ceil(log2(n_ranks)) * ring.alpha_s
    return Curve(fixed_s, 2 / rate, ring.ramp_s, ring.ramp_bytes / 2)


def _switch(n_ranks: int, link: LinkModel, ring: Curve) -> Curve:
    """The switch adds: a rank sends all and its share of sums, 1 + 1/n of the message."""
    switch = link.switch
    if switch is None or n_ranks < switch.n_ranks_min:
        return ring
    rate = link.line_bytes_per_s(n_ranks) * switch.rate_frac
    fixed_s = link.ring.launch_s + 2 * link.alpha_s + switch.extra_s
    return Curve(fixed_s, (1 + 1 / n_ranks) / rate, 0.0, 1.0)


def _direct(n_ranks: int, link: LinkModel, ring: Curve) -> tuple[Curve, Curve]:
    direct = link.direct
    if direct is None or n_ranks > direct.n_ranks_max:
        return ring, ring
    rate = link.line_bytes_per_s(n_ranks) * direct.rate_frac
    one_shot = Curve(direct.launch_s, (n_ranks - 1) / rate, 0.0, 1.0)
    two_shot_s = direct.launch_s + direct.sync_s
    return one_shot, Curve(two_shot_s, _passed(n_ranks, 2) / rate, 0.0, 1.0)


def _check_ranks(n_ranks: int) -> None:
    if n_ranks < 1:
        raise one(InputError, "collective", "n_ranks", f"got {n_ranks}", "use 1 or more ranks")
