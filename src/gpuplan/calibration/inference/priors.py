"""Free numbers of inference: prior values, how far they may move, and what they depend on."""

from gpuplan.domain.calibration.constants import Constant, Effect

# Achieved shares of peak and of bandwidth over the usual ones, as logs: ninth deciles of large
# and of thin matrix products in measured operator tables [aiconfigurator-operators]; AMD and Intel
# from the best found product [ml-engineering-mamf], their low precisions by analogy (Assumption).
COMPUTE_PRIOR = (
    ("Hopper|16", 0.16), ("Hopper|fp8/fp8", -0.06), ("Ampere|16", 0.22), ("Ampere-pcie|16", 0.15),
    ("Blackwell|16", 0.03), ("Blackwell|fp8/fp8", -0.20), ("Blackwell|nvfp4/fp4", -0.40),
    ("Blackwell|mxfp4/fp4", -0.40), ("Blackwell-pcie|16", 0.33), ("Blackwell-pcie|fp8/fp8", 0.11),
    ("Blackwell-pcie|nvfp4/fp4", -0.03), ("Ada-pcie|16", -0.06), ("Ada-pcie|fp8/fp8", -0.20),
    ("CDNA3|16", -0.22), ("CDNA3|fp8/fp8", -0.25), ("CDNA4|16", -0.03), ("CDNA4|fp8/fp8", -0.20),
    ("CDNA4|nvfp4/fp4", -0.40), ("CDNA4|mxfp4/fp4", -0.40), ("Gaudi|16", 0.15),
    # Games' cards: 151 to 165 of 165 and 179 to 237 of 210 Tflop/s [torch-performance-test-data];
    # all of 165 in vLLM's own products of 512 tokens and more [LLMServingSim-operators].
    ("Ampere-games|16", 0.28), ("Ada-games|16", 0.70), ("Blackwell-games|16", 0.28),
)  # fmt: skip
READ_PRIOR = (
    ("Hopper|16", 0.05), ("Hopper|fp8/fp8", -0.01), ("Ampere|16", 0.02), ("Blackwell|16", 0.04),
    ("Blackwell|fp8/fp8", -0.08), ("Blackwell|nvfp4/fp4", -0.28), ("Blackwell-pcie|16", 0.27),
    ("Ada-games|16", 0.30), ("Blackwell-pcie|fp8/fp8", -0.04), ("Blackwell-pcie|nvfp4/fp4", -0.28),
    ("Ada-pcie|fp8/fp8", -0.09), ("CDNA4|fp8/fp8", -0.08), ("CDNA4|nvfp4/fp4", -0.28),
)  # fmt: skip
# Decoding of 128 sequences of 1,024 tokens at 0.88 and 0.83 of the memory's rate, prompts of 2,048
# tokens at 0.62 to 0.73 and 0.43 to 0.50 of peak [LLMServingSim-operators].
CACHE_PRIOR = (("Ada-games|vllm", 0.27), ("Blackwell-pcie|vllm", 0.16))
ATTENTION_PRIOR = (("Ada-games", 0.10), ("Blackwell-pcie", -0.23))
# Norms, rotary embedding and activation of 2,048 tokens in 0.25 and 0.14 ms a layer of 8B, half of
# what their bytes take in memory: 72 and 128 MB of cache hold most of them.
ACTIVATION_PRIOR = (("Ada-games", 0.80), ("Blackwell-pcie", 0.95))
# FlashInfer's own attention over TensorRT-LLM's, which vLLM takes on Blackwell unless told not to.
# 16 bits: 0.191 against 0.174 ms of decoding [vLLM-19825], 2,184 against 666 ms of a prompt
# [vLLM-25998]. 8 bits: 0.111 ms [vLLM-23647] against 16 bits' time again, 1.24 times as long while
# decoding [FlashInfer-1753] and 1.29 times in prompts [FlashInfer-3484]: 2.1 and 4.2 times in all.
NATIVE_READ_PRIOR = (("flashinfer|bf16", -0.09), ("flashinfer|fp8", -0.84))
NATIVE_COMPUTE_PRIOR = (("flashinfer|bf16", -1.19), ("flashinfer|fp8", -1.47))
# Grouped experts, as logs over the usual share of peak: our own form fitted to the same tables
# (6 to 10 % median error). 8 bits scaled by blocks and Triton kernels on Blackwell compute slowly;
# where the tables hold both ways to scale, the prior lies between.
EXPERT_COMPUTE_PRIOR = (
    ("Hopper|trtllm|16", 0.41), ("Hopper|trtllm|fp8/fp8", 0.07),
    ("Hopper|trtllm|mxfp4/16", -0.15), ("Hopper|vllm|16", 0.32), ("Hopper|vllm|fp8/fp8", -0.1),
    ("Hopper|vllm|mxfp4/16", 0.02), ("Hopper|sglang|16", -0.3), ("Hopper|sglang|fp8/fp8", -0.13),
    ("Hopper|sglang|mxfp4/16", -0.48), ("Blackwell|trtllm|16", 0.44),
    ("Blackwell|trtllm|fp8/fp8", 0.0), ("Blackwell|trtllm|nvfp4/fp4", -0.34),
    ("Blackwell|trtllm|mxfp4/fp4", -0.6), ("Blackwell|vllm|16", 0.0),
    ("Blackwell|vllm|fp8/fp8", -0.74), ("Blackwell|vllm|nvfp4/fp4", -0.34),
    ("Blackwell|vllm|mxfp4/fp4", -1.03), ("Blackwell|sglang|16", -0.05),
    ("Blackwell|sglang|fp8/fp8", -0.85), ("Blackwell|sglang|nvfp4/fp4", -0.41),
    ("Blackwell|sglang|mxfp4/fp4", -1.03), ("Ampere|trtllm|16", 0.21), ("Ada-pcie|vllm|16", 0.39),
    ("Ada-pcie|vllm|fp8/fp8", 0.19), ("Blackwell-pcie|trtllm|16", 0.44),
    ("Blackwell-pcie|trtllm|fp8/fp8", 0.39), ("Blackwell-pcie|trtllm|nvfp4/fp4", 0.36),
    ("Blackwell-pcie|vllm|fp8/fp8", -0.21), ("Blackwell-pcie|vllm|nvfp4/fp4", 0.17),
    ("Blackwell-pcie|vllm|16", 0.70),  # 39 ms of 16 tokens, 51 of 2,048 [LLMServingSim-operators]
)  # fmt: skip
EXPERT_READ_PRIOR = (("Blackwell-pcie", 0.15),)  # 128 experts at 0.93 of the memory's rate
# Thin products on Ampere waste half-filled tiles; later chips hide nearly all arithmetic behind
# the reading [aiconfigurator-operators].
WARM_PRIOR = (("Ampere", 1.5), ("Ampere-pcie", 1.5))
SERIAL_PRIOR = (("Ampere", 0.5), ("Ampere-pcie", 0.5))
# Engines that plan the next step while the device works, by default, and those that never did.
OVERLAPPED_ERAS = (
    "vllm-0.13", "sglang-0.4", "sglang-0.5", "trtllm-0.19", "trtllm-1.0", "trtllm-1.2",
)  # fmt: skip
SERIAL_ERAS = (
    "vllm-0.1", "vllm-0.3", "vllm-0.5", "trtllm-0.5", "trtllm-0.8", "sglang-0.3", "deepspeed",
    "deepspeed-mii",
)  # fmt: skip
# Kernels are fused, captured and launched ahead more from year to year (Assumption: by a sixth).
OPERATOR_TREND = (("2023", 0.35), ("2024", 0.2), ("2026", -0.15))
# Before asynchronous output and the rewritten scheduler the host took most of the time
# [vLLM-0.6-performance].
HOST_PRIOR = (("vllm-0.1", 1.2), ("vllm-0.3", 0.6), ("vllm-0.5", 1.2))
# A suite lets SGLang look for requests every 10th step, with 16 users or more every 30th
# [InferenceX]: half of that is lost on average.
POLLING_PRIOR = (("often", 0.8), ("seldom", 1.5))
# What a prompt adds to times per token, from answers of 1,024 against 8,192 tokens at 16 users and
# more: 58 to 86 ms an iteration of Llama-70B on 1, 2, 4 or 8 B200 alike, 110 to 125 ms of Kimi-K2.5
# [InferenceX]; 4-bit products and their scales are driven from Python there.
LAUNCH_FORM_PRIOR = (("vllm|nvfp4/fp4", 1.1),)
# Flagged rows may draft: where half of them do and gain 1.5 times, the mean of logs is 0.8 times.
DRAFTING_PRIOR = tuple(
    (f"{engine}|{family}", -0.2)
    for engine in ("sglang", "trtllm", "vllm")
    for family in ("Hopper", "Blackwell", "CDNA3", "CDNA4")
)
# Compiled engines launch from C++, others from Python; vLLM replays graphs between attentions since
# its V1 engine (Assumption: factors of three and of one and a half).
LAUNCH_PRIOR = (
    *((f"trtllm-{v}", -1.0) for v in ("0.5", "0.8", "0.10", "0.11", "0.13", "0.15", "0.16")),
    *((f"trtllm-{v}", 0.3) for v in ("0.19", "1.0", "1.2")),
    *((f"vllm-{v}", 0.5) for v in ("0.1", "0.3", "0.5", "0.6")),
    ("llamacpp", -1.0),
    *((f"sglang-{v}", 0.3) for v in ("0.3", "0.4", "0.5")),
)
HIDDEN_PRIOR = (*((era, 0.7) for era in OVERLAPPED_ERAS), *((era, -1.2) for era in SERIAL_ERAS))


