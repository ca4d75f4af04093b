"""Phases that recorders state, held against those that are told: macro recall over node-seconds."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.diagnose.phases import node_phases
from gpuplan.observe.read import read_telemetry
from shared_data import shared_file


def macro_recall(telemetry, *, without: tuple[str, ...] = ()) -> float:
    told = node_phases(telemetry)
    right: Counter[str] = Counter()
    stated: Counter[str] = Counter()
    for span in telemetry.spans:
        if span.subject or span.label in without:
            continue
        for at_s in np.arange(span.begin_s + 0.5, span.end_s, 1.0):
            phase = next((one.phase for one in told if one.begin_s <= at_s < one.end_s), "none")
            stated[span.label] += 1
            right[span.label] += phase == span.label
    return float(np.mean([right[label] / n for label, n in stated.items()]))


def recorded(name: str):
    return read_telemetry(shared_file(f"traces/h100_workload_telemetry/{name}.csv.gz"))


def test_a_run_that_no_rule_was_written_with():
    assert macro_recall(recorded("t10_node0_ib")) >= 0.9


@pytest.mark.parametrize("period_s", [1.0, 10.0, 30.0])
def test_slower_recorders_tell_the_same_story(period_s):
    whole = recorded("t2_telemetry")
    step = round(period_s / 0.1)
    series = tuple(
        replace(one, at_s=one.at_s[::step].copy(), value=one.value[::step].copy())
        for one in whole.series
    )
    # Five seconds at the end hold no sample of a slow recorder.
    thin = replace(whole, series=series)
    assert macro_recall(thin, without=("init", "cooldown")) >= 0.85
