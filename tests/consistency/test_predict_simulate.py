"""predict's closed loop is the one that simulate runs, whatever the layout of a replica."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.traffic.stream import ClosedLoop
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.deployment import evaluated
from gpuplan.studies.inference.predict import replica_forecast
from gpuplan.studies.naming import model_named
from gpuplan.studies.replay.closed_loop import closed_outcome

FEW = settings(settings.get_profile("consistency"), max_examples=12)
DENSE = ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-32B")
EXPERTS = ("Qwen/Qwen3-235B-A22B", "deepseek-ai/DeepSeek-V3.1", "Qwen/Qwen3-30B-A3B")
FABRIC_BYTES_PER_S = 400e9


@st.composite
def deployments(draw):
    """A replica of one server or of two, tensor parallel or with data-parallel attention."""
    ranks = st.sampled_from([2, 4, 8, 16])
    if draw(st.booleans()):
        model, tp, dp = draw(st.sampled_from(DENSE)), draw(st.sampled_from([1, 2, 4, 8])), 1
    else:
        model, tp, dp = draw(st.sampled_from(EXPERTS)), draw(st.sampled_from([1, 2])), draw(ranks)
    board = draw(st.sampled_from(["H100", "H200", "B200", "MI300X"]))
    lengths = draw(st.sampled_from([200, 1000, 4000])), draw(st.sampled_from([100, 300]))
    return model, board, tp, dp, lengths


def deployed(drawn, n_users):
    model, board, tp, dp, (prompt, output) = drawn
    load = LoadRequest(n_concurrent=n_users, input_tokens=prompt, output_tokens=output)
    asked = PredictRequest(tp=tp, dp=dp, ep=tp * dp if dp > 1 else 1, load=load)
    if tp * dp > 8:
        fabric = replace(asked.span, network_bytes_per_s=FABRIC_BYTES_PER_S)
        asked = replace(asked, span=fabric)
    choice = find_accelerator(f"{tp * dp}x{board}", read_catalog())
    return evaluated(setup_of(model_named(model, None), choice, asked)[0])


def looped(of, n_users, n_each):
    """Mean latencies after the first requests, which all come together; lengths as benchmarks'."""
    n, load = n_users * n_each, of.setup.load
    part = 1.0 - 0.2 * np.random.default_rng(1).random(n)
    loop = ClosedLoop(
        user=ints(np.repeat(np.arange(n_users), n_each)),
        think_s=floats(np.zeros(n)),
        input_tokens=ints(np.full(n, load.input_tokens)),
        output_tokens=ints(np.maximum(1, np.rint(load.output_tokens * part))),
    )
    times = closed_outcome(loop, of.fleet(1), bin_s=60.0).times
    assert times.is_finished.all()
    rows = slice(n_users, n - n_users)
    return times.ttft_s[rows].mean(), times.tpot_s[rows].mean()


@FEW
@given(deployments())
def test_one_user_waits_as_long_in_both(drawn):
    of = deployed(drawn, 1)
    assume(of.fits)
    served, (ttft_s, tpot_s) = replica_forecast(of).served, looped(of, 1, 12)
    assert served.tpot_s == pytest.approx(tpot_s, rel=0.05)
    # Where in a step a request comes is chance: two steps either way.
    assert abs(served.ttft_s - ttft_s) <= 0.05 * ttft_s + 2.0 * tpot_s


@FEW
@given(deployments())
def test_eight_users_wait_as_long_in_both(drawn):
    of = deployed(drawn, 8)
    assume(of.fits)
    served, (ttft_s, tpot_s) = replica_forecast(of).served, looped(of, 8, 20)
    n = of.setup.load.output_tokens * 0.9
    assert served.ttft_s + n * served.tpot_s == pytest.approx(ttft_s + n * tpot_s, rel=0.15)


def test_a_lone_prompt_is_read_by_one_rank():
    """4,000 tokens of DeepSeek-V3.1: seven ranks wait for the one that reads them."""
    alone = ("deepseek-ai/DeepSeek-V3.1", "H200", 1, 8, (4000, 300))
    of = deployed(alone, 1)
    ttft_s, _ = looped(of, 1, 12)
    assert replica_forecast(of).served.ttft_s == pytest.approx(ttft_s, rel=0.1)
    # Its 17 G parameters outside the experts are on one rank: 2 x 17e9 x 4000 at 2 PFLOP/s.
    assert of.prompt_s > 2 * 16e9 * 4000 / 1.979e15 / 0.63
