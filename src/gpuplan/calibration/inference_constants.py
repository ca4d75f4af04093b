"""Free numbers of inference: prior values, how far they may move, and what they depend on."""

from gpuplan.domain.calibration import Constant, Effect


def _effects(*pairs: tuple[str, float]) -> tuple[Effect, ...]:
    return tuple(Effect(kinds=tuple(kinds.split("+")), log_sd=sd) for kinds, sd in pairs)


# Priors: operator tables [efficiency_gemm, efficiency_nccl, gpu_stream_bandwidth] for the shares,
# [iteration_times_operator_sums] for the rest; deviations by what the hardware or the engine is.
CONSTANTS = (
    Constant(name="gemm_compute_frac", value=0.70, log_sd=0.10, most=0.97,
             effects=_effects(("family+precision", 0.12), ("engine", 0.05))),
    Constant(name="gemm_read_frac", value=0.82, log_sd=0.08, most=0.97,
             effects=_effects(("family+precision", 0.10))),
    Constant(name="gemm_warm_tokens", value=24.0, log_sd=0.3),
    Constant(name="gemm_serial_frac", value=0.8, log_sd=0.2, most=1.0),
    Constant(name="expert_compute_frac", value=0.65, log_sd=0.2, most=1.0,
             effects=_effects(("engine+precision", 0.15), ("family", 0.15))),
    Constant(name="expert_read_frac", value=0.85, log_sd=0.15, most=1.0,
             effects=_effects(("engine+precision", 0.15), ("family", 0.15))),
    Constant(name="expert_pad_tokens", value=6.0, log_sd=0.4),
    Constant(name="expert_uneven_frac", value=0.15, log_sd=0.4),
    Constant(name="expert_evenness", value=1.0, log_sd=0.5),
    Constant(name="cache_read_frac", value=0.74, log_sd=0.10, most=0.97,
             effects=_effects(("family+engine", 0.15), ("mixer", 0.15))),
    Constant(name="attention_compute_frac", value=0.55, log_sd=0.15, most=0.95,
             effects=_effects(("family", 0.15),)),
    Constant(name="activation_read_frac", value=0.5, log_sd=0.3, most=0.97),
    Constant(name="operator_s", value=2.5e-6, log_sd=0.3,
             effects=_effects(("family", 0.2), ("engine", 0.2))),
    Constant(name="reduce_hop_s", value=6e-6, log_sd=0.3,
             effects=_effects(("link", 0.3), ("engine", 0.2))),
    Constant(name="reduce_rate_frac", value=0.5, log_sd=0.2, most=0.97,
             effects=_effects(("link", 0.25), ("link+ranks", 0.15))),
    Constant(name="host_s", value=2e-3, log_sd=0.4,
             effects=_effects(("engine", 0.4), ("era", 0.4))),
    Constant(name="host_sequence_s", value=2e-5, log_sd=0.4,
             effects=_effects(("engine", 0.4), ("era", 0.4))),
    Constant(name="slowdown_frac", value=1.0, log_sd=0.02,
             effects=_effects(("era", 0.06), ("engine+family", 0.06), ("class", 0.08),
                              ("drafting", 0.2), ("class+engine", 0.08),
                              ("bench", 0.15))),
    Constant(name="start_s", value=2e-3, log_sd=0.5,
             effects=_effects(("engine", 0.4), ("era", 0.4))),
    Constant(name="serve_start_s", value=0.08, log_sd=0.4,
             effects=_effects(("engine", 0.4), ("era", 0.4), ("engine+family", 0.3))),
    Constant(name="interference_frac", value=0.97, log_sd=0.1, effects=_effects(("engine", 0.1),)),
    Constant(name="first_wave_frac", value=0.15, log_sd=0.3, most=1.0,
             effects=_effects(("engine", 0.2),)),
    Constant(name="fill_frac", value=0.8, log_sd=0.15, most=1.0),
    Constant(name="batch_limit", value=1600.0, log_sd=0.25, effects=_effects(("engine", 0.2),)),
)  # fmt: skip
