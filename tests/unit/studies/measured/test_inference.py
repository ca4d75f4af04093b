import pytest

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.errors import PlannerError
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.measured.notation import formats_of
from gpuplan.studies.validation.inference import predicted_serving
from gpuplan.studies.validation.inference_table import benchmark_of
from gpuplan.studies.validation.report import predicted_rows

PLAIN = {
    "id": "x", "source": "test", "accelerator": "H100 SXM", "n_accelerators": "8",
    "model": "Llama-3.1-70B", "precision": "FP8", "engine": "vLLM", "engine_version": "0.11.1",
    "tp": "8", "pp": "1", "layout_note": "", "regime": "max_load", "batch": "",
    "request_rate_per_s": "", "input_tokens": "1000", "output_tokens": "500", "flag": "",
}  # fmt: skip


def setup(**changes: str):
    return serving_setup({**PLAIN, **changes})


@pytest.mark.parametrize(
    ("changes", "layout"),
    [
        ({}, ServingLayout(tp=8)),
        ({"tp": "4"}, ServingLayout(tp=4)),
        ({"tp": "", "layout_note": "Pipeline Parallelism"}, ServingLayout(tp=1, pp=8)),
        ({"layout_note": "attention_dp=1 moe_tp=1 moe_ep=8"}, ServingLayout(tp=8, ep=8)),
        (
            {"tp": "1", "layout_note": "attention_dp=8 moe_tp=1 moe_ep=8"},
            ServingLayout(tp=1, dp=8, ep=8),
        ),
        ({"tp": "1", "layout_note": "EP8 DP1 task=gpqa"}, ServingLayout(tp=8, ep=8)),
        (
            {"layout_note": "DEP4 (attention-DP + expert-parallel)"},
            ServingLayout(tp=1, dp=4, ep=4),
        ),
    ],
)
def test_layouts_are_read_from_columns_and_notes(changes, layout):
    assert setup(**changes).layout == layout


def test_replicas_are_what_the_layout_leaves_over():
    assert setup(tp="2").n_replicas == 4
    assert setup(layout_note="DEP4").n_replicas == 2


@pytest.mark.parametrize(
    ("text", "weights", "cache"),
    [("FP8", "fp8", "bf16"), ("Mixed", None, "bf16"), ("16-bit (default in study)", None, "bf16"),
     ("Weight = fp16, KV Cache = fp8", None, "fp8"), ("NVFP4, FP8 KV", "nvfp4", "fp8"),
     ("fp4", "nvfp4", "bf16")],
)  # fmt: skip
def test_precisions_are_read_as_sources_write_them(text, weights, cache):
    storage = setup(precision=text).storage
    assert (storage.quantized.name if storage.quantized else None) == weights
    assert storage.cache.name == cache


def test_tensorrt_llm_keeps_an_8_bit_cache_beside_8_bit_weights():
    assert setup(engine="TensorRT-LLM", engine_version="0.17.0").storage.cache.name == "fp8"


def test_lengths_that_a_source_leaves_out_come_from_its_task():
    load = setup(input_tokens="", layout_note="EP1 DP1 task=gpqa", regime="fixed_max_batch").load
    assert load.input_tokens == 300
    mlperf = setup(source="mlperf_loadgen_logs", model="GPT-J-6B", input_tokens="",
                   output_tokens="", regime="offline", tp="")  # fmt: skip
    assert (mlperf.load.input_tokens, mlperf.load.output_tokens) == (870, 69)


def test_whole_mi250_cards_are_two_devices():
    found = setup(accelerator="MI250", n_accelerators="2", tp="2", precision="FP16")
    assert found.layout.tp == 4
    assert found.n_replicas == 1


def test_pairs_of_gh200_are_joined_by_a_network_and_fours_by_nvlink():
    pair = setup(accelerator="GH200", n_accelerators="2", tp="2").accelerator.scale_up
    four = setup(accelerator="GH200", n_accelerators="4", tp="4").accelerator.scale_up
    assert pair.name == "network"
    assert four.n_domain == 4


