"""Requests as rows and back, in one pass each: columns in, rows; rows in, seconds of each."""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Floats, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import kernel

# Columns of seconds, and of counts, that a run answers with.
WAIT_S, TTFT_S, TPOT_S, E2E_S = range(4)
N_PREEMPTED, IS_FINISHED = range(2)


@kernel
def fill_records(records: Ints, arrive_s: Floats, inputs: Ints, outputs: Ints) -> None:
    """Rows of requests that nobody has seen; times count from the first arrival."""
    for i in range(records.shape[0]):
        row = records[i]
        row[st.ARRIVE] = int(np.rint((arrive_s[i] - arrive_s[0]) * st.TICKS_PER_S))
        row[st.INPUT], row[st.OUTPUT] = inputs[i], outputs[i]
        row[st.MADE] = row[st.PREEMPTED] = row[st.GIVEN] = 0
        row[st.START] = row[st.FIRST] = row[st.END] = row[st.NEXT_WAITING] = st.NONE


@kernel
def read_records(records: Ints, start_s: float, seconds: Floats, counts: Ints) -> tuple[int, int]:
    """Times of each request, zeros where it did not finish; how many did, and when the last."""
    n_finished, last = 0, 0
    for i in range(records.shape[0]):
        row = records[i]
        is_finished = row[st.END] >= 0
        counts[N_PREEMPTED, i], counts[IS_FINISHED, i] = row[st.PREEMPTED], is_finished
        if not is_finished:
            seconds[WAIT_S, i] = seconds[TTFT_S, i] = seconds[TPOT_S, i] = seconds[E2E_S, i] = 0.0
            continue
        n_finished += 1
        last = max(last, row[st.END])
        seconds[WAIT_S, i] = (row[st.START] - row[st.ARRIVE]) / st.TICKS_PER_S
        seconds[TTFT_S, i] = (row[st.FIRST] - row[st.ARRIVE]) / st.TICKS_PER_S + start_s
        seconds[TPOT_S, i] = (
            (row[st.END] - row[st.FIRST]) / st.TICKS_PER_S / max(row[st.OUTPUT] - 1, 1)
        )
        seconds[E2E_S, i] = (row[st.END] - row[st.ARRIVE]) / st.TICKS_PER_S + start_s
    return n_finished, last