def _effects(*pairs: tuple[str, float]) -> tuple[Effect, ...]:
    return tuple(Effect(kinds=tuple(kinds.split("+")), log_sd=sd) for kinds, sd in pairs)


def _by_chip(log_sd: float, prior: tuple[tuple[str, float], ...]) -> Effect:
    return Effect(kinds=("family", "precision"), log_sd=log_sd, prior=prior)


# Priors: shares and kernel times from measured operator tables [aiconfigurator-operators], the
# rest from iterations summed of them; deviations by what the hardware or the engine is.
CONSTANTS = (
    Constant(name="gemm_compute_frac", value=0.70, log_sd=0.10, most=0.97,
             effects=(_by_chip(0.12, COMPUTE_PRIOR),
                      *_effects(("engine", 0.05), ("portable", 0.5)))),
    Constant(name="gemm_read_frac", value=0.82, log_sd=0.08, most=0.97,
             effects=(_by_chip(0.10, READ_PRIOR),
                      *_effects(("accelerator", 0.06), ("portable", 0.2)))),
    Constant(name="gemm_warm_tokens", value=8.0, log_sd=0.3,
             effects=(Effect(kinds=("family",), log_sd=0.4, prior=WARM_PRIOR),)),
    Constant(name="gemm_serial_frac", value=0.22, log_sd=0.2, most=1.0,
             effects=(Effect(kinds=("family",), log_sd=0.2, prior=SERIAL_PRIOR),)),
    # A group holds experts with many rows and with few: some compute while others read.
    Constant(name="expert_serial_frac", value=0.9, log_sd=0.1, most=1.0),
    Constant(name="expert_compute_frac", value=0.42, log_sd=0.12, most=0.97,
             effects=(Effect(kinds=("family", "engine", "precision"), log_sd=0.2,
                             prior=EXPERT_COMPUTE_PRIOR), *_effects(("engine+precision", 0.1),))),
    Constant(name="expert_read_frac", value=0.92, log_sd=0.06, most=0.97,
             effects=(*_effects(("engine+precision", 0.06),),
                      Effect(kinds=("family",), log_sd=0.06, prior=EXPERT_READ_PRIOR))),
    Constant(name="expert_pad_tokens", value=6.0, log_sd=0.4),
    Constant(name="expert_uneven_frac", value=0.15, log_sd=0.4),
    Constant(name="expert_evenness", value=1.2, log_sd=0.5),
    Constant(name="cache_read_frac", value=0.74, log_sd=0.10, most=0.97,
             effects=(Effect(kinds=("family", "engine"), log_sd=0.15, prior=CACHE_PRIOR),
                      *_effects(("mixer", 0.15), ("accelerator", 0.06)),
                      Effect(kinds=("attention",), log_sd=0.1, prior=NATIVE_READ_PRIOR))),
    Constant(name="attention_compute_frac", value=0.55, log_sd=0.15, most=0.95,
             effects=(Effect(kinds=("family",), log_sd=0.15, prior=ATTENTION_PRIOR),
                      *_effects(("portable", 0.5),),
                      Effect(kinds=("attention",), log_sd=0.1, prior=NATIVE_COMPUTE_PRIOR))),
    # Above 1 where what passes stays in the cache of the device.
    Constant(name="activation_read_frac", value=0.7, log_sd=0.3,
             effects=(Effect(kinds=("family",), log_sd=0.1, prior=ACTIVATION_PRIOR),)),
    Constant(name="sample_s", value=1e-6, log_sd=0.7,
             effects=_effects(("engine", 0.4), ("era", 0.7))),
    Constant(name="operator_s", value=2.5e-6, log_sd=0.2,
             effects=(*_effects(("family", 0.2), ("engine", 0.2)),
                      Effect(kinds=("generation",), log_sd=0.1, prior=OPERATOR_TREND))),
    # Prompts are launched operator by operator by most engines: their graphs hold decoding alone.
    Constant(name="launch_s", value=1.5e-5, log_sd=0.4,
             effects=(*_effects(("engine", 0.3),),
                      Effect(kinds=("engine", "precision"), log_sd=0.3, prior=LAUNCH_FORM_PRIOR),
                      Effect(kinds=("era",), log_sd=0.3, prior=LAUNCH_PRIOR))),
    Constant(name="reduce_sync_s", value=4e-6, log_sd=0.4,
             effects=_effects(("link", 0.3), ("era", 0.3))),
    Constant(name="reduce_time_frac", value=1.0, log_sd=0.2,
             effects=_effects(("link", 0.4), ("link+ranks", 0.2), ("era", 0.2))),
    Constant(name="host_s", value=2e-3, log_sd=0.3,
             effects=(*_effects(("engine", 0.3), ("mode", 0.5)),
                      Effect(kinds=("era",), log_sd=0.4, prior=HOST_PRIOR))),
    Constant(name="host_sequence_s", value=2e-5, log_sd=0.3,
             effects=(*_effects(("engine", 0.3), ("mode", 0.5)),
                      Effect(kinds=("era",), log_sd=0.4, prior=HOST_PRIOR))),
    Constant(name="host_hidden_frac", value=0.4, log_sd=0.2, most=1.0,
             effects=(Effect(kinds=("release",), log_sd=0.3, prior=HIDDEN_PRIOR),)),
    Constant(name="slowdown_frac", value=1.0, log_sd=0.02,
             effects=(*_effects(("era", 0.05), ("engine+family", 0.05), ("class", 0.05),
                                ("kind+era", 0.06), ("class+engine", 0.05),
                                ("era+family", 0.10), ("bench", 0.7),
                                ("undated", 0.1)),
                      Effect(kinds=("drafting",), log_sd=0.2, prior=DRAFTING_PRIOR))),
    Constant(name="start_s", value=2e-3, log_sd=0.5,
             effects=_effects(("engine", 0.4), ("era", 0.4))),
    Constant(name="serve_start_s", value=0.01, log_sd=0.4,
             effects=_effects(("engine", 0.4), ("era", 0.3), ("engine+family", 0.2),
                              ("drafting", 0.5))),
    Constant(name="start_prompts", value=0.3, log_sd=0.3,
             effects=_effects(("engine", 0.3), ("engine+family", 0.2))),
    Constant(name="start_steps", value=3.0, log_sd=0.3,
             effects=(*_effects(("engine", 0.3), ("engine+family", 0.2), ("drafting", 0.5)),
                      Effect(kinds=("polling",), log_sd=0.2, prior=POLLING_PRIOR))),
    Constant(name="interference_frac", value=0.97, log_sd=0.1, effects=_effects(("engine", 0.1),)),
    # Closed-loop suites ask ten times as often as they have users [InferenceX]: a tenth at once.
    Constant(name="first_wave_frac", value=0.1, log_sd=0.1, most=1.0,
             effects=_effects(("engine", 0.05),)),
    # TensorRT-LLM reserves the whole answer; the others hand out blocks as the answer grows.
    Constant(name="fill_frac", value=0.95, log_sd=0.1, most=1.0, effects=(
        Effect(kinds=("engine",), log_sd=0.15, prior=(("vllm", -0.4), ("sglang", -0.3))),)),
    Constant(name="batch_limit", value=1600.0, log_sd=0.25, effects=_effects(("engine", 0.2),)),
)  # fmt: skip