@pytest.mark.parametrize("name", ["Mistral-7B", "Llama-3-8B", "bloom-176b",
                                  "Qwen3-235B-A22B-Instruct-2507-FP8"])  # fmt: skip
def test_names_of_tables_lead_to_models_of_the_same_shape(name):
    assert setup(model=name).model.n_params > 6e9


@pytest.mark.parametrize(
    "changes", [{"model": "NoSuchModel-1B"}, {"accelerator": "NoSuchChip"}, {"regime": "dance"}]
)
def test_unknown_names_are_refused_with_a_reason(changes):
    with pytest.raises(PlannerError):
        setup(**changes)


def labels_of(**changes):
    asked = {**PLAIN, **changes}
    return inference_labels(serving_setup(asked), benchmark=benchmark_of(asked))


SUITE = {"source": "inferencex/nvidia closed loop", "regime": "fixed_concurrency"}
SGLANG = {**SUITE, "engine": "SGLang", "engine_version": "0.5.9"}


def test_a_suite_says_how_often_its_servers_look_for_requests():
    few, many = (labels_of(**SGLANG, accelerator="B200 SXM", batch=n) for n in ("8", "16"))
    assert (few["polling"], many["polling"]) == ("often", "seldom")
    vllm = {**SUITE, "engine": "vLLM", "engine_version": "0.19.0", "accelerator": "B200 SXM"}
    assert labels_of(**vllm, batch="16")["polling"] == "no"
    alone = {**SGLANG, "source": "", "accelerator": "B200 SXM"}
    assert labels_of(**alone)["polling"] == "no"


def test_scripts_of_a_suite_that_leave_the_default_do_not_poll_seldom():
    assert labels_of(**SGLANG, accelerator="H200 SXM", batch="64")["polling"] == "no"
    glm = {**SGLANG, "model": "GLM-5", "accelerator": "B200 SXM", "batch": "64", "tp": "8"}
    assert labels_of(**glm, precision="fp8")["polling"] == "no"
    assert labels_of(**glm, precision="fp4")["polling"] == "often"


def test_a_suite_has_vllm_plan_ahead_before_it_is_the_default():
    old = {"engine": "vLLM", "engine_version": "0.11.2", "regime": "fixed_concurrency"}
    plain, suite = labels_of(**old), labels_of(**{**SUITE, **old})
    assert plain["release"] == plain["era"] == suite["era"] == "vllm-0.10"
    assert suite["release"] == "vllm-0.13"


def test_only_served_rows_have_a_server_in_front():
    modes = {
        regime: labels_of(regime=regime, batch="8")["mode"]
        for regime in ("static_batch", "max_load", "offline", "prefill")
    }
    assert set(modes.values()) == {"offline"}
    for regime in ("fixed_concurrency", "fixed_max_batch", "poisson"):
        assert labels_of(regime=regime, batch="8", request_rate_per_s="1")["mode"] == "served"


def test_an_era_that_takes_its_nearest_keeps_its_own_release():
    labels = labels_of(engine="vLLM", engine_version="0.99")
    assert labels["release"] == labels["era"] == "vllm-0.13"
    assert labels["generation"] == "2026"


@pytest.mark.parametrize(
    ("text", "changes", "regime"),
    [
        ("FIXED_CONCURRENCY", {"batch": "8"}, "fixed_concurrency"),
        ("closed_loop", {"batch": "8"}, "fixed_concurrency"),
        ("server", {"request_rate_per_s": "3"}, "poisson"),
        ("open_loop", {"request_rate_per_s": "3"}, "poisson"),
        ("poisson", {"request_rate_per_s": "inf"}, "max_load"),
        ("poisson", {}, "max_load"),
        ("max load, 512 requests", {}, "max_load"),
        ("Static_Batch", {"batch": "8"}, "static_batch"),
        ("MLPerf offline", {}, "offline"),
    ],
)
def test_regimes_are_read_as_sources_write_them(text, changes, regime):
    assert setup(regime=text, **changes).load.regime == regime


