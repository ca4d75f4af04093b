"""Published traces as their producers wrote them, with the rows and the quirks that they have."""

import numpy as np
import pytest

from gpuplan.demand.mixes import mix_requests
from gpuplan.demand.statistics import summary
from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import InputError
from gpuplan.inputs.traces.read import read_trace, stream_trace
from gpuplan.inputs.traces.servegen import read_servegen
from shared_data import shared_file

pytestmark = pytest.mark.shared

TRACES = [
    ("azure_llm_2023/AzureLLMInferenceTrace_conv.csv", "azure", 19_366, "no zone"),
    ("mooncake_fast25/mooncake_arxiv_first1000.jsonl", "mooncake", 1000, "milliseconds"),
    ("mooncake_fast25/synthetic_trace.jsonl", "mooncake", 3993, "512 tokens"),
    ("ragpulse/0_trace.jsonl", "ragpulse", 5167, "starts again at line 2893"),
    ("vidur_processed/splitwise_conv.csv", "vidur", 19_366, "seconds"),
    ("vidur_reference/trace_splitwise_conv_poisson6.45_10k.csv", "vidur", 10_000, "seconds"),
    ("llm_lengths/nanoflow_lmsys.csv", "azure", 100_000, "no times"),
    ("llm_lengths/nanoflow_sharegpt.csv", "azure", 58_787, "no times"),
    (
        "llm_lengths/vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv",
        "vidur-lengths",
        28_257,
        "no times",
    ),
    (
        "llm_lengths/etalon_sharegpt_8k_filtered_stats_llama2_tokenizer.csv",
        "vidur-lengths",
        30_731,
        "no times",
    ),
    ("dynamo_agent_trace/pi_request_trace.jsonl.gz", "dynamo", 17, "44 events"),
    (
        "inferencex_runs/aiperf_kimik27_mi355x/conc1_kvnone__profile_export.jsonl",
        "aiperf",
        195,
        "1 warm-up",
    ),
    (
        "inferencex_runs/raw_samples/tp1_bs64_offloadoff__metrics_client_metrics.csv",
        "vllm-multiturn",
        5063,
        "8 prompts have 0 tokens",
    ),
]


@pytest.mark.parametrize(("name", "known", "n", "quirk"), TRACES)
def test_published_trace(name, known, n, quirk):
    found = read_trace(shared_file(f"traces/{name}"))
    assert (found.format, len(found.requests), found.n_bad) == (known, n, 0)
    assert any(quirk in sentence for sentence in found.remarks), found.remarks


def test_two_publications_of_one_hour_agree():
    """Vidur's copy of the Azure trace was made by others from the same file."""
    azure = read_trace(shared_file("traces/azure_llm_2023/AzureLLMInferenceTrace_conv.csv"))
    vidur = read_trace(shared_file("traces/vidur_processed/splitwise_conv.csv"))
    np.testing.assert_allclose(azure.requests.arrive_s, vidur.requests.arrive_s, atol=1e-6)
    assert np.array_equal(azure.requests.input_tokens, vidur.requests.input_tokens)
    assert np.array_equal(azure.requests.output_tokens, vidur.requests.output_tokens)


def test_vidurs_poisson_arrivals_have_their_longest_gaps_cut():
    """The gaps are exponential at 6.45 a second, but none is longer than three means.

    Such gaps have the mean 1 - exp(-3) and the second moment 2 - 8 exp(-3): faster than asked,
    and steadier than Poisson.
    """
    name = "traces/vidur_reference/trace_splitwise_conv_poisson6.45_10k.csv"
    requests = read_trace(shared_file(name)).requests
    found = summary(requests)
    mean, square = 1 - np.exp(-3), 2 - 8 * np.exp(-3)
    assert np.diff(requests.arrive_s).max() == pytest.approx(3 / 6.45, rel=1e-3)
    assert found.mean_requests_per_s == pytest.approx(6.45 / mean, rel=0.02)
    assert found.gap_cv_ratio == pytest.approx(np.sqrt(square - mean**2) / mean, rel=0.02)


