"""Speech models: measured real-time factors, carried over to other sizes and boards.

A window of 30 s passes the encoder, then the decoder writes its tokens. Published runs show that
the time of a batch has a fixed part, the steps of the decoder, beside one that grows with windows.
"""

from collections.abc import Mapping
from functools import cache
from math import ceil

from gpuplan.calibration.networks.stored import benchmark_rate
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.other import Device, NetworkForecast
from gpuplan.domain.provenance import Assumption, Estimate, assume
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.performance.other_networks import device_of, speed_ratio

WINDOW_S = 30.0
MEASURED_BATCH = 24
STEPS_FRAC = (
    0.3  # of a batch of 24 windows: 100 steps of 25 ms beside 7.8 s [insanely-fast-whisper]
)
STACK = "(Transformers) (fp16 + batching [24] + Flash Attention 2)"
# Two models on one board tell what parameters cost: name of the run, parameters.
RUNS = (("whisper-large-v3", 1.543e9), ("whisper-distil-large-v2", 0.756e9))
# Engines differ by so much: 92 times real time in Transformers, 150 and more in tuned engines.
LOW_RATIO, HIGH_RATIO = 0.55, 1.6


def speech_forecast(
    model: Model, card: Accelerator, request: NetworkRequest, told: list[Assumption]
) -> NetworkForecast:
    """Time of a batch of recordings on one accelerator, with its range."""
    window_s = _window_s(model, card)
    n_windows = request.batch * ceil(request.audio_s / WINDOW_S)
    of_steps = STEPS_FRAC * ceil(n_windows / MEASURED_BATCH)
    of_windows = (1.0 - STEPS_FRAC) * n_windows / MEASURED_BATCH
    seconds = window_s * MEASURED_BATCH * (of_steps + of_windows)
    batch_s = Estimate(
        value=seconds,
        low=seconds * LOW_RATIO,
        high=seconds * HIGH_RATIO,
        tier="estimated",
        sources=("insanely-fast-whisper",),
    )
    told.append(assume("software", "Transformers", "what the measurements ran on", ""))
    told.append(assume("audio", f"{request.audio_s:g} s", "of one request", "request.audio_s"))
    return NetworkForecast(
        name=model.name,
        kind="speech",
        accelerator=card,
        batch=request.batch,
        work=None,
        batch_s=batch_s,
        assumptions=tuple(told),
    )


def _window_s(model: Model, card: Accelerator) -> float:
    """Seconds of one window in a full batch, by the parameters of the model."""
    device, known = benchmarked_board(card), board_figures()
    (large_s, large), (small_s, small) = (
        (
            WINDOW_S
            / benchmark_rate(f"{name} {STACK}", device, known=known, speed_ratio=speed_ratio).value,
            n,
        )
        for name, n in RUNS
    )
    per_param_s = (large_s - small_s) / (large - small)
    return large_s + per_param_s * (model.n_params - large)


def sixteen_bits(card: Accelerator) -> str:
    """The 16-bit format that the board computes in."""
    return "fp16" if "fp16" in card.peak_flop_per_s else "bf16"


def benchmarked_board(card: Accelerator) -> Device:
    """The board as benchmarks use it; one that the package lacks, in 16 bits."""
    return board_figures().get(str(card.id)) or device_of(card, sixteen_bits(card))


@cache
def board_figures() -> Mapping[str, Device]:
    """Every board of the catalog at the precision that benchmarks use: 8-bit if it can."""
    found = {}
    for card in read_catalog().accelerators.values():
        peaks = card.peak_flop_per_s
        eight = next((name for name in ("int8", "fp8", "fp16", "bf16") if name in peaks), None)
        if eight is not None:
            found[str(card.id)] = device_of(card, eight)
    return found
