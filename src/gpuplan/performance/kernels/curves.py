"""Time of a collective over its message: plain arithmetic for numbers, columns and kernels."""

from typing import Any, NamedTuple

# Plain numbers or read-only columns of them; numpy is never named here.
Number = Any


class Curve(NamedTuple):
    """Time of one algorithm over the message: a + b·m + r·m / (m + h)."""

    fixed_s: float
    s_per_byte: float
    ramp_s: float
    ramp_bytes: float


FREE = Curve(0.0, 0.0, 0.0, 1.0)


class AllReduceTerms(NamedTuple):
    """The algorithms that compete for one all-reduce; an absent one repeats the ring."""

    ring: Curve
    tree: Curve
    switch: Curve
    one_shot: Curve
    two_shot: Curve


def curve_time_s(message_bytes: float, curve: Curve) -> float:
    """One algorithm's time; plain arithmetic, so that columns and kernels share it."""
    ramp_s = curve.ramp_s * message_bytes / (message_bytes + curve.ramp_bytes)
    return curve.fixed_s + curve.s_per_byte * message_bytes + ramp_s


def lesser(a: Number, b: Number) -> Number:
    """The smaller of two, for numbers and columns alike."""
    return 0.5 * (a + b - abs(a - b))


def greater(a: Number, b: Number) -> Number:
    """The larger of two, for numbers and columns alike."""
    return 0.5 * (a + b + abs(a - b))


def quickest_time_s(message_bytes: Number, terms: AllReduceTerms) -> Number:
    """Time of the best algorithm for this message; floats and columns alike."""
    ring_s = curve_time_s(message_bytes, terms.ring)
    tree_s = curve_time_s(message_bytes, terms.tree)
    switch_s = curve_time_s(message_bytes, terms.switch)
    one_s = curve_time_s(message_bytes, terms.one_shot)
    two_s = curve_time_s(message_bytes, terms.two_shot)
    return lesser(lesser(lesser(ring_s, tree_s), lesser(one_s, two_s)), switch_s)