@pytest.mark.parametrize("name", ["mooncake_arxiv_first1000.jsonl", "synthetic_trace.jsonl"])
def test_every_prompt_of_mooncake_fills_its_blocks(name):
    found = read_trace(shared_file(f"traces/mooncake_fast25/{name}"))
    n_blocks = np.diff(found.blocks.first)
    assert np.array_equal(n_blocks, -(-found.requests.input_tokens // 512))
    assert not any("more or fewer" in sentence for sentence in found.remarks)
    assert np.all(found.requests.prefix_tokens <= found.requests.input_tokens)


def test_a_file_of_eleven_runs_is_read_run_by_run():
    path = shared_file("traces/inferencex_runs/multiturn_client_metrics.csv.gz")
    with pytest.raises(InputError, match="holds 11 runs"):
        read_trace(path)
    one = read_trace(path, TraceQuery(where=(("run", "tp1_bs64_offloadoff"),)))
    alone = "traces/inferencex_runs/raw_samples/tp1_bs64_offloadoff__metrics_client_metrics.csv"
    same = read_trace(shared_file(alone))
    np.testing.assert_allclose(one.requests.arrive_s, same.requests.arrive_s, atol=1e-3)
    assert np.array_equal(one.requests.input_tokens, same.requests.input_tokens)


def test_two_machines_in_one_file_are_laid_end_to_end():
    found = read_trace(shared_file("measured/vllm_requests.csv"))
    assert len(found.requests) == 600
    assert any("starts again at line 302" in sentence for sentence in found.remarks)
    query = TraceQuery(where=(("gpu", "RTX4090"),))
    one = read_trace(shared_file("measured/vllm_requests.csv"), query)
    assert len(one.requests) == 300


@pytest.mark.parametrize(
    "name",
    [
        "vllm_server_logs/detail_log_scale100_prompt500.json",
        "vllm_server_logs/vllm_log_scale100_prompt500.csv",
        "inferencex_runs/aiperf_kimik27_mi355x/conc1_kvnone__profile_export_aiperf.json",
        "vidur_reference/vidur_metrics.csv",
        "servegen/servegen_client_rates.parquet",
    ],
)
def test_what_holds_no_requests_is_refused(name):
    with pytest.raises(InputError):
        read_trace(shared_file(f"traces/{name}"))


def test_streaming_gives_what_reading_gives():
    path = shared_file("traces/llm_lengths/nanoflow_lmsys.csv")
    n = [len(part) for part in stream_trace(path)]
    assert sum(n) == 100_000
    assert len(n) == 2


@pytest.mark.parametrize(
    ("model", "n_clients"), [("m-large", 162), ("m-small", 43), ("mm-image", 35)]
)
def test_servegen_clients_come_back_at_their_rates(model, n_clients):
    rates = shared_file("traces/servegen/servegen_client_rates.parquet")
    lengths = shared_file("traces/servegen/servegen_client_pdfs.parquet")
    mix = read_servegen(rates, lengths, model=model).mix
    assert len(mix.clients) == n_clients
    begin, duration = 36_000.0, 600.0
    found, _ = mix_requests(mix, start_s=begin, duration_s=duration, seed=1)
    expected = sum(
        float(client.requests_per_s[client.start_s == begin].sum()) * duration
        for client in mix.clients
    )
    assert len(found) == pytest.approx(expected, rel=0.05)


def test_servegen_without_the_model_is_refused():
    rates = shared_file("traces/servegen/servegen_client_rates.parquet")
    lengths = shared_file("traces/servegen/servegen_client_pdfs.parquet")
    with pytest.raises(InputError, match="no client of model"):
        read_servegen(rates, lengths, model="other")
    with pytest.raises(InputError, match="has no column"):
        read_servegen(lengths, rates, model="m-large")
