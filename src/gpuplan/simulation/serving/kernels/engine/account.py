"""What the engine's time was spent on, in bins of equal width."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Floats, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare

TICK_S = 1 / st.TICKS_PER_S


@rare
def _fold(s: Ints, bins: Floats) -> None:
    """Two bins become one: a run of any length keeps its number of bins."""
    half = bins.shape[0] // 2
    for b in range(half):
        for c in range(bins.shape[1]):
            bins[b, c] = bins[2 * b, c] + bins[2 * b + 1, c]
    bins[half:] = 0.0
    s[st.BIN_WIDTH] *= 2
    s[st.BIN] //= 2
    s[st.BIN_END] = (s[st.BIN] + 1) * s[st.BIN_WIDTH]


@part
def _add(row: Floats, frac: float, sums: tuple[float, float, float, float]) -> None:
    row[st.BUSY_S] += frac * sums[0]
    row[st.BLOCKS_S] += frac * sums[1]
    row[st.COMPUTE_S] += frac * sums[2]
    row[st.READ_S] += frac * sums[3]


@part
def account(s: Ints, bins: Floats, end: int, used: float, peaks_s: tuple[float, float]) -> None:
    """From now to `end` the engine was busy; work is spread evenly over that time."""
    start = s[st.NOW]
    if end <= start:
        return
    lasts_s = (end - start) * TICK_S
    sums = (lasts_s, lasts_s * used, peaks_s[0], peaks_s[1])
    if start >= s[st.BIN_END]:
        s[st.BIN] = start // s[st.BIN_WIDTH]
        while s[st.BIN] >= bins.shape[0]:
            _fold(s, bins)
        s[st.BIN_END] = (s[st.BIN] + 1) * s[st.BIN_WIDTH]
    if end <= s[st.BIN_END]:
        _add(bins[s[st.BIN]], 1.0, sums)
        return
    while end > s[st.BIN_END]:
        _add(bins[s[st.BIN]], (s[st.BIN_END] - start) / float(end - s[st.NOW]), sums)
        start = s[st.BIN_END]
        if s[st.BIN] + 1 >= bins.shape[0]:
            _fold(s, bins)
        s[st.BIN] += 1
        s[st.BIN_END] = (s[st.BIN] + 1) * s[st.BIN_WIDTH]
    _add(bins[s[st.BIN]], (end - start) / float(end - s[st.NOW]), sums)