@pytest.mark.parametrize("cell", ["1,02", "1024,5", "512-1024", "~8", "nan", "-3", "1k", "inf"])
@pytest.mark.parametrize("column", ["batch", "tp", "n_accelerators", "input_tokens"])
def test_a_cell_that_is_no_number_is_named(column, cell):
    with pytest.raises(PlannerError, match=column):
        setup(**{column: cell})


@pytest.mark.parametrize("cell", ["-", "–", "n/a", "N/A", " "])
def test_a_cell_that_says_nothing_is_empty(cell):
    assert setup(batch=cell) == setup(batch="")


def test_thousands_are_read_in_counts_alone():
    assert setup(input_tokens="1,000").load.input_tokens == 1000.0
    row = {**PLAIN, "measured_tpot_mean_ms": "7,456"}  # 7.456 or 7456: nobody can tell
    _, refused = predicted_rows([row], predicted_serving)
    assert "measured_tpot_mean_ms" in refused[0][1]


@pytest.mark.parametrize(
    ("text", "weights", "cache"),
    [
        ("GPTQ-Int4", "int4", None), ("INT4-AWQ", "int4", None), ("4-bit", "int4", None),
        ("W8A16", "w8a16", None), ("FP8 (W8A8)", "fp8", None), ("W8A8 FP8", "fp8", None),
        ("FP8-KV", "fp8", "fp8"), ("BF16 + FP8 KV", "bf16", "fp8"),
        ("NVFP4, FP8 KV", "nvfp4", "fp8"), ("Weight = fp8, KV Cache = fp16", "fp8", "fp16"),
        ("fp8 weights, kv_cache_dtype=bf16", "fp8", "bf16"),
        ("Q4_K_S", "q4_k_m", None), ("UD-Q4_K_XL", "q4_k_m", None), ("Q6_K", "q6_k", None),
        ("IQ4_XS", "iq4_xs", None), ("16-bit (default in study)", "bf16", None),
        ("unknown", None, None), ("auto", None, None), ("", None, None),
    ],
)  # fmt: skip
def test_other_spellings_of_precisions_are_read(text, weights, cache):
    found = formats_of(text)
    assert tuple(None if form is None else form.name for form in found) == (weights, cache)


@pytest.mark.parametrize("text", ["fp5", "w4a8kv4", "some 3 bit thing", "AMXFP4"])
def test_a_precision_that_nobody_knows_is_never_taken_for_sixteen_bits(text):
    with pytest.raises(PlannerError, match="no known format"):
        setup(precision=text)


@pytest.mark.parametrize(
    ("note", "layout"),
    [
        ("TP4 PP2", ServingLayout(tp=4, pp=2)),
        ("tp=4 ep=4", ServingLayout(tp=8, ep=4)),
        ("DP8 EP8", ServingLayout(tp=1, dp=8, ep=8)),
        ("tp_size=2", ServingLayout(tp=2)),
    ],
)
def test_ranks_that_only_a_note_names_are_read(note, layout):
    assert setup(tp="", pp="", layout_note=note).layout == layout


def test_a_name_may_carry_the_count():
    found = setup(accelerator="8xH100", n_accelerators="", tp="")
    assert found.layout == ServingLayout(tp=8)


def test_requests_that_are_all_there_at_once_are_counted():
    assert setup(regime="max load (1,000 prompts)").load.n_sequences == 1000.0
    noted = setup(layout_note="500 requests at inf requests/s").load
    assert (noted.n_sequences, noted.requests_per_s) == (500.0, None)


def test_more_users_than_can_be_simulated_are_refused():
    with pytest.raises(PlannerError, match="users"):
        setup(regime="fixed_concurrency", batch="1e9")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-ai/DeepSeek-R1"),
        ("LLaMA v3.3 70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("NousResearch/Hermes-3-Llama-3.1-405B-FP8", "NousResearch/Hermes-3-Llama-3.1-405B"),
        ("zai-org/GLM-4.6-FP8", "zai-org/GLM-4.6"),
        ("cpatonn/GLM-4.5-Air-AWQ-4bit", "zai-org/GLM-4.5-Air"),
        ("DeepSeek-V3.2-Speciale", "deepseek-ai/DeepSeek-V3.2-Speciale"),
    ],
)
def test_models_are_found_under_the_names_of_tables(text, found):
    assert setup(model=text).model.name == found


