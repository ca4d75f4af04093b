"""predict's closed loop is the one that simulate runs, whatever the layout of a replica."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.traffic.drawn import DrawnLoad
from gpuplan.studies.inference.closed_loop import closed_outcome
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.deployment import evaluated
from gpuplan.studies.inference.predict import is_loop_run, replica_forecast
from gpuplan.studies.naming import model_named
from gpuplan.studies.replay.closed_loop import closed_load, ended_together

FEW = settings(settings.get_profile("consistency"), max_examples=30)
SMALL = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "google/gemma-3-27b-it",  # windows
    "openai/gpt-oss-20b",  # windows and experts
    "deepseek-ai/DeepSeek-V2-Lite",  # latent attention
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2",  # a hybrid
)
LARGE = (
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-32B",
    "openai/gpt-oss-120b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "ai21labs/AI21-Jamba-1.5-Mini",
)
EXPERTS = (
    "Qwen/Qwen3-235B-A22B",
    "deepseek-ai/DeepSeek-V3.1",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-120b",
)
SPREADS = {
    "one": (SMALL, ((1, 1, 1), (2, 1, 1))),
    "tensor parallel": (LARGE, ((4, 1, 1), (8, 1, 1))),
    "stages": ((*SMALL, *LARGE), ((1, 1, 2), (2, 1, 2), (1, 1, 4), (4, 1, 2), (8, 1, 2))),
    "ranks": (EXPERTS, ((1, 2, 1), (1, 4, 1), (1, 8, 1), (2, 4, 1), (2, 8, 1), (1, 16, 1))),
    "latent": (("deepseek-ai/DeepSeek-V3.1",), ((8, 1, 1), (8, 1, 2))),
}
FABRIC_BYTES_PER_S = 400e9


@st.composite
def deployments(draw):
    """A replica of one server or of two, tensor parallel, in stages or data parallel."""
    models, layouts = SPREADS[draw(st.sampled_from(sorted(SPREADS)))]
    model, layout = draw(st.sampled_from(models)), draw(st.sampled_from(layouts))
    board = draw(st.sampled_from(["H100", "H200", "B200", "MI300X", "A100-80GB"]))
    lengths = draw(st.sampled_from([200, 1000, 4000, 12000])), draw(st.sampled_from([100, 300]))
    return model, board, layout, lengths


def deployed(drawn, n_users):
    model, board, (tp, dp, pp), (prompt, output) = drawn
    load = LoadRequest(n_concurrent=n_users, input_tokens=prompt, output_tokens=output)
    asked = PredictRequest(tp=tp, dp=dp, pp=pp, ep=tp * dp if dp > 1 else 1, load=load)
    if (n := tp * dp * pp) > 8:
        asked = replace(asked, span=replace(asked.span, network_bytes_per_s=FABRIC_BYTES_PER_S))
    choice = find_accelerator(f"{n}x{board}", read_catalog())
    return evaluated(setup_of(model_named(model, None), choice, asked)[0])


def is_taken(of):
    """What simulate refuses has no latency there."""
    load, context = of.setup.load, of.setup.model.max_context_tokens
    longest = 1.1 * (load.input_tokens + load.output_tokens)
    return of.fits and (context is None or longest < context)


def looped(of, n_users, n_each):
    """Mean latencies of `gpuplan simulate --users` after first requests, which come together."""
    load = of.setup.load
    lengths = (
        TokenLengths(mean_tokens=float(mean), shape="near")
        for mean in (load.input_tokens, load.output_tokens)
    )
    drawn = DrawnLoad(
        n_users=n_users, input=next(lengths), output=next(lengths), n_requests=n_users * n_each
    )
    source = closed_load(drawn, seed=7)

    def replay(loop):
        return closed_outcome(loop, of.fleet(1), bin_s=60.0)

    times = replay(ended_together(source.loop, source.n_loop, replay)).times
    assert times.is_finished.all()
    return times.ttft_s[n_users:].mean(), times.tpot_s[n_users:].mean()


@FEW
@given(deployments())
def test_one_user_waits_as_long_in_both(drawn):
    of = deployed(drawn, 1)
    assume(is_taken(of))
    served, (ttft_s, tpot_s) = replica_forecast(of).served, looped(of, 1, 12)
    assert served.tpot_s == pytest.approx(tpot_s, rel=0.05)
    # Where in a step a request comes is chance: two steps either way.
    assert abs(served.ttft_s - ttft_s) <= 0.05 * ttft_s + 2.0 * tpot_s


HYBRID_IN_STAGES = ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "MI300X", (1, 1, 2), (1000, 300))


def test_a_hybrid_in_stages_waits_as_long_in_both():
    """Found by drawing; a known failure, so that its kin stand aside below."""
    check_many(deployed(HYBRID_IN_STAGES, 64), 64)


@FEW
@given(deployments(), st.sampled_from([2, 8, 32, 64]))
def test_users_wait_as_long_in_both(drawn, n_users):
    of = deployed(drawn, n_users)
    assume(is_taken(of))
    assume(n_users < 64 or drawn[0] != HYBRID_IN_STAGES[0] or drawn[2][2] == 1)
    check_many(of, n_users)


def check_many(of, n_users):
    served, (ttft_s, tpot_s) = (
        replica_forecast(of).served,
        looped(of, n_users, max(50, 1600 // n_users)),
    )
    n = of.setup.load.output_tokens - 1
    assert served.ttft_s + n * served.tpot_s == pytest.approx(ttft_s + n * tpot_s, rel=0.15)
    assert served.tpot_s == pytest.approx(tpot_s, rel=0.2)


@pytest.mark.parametrize(
    ("layout", "prompt", "is_run"),
    [((4, 1, 1), 1000, False), ((2, 1, 2), 1000, True), ((1, 2, 1), 1000, True),
     ((4, 1, 1), 12000, True)],
)  # fmt: skip
def test_what_no_formula_of_one_batch_knows_is_run(layout, prompt, is_run):
    of = deployed(("Qwen/Qwen3-30B-A3B", "H200", layout, (prompt, 100)), 64)
    assert is_loop_run(of.setup) == is_run


def test_a_lone_prompt_is_read_by_one_rank():
    """4,000 tokens of DeepSeek-V3.1: seven ranks wait for the one that reads them."""
    alone = ("deepseek-ai/DeepSeek-V3.1", "H200", (1, 8, 1), (4000, 300))
    of = deployed(alone, 1)
    ttft_s, _ = looped(of, 1, 12)
    assert replica_forecast(of).served.ttft_s == pytest.approx(ttft_s, rel=0.1)
    # Its 17 G parameters outside the experts are on one rank: 2 x 17e9 x 4000 at 2 PFLOP/s.
    assert of.prompt_s > 2 * 16e9 * 4000 / 1.979e15 / 0.63
