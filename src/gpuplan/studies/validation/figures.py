"""Figures of serving tables: what they read of a prediction, and which ones cannot be right."""

import re
from collections.abc import Mapping
from math import inf

from gpuplan.calibration.inference.labels import family_label
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.performance.kernels.regimes import REGIMES, RegimeConstants, Served, ServingCase
from gpuplan.performance.kernels.step import StepConstants
from gpuplan.performance.serving.regimes import serving_case
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.measured.inference import Row, number_in, serving_setup
from gpuplan.units import MS

# Measured columns -> field of `Served` and its unit.
METRICS = {
    "output_tokens_per_s": ("output_tokens_per_s", 1.0),
    "ttft_mean_ms": ("ttft_s", MS),
    "tpot_mean_ms": ("tpot_s", MS),
    "tpot_p50_ms": ("tpot_s", MS),
    "e2e_s": ("e2e_s", 1.0),
    "ttft_p99_ms": ("ttft_s", MS),
    "tpot_p99_ms": ("tpot_s", MS),
}
# Tails are not fitted: they stand in a measured ratio to the mean.
TAIL_METRICS = ("ttft_p99_ms", "tpot_p99_ms")
# Devices at their peaks, hosts and links at no cost, each token with the same few experts.
LOSSLESS_STEP = StepConstants(
    **dict.fromkeys(StepConstants._fields, 1.0)
    | dict.fromkeys(("slowdown_frac", "host_s", "host_sequence_s", "launch_s"), 0.0)
    | {"expert_evenness": 1e-6}
)
LOSSLESS_REGIME = RegimeConstants(
    **dict.fromkeys(RegimeConstants._fields, 0.0)
    | {"interference_frac": 1.0, "fill_frac": 0.5, "batch_limit": inf}
)
# "Anything else" is no device, and beside the word CPU it would pass for one.
UNSTATED_DEVICE = re.compile(r"\b(none|null|other|unknown|various|mixed)\b", re.IGNORECASE)
SERVED_REGIMES = ("fixed_concurrency", "poisson")
GAMES_PEAK_RATIO = 2.0  # sheets state sums in 32 bits; llama.cpp adds up in 16, at twice the rate
EARLY_END_RATIO = 1.1
# Conditions are stated roughly (mean lengths, a precision for all layers, a sheet of a new board).
IMPOSSIBLE_RATIO = 1.5


def is_unstated(row: Row) -> bool:
    """Whether the row's accelerator is a word for anything else."""
    return UNSTATED_DEVICE.search(row.get("accelerator", "")) is not None


def rejected_figures(row: Row) -> dict[str, str]:
    """The row's figures that its own conditions or figures rule out, each with the reason."""
    setup = serving_setup(row)
    found = {name: number_in(row, f"measured_{name}") for name in METRICS}
    figures = {name: value for name, value in found.items() if value}
    if setup.is_speculative:
        return {}  # how many tokens an iteration gains is not known
    least = lossless(row, setup)
    card = setup.accelerator.name
    rejected = {}
    for name, value in figures.items():
        field, unit = METRICS[name]
        bound = getattr(least, field) / unit
        share = value / bound if name == "output_tokens_per_s" else bound / value
        if share > IMPOSSIBLE_RATIO:
            rejected[name] = f"{name} {value:g} is {share:.0%} of what the peaks of {card} allow"
    return _ended_early(figures, setup) | rejected


def lossless(row: Row, setup: ServingSetup) -> Served:
    """What no deployment of these devices can better, by the conditions that the row states.

    Of a served load, one request alone bounds the latencies: how many run at once is not known.
    """
    work, case = setup_work(setup), serving_case(setup)[0]
    work = work._replace(exchange=work.exchange._replace(link_bytes_per_s=inf))
    case = case._replace(
        input_tokens=case.input_tokens if row.get("input_tokens") else 1.0,
        output_tokens=case.output_tokens if row.get("output_tokens") else 1.0,
    )

    def ideal(regime: str, of: ServingCase) -> Served:
        found: Served = REGIMES[regime](work, LOSSLESS_STEP, LOSSLESS_REGIME, of)
        return found

    if setup.load.regime in SERVED_REGIMES:
        rate = ideal("max_load", case).output_tokens_per_s
        found = ideal("static_batch", case._replace(n_sequences=1.0))
        found = found._replace(output_tokens_per_s=rate)
    else:
        found = ideal(setup.load.regime, case)
    is_games = family_label(setup.accelerator).endswith("-games")
    # Stages may work on parts of one batch or of one prompt at once.
    gain = setup.layout.pp * (GAMES_PEAK_RATIO if is_games else 1.0)
    return Served(
        found.output_tokens_per_s * setup.n_replicas * gain,
        found.ttft_s / gain,
        found.tpot_s / gain,
        found.e2e_s / gain,
        found.n_running,
    )


def _ended_early(figures: Mapping[str, float], setup: ServingSetup) -> dict[str, str]:
    """An E2E latency of one batch that its own TTFT and TPOT do not leave room for."""
    if setup.load.regime != "static_batch":
        return {}
    if not {"ttft_mean_ms", "tpot_mean_ms", "e2e_s"} <= figures.keys():
        return {}
    n_later = setup.load.output_tokens - 1.0
    summed_s = (figures["ttft_mean_ms"] + n_later * figures["tpot_mean_ms"]) * MS
    if summed_s <= EARLY_END_RATIO * figures["e2e_s"]:
        return {}
    why = f"e2e_s {figures['e2e_s']:g} is less than TTFT and {n_later:g} TPOT of its own row"
    return {"e2e_s": f"{why}, {summed_s:.4g}: outputs ended early"}


def without(row: Row, names: Mapping[str, str]) -> dict[str, str]:
    """The row with these figures blank."""
    return {**row, **{f"measured_{name}": "" for name in names}}
