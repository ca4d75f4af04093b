"""One engine, token by token: the same rules with every sequence looked at in every step.

It serves what breaks the order that jumps rely on (a limit on long prompts: several are half
read at once, and a decode may go without a token), and is what the jumping engine is held to.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.loop import schedule_end
from gpuplan.simulation.serving.kernels.engine.state import (
    Engine,
    Engines,
    Ints,
    append_waiting,
    learn,
    n_blocks,
    one_engine,
    pop_waiting,
    prepend_waiting,
)
from gpuplan.simulation.serving.kernels.jit.compiled import kernel, part
from gpuplan.simulation.serving.kernels.jit.held import held

# Columns of what runs, in order of admission.
RUN_ID, RUN_DONE, RUN_NEW, RUN_DECODES = range(4)
N_RUN = 4


@part
def _tokens(e: Engine, i: int) -> int:
    return int(e.request[i, st.INPUT] + e.request[i, st.MADE])


@part
def _share(e: Engine, n_left: int, budget: int) -> int:
    """Tokens of one request in this step."""
    longest = e.limit[st.LONG_PREFILL]
    if 0 < longest < n_left:
        n_left = longest
    return min(n_left, budget)


@part
def _drop_last(e: Engine, running: Ints) -> None:
    s = e.scalar
    s[st.N_RUNNING] -= 1
    i, done = running[s[st.N_RUNNING], RUN_ID], running[s[st.N_RUNNING], RUN_DONE]
    s[st.FREE] += n_blocks(e.limit, done)
    prepend_waiting(e.scalar, e.request, i)
    e.request[i, st.PREEMPTED] += 1
    e.request[i, st.GIVEN] = 0
    s[st.N_PREEMPTIONS] += 1


@part
def _load(e: Engine, row: Ints) -> None:
    """Count what the row's request brings to the step."""
    s = e.scalar
    n_new, done = row[RUN_NEW], row[RUN_DONE]
    if row[RUN_DECODES]:
        s[st.N_DECODES] += 1
        s[st.CONTEXT] += done + 1
        return
    s[st.PREFILL_TOKENS] += n_new
    s[st.PREFILL_PAIRS] += n_new * (2 * done + n_new)
    s[st.N_ENDED] += 1 if done + n_new == _tokens(e, row[RUN_ID]) else 0


@part
def _go_on(e: Engine, running: Ints) -> int:
    """What runs gets its tokens and blocks in order; the budget that is left."""
    s, budget, at = e.scalar, e.limit[st.MAX_TOKENS], 0
    while at < s[st.N_RUNNING] and budget > 0:
        row = running[at]
        i, done = row[RUN_ID], row[RUN_DONE]
        n_new = _share(e, _tokens(e, i) - done, budget)
        needed = n_blocks(e.limit, done + n_new) - n_blocks(e.limit, done)
        while needed > s[st.FREE] and at < s[st.N_RUNNING]:
            _drop_last(e, running)
        if at >= s[st.N_RUNNING]:
            break
        s[st.FREE] -= needed
        row[RUN_NEW] = n_new
        _load(e, row)
        budget -= n_new
        at += 1
    for rest in range(at, s[st.N_RUNNING]):
        running[rest, RUN_NEW] = 0
    return int(budget)


@part
def _admit(e: Engine, running: Ints, budget: int) -> None:
    s = e.scalar
    while budget > 0 and s[st.N_RUNNING] < e.limit[st.MAX_SEQUENCES]:
        i = s[st.WAIT_HEAD]
        if i < 0 or e.request[i, st.ARRIVE] > s[st.KNOWN]:
            return
        given = e.request[i, st.GIVEN]
        n_new = _share(e, _tokens(e, i) - given, budget)
        must_fit = _tokens(e, i) if e.limit[st.IS_RESERVING] else given + n_new
        if n_blocks(e.limit, must_fit) > s[st.FREE]:
            return
        pop_waiting(e.scalar, e.request)
        row = running[s[st.N_RUNNING]]
        row[RUN_ID], row[RUN_DONE], row[RUN_NEW], row[RUN_DECODES] = i, given, n_new, 0
        s[st.N_RUNNING] += 1
        s[st.FREE] -= n_blocks(e.limit, given + n_new)
        if e.request[i, st.START] < 0:
            e.request[i, st.START] = s[st.NOW]
        _load(e, row)
        budget -= n_new


@part
def _gain(e: Engine, running: Ints) -> None:
    """Tokens appear, finished requests leave, the order of the others stays."""
    s, kept = e.scalar, 0
    for at in range(s[st.N_RUNNING]):
        row = running[at]
        i = row[RUN_ID]
        row[RUN_DONE] += row[RUN_NEW]
        if row[RUN_NEW] > 0 and row[RUN_DONE] == _tokens(e, i):
            e.request[i, st.MADE] += 1
            row[RUN_DECODES] = 1
            if e.request[i, st.FIRST] < 0:
                e.request[i, st.FIRST] = s[st.NOW]
            if e.request[i, st.MADE] == e.request[i, st.OUTPUT]:
                e.request[i, st.END] = s[st.NOW]
                s[st.FREE] += n_blocks(e.limit, row[RUN_DONE])
                continue
        for column in range(row.shape[0]):
            running[kept, column] = row[column]
        kept += 1
    s[st.N_RUNNING] = kept


@part
def _step(e: Engine, running: Ints) -> None:
    s = e.scalar
    s[st.N_DECODES] = s[st.CONTEXT] = s[st.PREFILL_TOKENS] = s[st.PREFILL_PAIRS] = s[st.N_ENDED] = 0
    s[st.USED_BEFORE] = e.limit[st.N_BLOCKS] - s[st.FREE]
    n_before = s[st.N_PREEMPTIONS]
    budget = _go_on(e, running)
    if s[st.N_PREEMPTIONS] == n_before:
        _admit(e, running, budget)
    lasts = schedule_end(e) + s[st.FRAC]
    end = s[st.NOW] + (lasts >> st.FRAC_BITS)
    used = 0.5 * (s[st.USED_BEFORE] + e.limit[st.N_BLOCKS] - s[st.FREE])
    account(e.scalar, e.bins, end, used, (e.flight_s[0], e.flight_s[1]))
    s[st.COMPUTED] += s[st.PREFILL_TOKENS] + s[st.N_DECODES]
    s[st.N_STEPS] += min(1, s[st.PREFILL_TOKENS] + s[st.N_DECODES])
    begun = s[st.NOW]
    s[st.NOW], s[st.FRAC] = end, lasts & st.FRAC_MASK
    _gain(e, running)
    learn(e.scalar, e.limit, begun)


@kernel
def run_plain(engines: Engines, accepted: Ints, running: Ints) -> None:
    """Each request goes to the next engine in turn; every engine steps to its end."""
    n_engines = engines.scalar.shape[0]
    for turn in range(accepted.shape[0]):
        append_waiting(engines.scalar[turn % n_engines], engines.request, accepted[turn])
    for r in range(n_engines):
        e = held(one_engine(engines, r))
        s = e.scalar
        while s[st.N_RUNNING] > 0 or s[st.WAIT_HEAD] >= 0:
            if s[st.N_RUNNING] == 0 and e.request[s[st.WAIT_HEAD], st.ARRIVE] > s[st.NOW]:
                s[st.NOW], s[st.FRAC] = e.request[s[st.WAIT_HEAD], st.ARRIVE], 0
                s[st.KNOWN] = s[st.NOW]
            _step(e, running)