def test_measured_cells_that_are_no_numbers_refuse_their_row_alone():
    good = {**PLAIN, "measured_output_tokens_per_s": "1000"}
    found, refused = predicted_rows(
        [good, {**good, "id": "y", "measured_tpot_mean_ms": "fast"}], predicted_serving
    )
    assert [row.id for row in found] == ["x"]
    assert [name for name, _ in refused] == ["y"]
    assert "measured_tpot_mean_ms" in refused[0][1]


# Without a cache, too large for one device, with latent attention, with a recurrence.
MODELS = ("bert-base-uncased", "Falcon-180B", "DeepSeek-R1", "Qwen3-Next-80B-A3B")
CHIPS = ("MI355X", "Gaudi3", "TPU v6e", "Trainium2", "RTX 5090", "H20", "GB300", "T4")
FORMS = ("fp4", "int4", "w8a8", "awq", "Q4_K_M", "")


@pytest.mark.parametrize("chip", CHIPS)
def test_every_known_model_and_accelerator_has_an_answer(chip):
    """Regimes, precisions, engines and lengths in turn: an even sample of all combinations."""
    regimes = ("static_batch", "max_load", "fixed_max_batch", "fixed_concurrency", "poisson",
               "offline", "prefill", "MLPerf server", "MLPerf Interactive")  # fmt: skip
    rows = [
        {**PLAIN, "id": f"{model} {regime}", "accelerator": chip, "model": model,
         "regime": regime, "precision": FORMS[(i + j) % len(FORMS)],
         "engine": ("vLLM", "SGLang", "mystery", "JetStream")[(i + 2 * j) % 4],
         "engine_version": ("99.1", "", "nightly")[j % 3], "tp": ("16", "1", "")[(i + j) % 3],
         "n_accelerators": "16", "batch": ("", "4096")[i % 2],
         "request_rate_per_s": ("0.01", "", "inf", "20")[j % 4],
         "input_tokens": ("1000000", "1", "")[(i + 2 * j) % 3],
         "output_tokens": ("1", "900")[j % 2]}
        for i, model in enumerate(MODELS) for j, regime in enumerate(regimes)
    ]  # fmt: skip
    found, refused = predicted_rows(rows, predicted_serving)
    assert not refused
    for row in found:
        for metric, estimate in row.predicted.items():
            values = (estimate.low, estimate.value, estimate.high)
            assert all(0.0 < value < float("inf") for value in values), (row.id, metric)


def test_rows_of_any_publisher_have_the_range_of_a_site_never_seen():
    def width(source: str) -> float:
        (row,), _ = predicted_rows([{**PLAIN, "source": source}], predicted_serving)
        found = row.predicted["output_tokens_per_s"]
        return found.high / found.low

    known, new = width("trtllm_throughput"), width("somebody else")
    # Every row has the range of a site never seen: own runs narrow it, a known name does not.
    assert width("trtllm_throughput 1.2") == known == new
    assert width("") == new  # nobody said who measured: nobody we know


def test_a_version_says_which_attention_runs_where_it_is_not_the_usual_one():
    served = {"engine": "vLLM", "regime": "fixed_concurrency", "batch": "8", "precision": "fp8"}
    native = labels_of(**served, engine_version="0.15.0+flashinfer", accelerator="B200 SXM")
    assert native["attention"] == "flashinfer|fp8"
    assert native["era"] == labels_of(**served, engine_version="0.15.0")["era"]
    assert labels_of(**served, engine_version="0.15.0", accelerator="B200 SXM")["attention"] == "no"
    # Other chips have no kernels of TensorRT-LLM to leave.
    assert labels_of(**served, engine_version="0.15.0+flashinfer")["attention"] == "no"
