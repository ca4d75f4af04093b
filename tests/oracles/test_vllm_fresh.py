"""Fresh random streams through vLLM's own scheduler, where an environment has it.

Set GPUPLAN_VLLM_PYTHON to its interpreter (`tools/check_vllm.py --install FOLDER` makes one),
GPUPLAN_VLLM_PATH to a folder with another version, and GPUPLAN_VLLM_SEEDS to how many streams of
every regime are drawn.
"""

import os
import sys
from pathlib import Path

import pytest

from oracles.vllm.fresh import MODES, cases
from oracles.vllm.mixes import mixed
from oracles.vllm.runs import ours, text_of
from shared_data import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import check_vllm

PYTHON = os.environ.get("GPUPLAN_VLLM_PYTHON", "")
N_SEEDS = int(os.environ.get("GPUPLAN_VLLM_SEEDS", "1"))
FIRST = 700


@pytest.mark.skipif(not PYTHON, reason="set GPUPLAN_VLLM_PYTHON to an environment with vLLM")
@pytest.mark.skipif(not check_vllm.HARNESS.is_dir(), reason="the harness is kept elsewhere")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + N_SEEDS))
def test_the_engine_itself_serves_every_stream_alike(seed: int):
    streams = cases(seed, 40) | {f"mix {k}": mixed(k) for k in range(10 * seed, 10 * seed + 10)}
    other = os.environ.get("GPUPLAN_VLLM_PATH")
    engine = check_vllm.started(Path(PYTHON), Path(other) if other else None)
    found = {
        name: check_vllm.difference(case, engine.answer(case), engine.version)
        for name, case in streams.items()
    }
    engine.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_streams_cover_modes_and_share_text():
    streams = cases(1, 12)
    assert {name.split("|")[0] for name in streams} == set(MODES)
    texts = [text_of(case) for case in streams.values()]
    assert any(text is not None and text.n_distinct < len(text.block) for text in texts)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_jumps_are_steps_where_text_grows_while_others_wait(seed: int):
    """A prompt that is recomputed and then decodes lets who waits find more of its text."""
    streams = cases(seed, 40)
    for mode in MODES:
        for regime in ("sessions, tight", "all policies, tight"):
            case = streams[f"{mode}|{regime}/{seed}"]
            jump, step = (ours(case, "0.32.0", method) for method in ("jump", "step"))
            assert jump.times.e2e_s.tolist() == step.times.e2e_s.tolist()
            assert jump.totals.n_steps == step.totals.n_steps
