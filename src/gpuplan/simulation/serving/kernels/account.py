"""What the engine's time was spent on, in bins of equal width."""

from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.state import (
    BIN,
    BIN_END,
    BIN_WIDTH,
    BLOCKS_S,
    BUSY_S,
    COMPUTE_S,
    NOW,
    READ_S,
    TICKS_PER_S,
    Floats,
    Ints,
)

TICK_S = 1 / TICKS_PER_S


@rare
def _fold(s: Ints, bins: Floats) -> None:
    """Two bins become one: a run of any length keeps its number of bins."""
    half = bins.shape[0] // 2
    for b in range(half):
        for c in range(bins.shape[1]):
            bins[b, c] = bins[2 * b, c] + bins[2 * b + 1, c]
    bins[half:] = 0.0
    s[BIN_WIDTH] *= 2
    s[BIN] //= 2
    s[BIN_END] = (s[BIN] + 1) * s[BIN_WIDTH]


@part
def _add(row: Floats, frac: float, sums: tuple[float, float, float, float]) -> None:
    row[BUSY_S] += frac * sums[0]
    row[BLOCKS_S] += frac * sums[1]
    row[COMPUTE_S] += frac * sums[2]
    row[READ_S] += frac * sums[3]


@part
def account(s: Ints, bins: Floats, end: int, used: float, peaks_s: tuple[float, float]) -> None:
    """From now to `end` the engine was busy; work is spread evenly over that time."""
    start = s[NOW]
    if end <= start:
        return
    lasts_s = (end - start) * TICK_S
    sums = (lasts_s, lasts_s * used, peaks_s[0], peaks_s[1])
    if start >= s[BIN_END]:
        s[BIN] = start // s[BIN_WIDTH]
        while s[BIN] >= bins.shape[0]:
            _fold(s, bins)
        s[BIN_END] = (s[BIN] + 1) * s[BIN_WIDTH]
    if end <= s[BIN_END]:
        _add(bins[s[BIN]], 1.0, sums)
        return
    while end > s[BIN_END]:
        _add(bins[s[BIN]], (s[BIN_END] - start) / float(end - s[NOW]), sums)
        start = s[BIN_END]
        if s[BIN] + 1 >= bins.shape[0]:
            _fold(s, bins)
        s[BIN] += 1
        s[BIN_END] = (s[BIN] + 1) * s[BIN_WIDTH]
    _add(bins[s[BIN]], (end - start) / float(end - s[NOW]), sums)
