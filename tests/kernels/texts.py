"""Loads whose prompts share text, and the oracle's view of the same text."""

import numpy as np

from gpuplan.domain.columns import ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.traffic.stream import Grouping, PrefixBlocks, Requests, requests_of
from gpuplan.simulation.serving.arrays import engine_state
from gpuplan.simulation.serving.kernels.engine import cost
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import one_engine
from kernels.reference_features import Request, StepTime

UNIT_TOKENS = 32


def plain(kernel):
    """The Python behind a piece of a kernel."""
    return getattr(kernel, "py_func", kernel)


def exact_time(fleet: Fleet) -> StepTime:
    """What the engine's table says of a step, in its own fixed-point unit."""
    state = engine_state(requests_of([0.0], [1], [1]), fleet, 60.0)
    engine, s = one_engine(state, 0), state.scalar[0]

    def step_time(n_prefill: int, pairs: int, n_ended: int, contexts: list[int]) -> int:
        s[st.N_DECODES], s[st.CONTEXT], s[st.N_ENDED] = len(contexts), sum(contexts), n_ended
        s[st.PREFILL_TOKENS], s[st.PREFILL_PAIRS] = n_prefill, pairs
        if n_prefill:
            return int(np.rint(plain(cost.mixed_step_s)(engine)[0] * cost.SCALE))
        return int(plain(cost.decode_line)(engine)[0])

    return step_time


def grouped_stream(draw: np.random.Generator, n: int) -> Requests:
    """Sessions whose turns begin with what was said before, and groups with one long beginning."""
    rate = 10.0 ** draw.uniform(-1, 3)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    if draw.integers(0, 2):
        arrive_s = np.round(arrive_s, 1)
    inputs = 1 + draw.geometric(1 / float(draw.integers(10, 250)), n)
    outputs = draw.geometric(1 / float(draw.integers(1, 90)), n)
    group = draw.integers(-1, max(1, int(n * draw.uniform(0.05, 0.5))), n)
    shared = np.zeros(n, dtype=np.int64)
    last: dict[int, int] = {}
    for i in range(n):
        q = last.get(int(group[i]), -1)
        if group[i] >= 0 and q >= 0:
            said = int(inputs[q] + outputs[q])
            shared[i] = min(said, 400) if draw.integers(0, 3) else draw.integers(0, said + 1)
            # A turn may ask nothing new, and end on the edge of a block.
            new = draw.integers(1, 60) if draw.integers(0, 3) else 0
            inputs[i] = max(1, shared[i] + new)
            if not draw.integers(0, 3):
                inputs[i] = max(16, inputs[i] - inputs[i] % 16)
            shared[i] = min(shared[i], inputs[i])
        last[int(group[i])] = i
    priority = draw.integers(0, 4, n)
    grouping = Grouping(prefix_group=group, prefix_tokens=shared, priority=priority)
    return requests_of(arrive_s, inputs, outputs, grouping=grouping)


def texts_of_groups(requests: Requests, block_tokens: int) -> list[list[tuple[int, int]]]:
    """Text of each request's shared blocks: those of the member before it, as far as it had any."""
    paths: list[list[tuple[int, int]]] = []
    last: dict[int, int] = {}
    for i, (group, shared) in enumerate(
        zip(requests.prefix_group.tolist(), requests.prefix_tokens.tolist(), strict=True)
    ):
        q = last.get(group, -1)
        path: list[tuple[int, int]] = []
        if group >= 0 and q >= 0:
            total = int(requests.input_tokens[q] + requests.output_tokens[q]) // block_tokens
            known = len(paths[q])
            said = paths[q] + [(q, place) for place in range(total - known)]
            path = said[: min(shared, int(requests.input_tokens[i])) // block_tokens]
        paths.append(path)
        last[group] = i
    return paths


def traced_stream(draw: np.random.Generator, n: int) -> tuple[Requests, PrefixBlocks]:
    """Prompts as walks down a tree of blocks, numbered by first use, as traces have them."""
    rate = 10.0 ** draw.uniform(-1, 3)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    outputs = draw.geometric(1 / float(draw.integers(1, 90)), n)
    inputs, numbers, first = [], [], [0]
    known: dict[tuple[int, ...], int] = {}
    n_ways = int(draw.integers(1, 4))
    for i in range(n):
        depth, ways = int(draw.integers(1, 9)), tuple(draw.integers(0, n_ways, 8).tolist())
        fill = UNIT_TOKENS if draw.integers(0, 2) else int(draw.integers(1, UNIT_TOKENS + 1))
        inputs.append((depth - 1) * UNIT_TOKENS + fill)
        for level in range(depth):
            is_part = level == depth - 1 and fill < UNIT_TOKENS
            key = (*ways[: level + 1], -1 - i) if is_part else ways[: level + 1]
            numbers.append(known.setdefault(key, len(known)))
        first.append(len(numbers))
    blocks = PrefixBlocks(n_block_tokens=UNIT_TOKENS, first=ints(first), block=ints(numbers))
    priority = draw.integers(0, 4, n)
    return requests_of(arrive_s, inputs, outputs, grouping=Grouping(priority=priority)), blocks


def texts_of_blocks(
    requests: Requests, blocks: PrefixBlocks, block_tokens: int
) -> list[list[tuple[int, int]]]:
    """A block is named by the first request that had it, with all before it."""
    paths: list[list[tuple[int, int]]] = []
    names: dict[tuple[int, ...], tuple[int, int]] = {}
    each = blocks.n_block_tokens // block_tokens
    for i in range(len(requests)):
        units = blocks.block[blocks.first[i] : blocks.first[i + 1]].tolist()
        full = int(requests.input_tokens[i]) // block_tokens
        keys = [(*units[: place // each + 1], -place) for place in range(full)]
        path: list[tuple[int, int]] = []
        for key in keys:
            if key not in names:
                break
            path.append(names[key])
        for place in range(len(path), full):
            names[keys[place]] = (i, place - len(path))
        paths.append(path)
    return paths


def rows_of(requests: Requests, paths: list[list[tuple[int, int]]]) -> list[Request]:
    since = np.rint((requests.arrive_s - requests.arrive_s[0]) * st.TICKS_PER_S).astype(np.int64)
    return [
        Request(
            number=i, arrive=int(since[i]) << st.FRAC_BITS, n_input=int(requests.input_tokens[i]),
            n_output=int(requests.output_tokens[i]), priority=int(requests.priority[i]),
            path=paths[i],
        )
        for i in range(len(requests))
    ]  # fmt: skip
