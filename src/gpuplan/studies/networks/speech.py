"""Speech models: measured real-time factors, carried over to other sizes and boards.

Whisper: a window of 30 s passes the encoder, then the decoder writes its tokens. Published runs
show that the time of a batch has a fixed part, the steps of the decoder, beside one that grows
with windows. Encoders that write what they hear frame by frame (Parakeet, Canary, wav2vec 2.0):
in proportion to their arithmetic per second of sound, and to the layers of a decoder beside.
"""

from collections.abc import Mapping
from functools import cache
from math import ceil

from gpuplan.calibration.networks.stored import benchmark_rate
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import LayerStack, Model
from gpuplan.domain.model.other import Device, NetworkForecast, NetworkWork
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
# Frames a second that pass the layers; Conformers fold eight of 10 ms into one.
FRAMES_PER_S = {"wav2vec2": 50.0, "hubert": 50.0, "wavlm": 50.0, "data2vec-audio": 50.0}
FOLDED_PER_S = 12.5
# A published run each, on the Open ASR Leaderboard: what writes by frames, and what decodes.
BY_FRAMES = ("parakeet-tdt-0.6b-v2 (NeMo) (batching [128])", "nvidia/parakeet-tdt-0.6b-v2")
DECODED = ("canary-1b-flash (NeMo) (batching [128])", "nvidia/canary-1b-flash")
RUN_BY = {
    True: ("insanely-fast-whisper", "Transformers"),
    False: ("open-asr-leaderboard", "NeMo"),
}
LEAST_CALL_S = 0.02  # a call of few seconds of sound waits for some 500 launches


def speech_forecast(
    model: Model, card: Accelerator, request: NetworkRequest, notes: list[Assumption]
) -> NetworkForecast:
    """Time of a batch of recordings on one accelerator, with its range."""
    is_windowed = model.architecture == "whisper"
    seconds = (_in_windows_s if is_windowed else _by_frames_s)(model, card, request)
    source, engine = RUN_BY[is_windowed]
    batch_s = Estimate(
        value=seconds,
        low=seconds * LOW_RATIO,
        high=seconds * HIGH_RATIO,
        tier="estimated",
        sources=(source,),
    )
    notes.append(assume("software", engine, "what the measurements ran on", ""))
    notes.append(assume("audio", f"{request.audio_s:g} s", "of one request", "request.audio_s"))
    return NetworkForecast(
        name=model.name,
        kind="speech",
        accelerator=card,
        batch=request.batch,
        work=None if is_windowed else speech_work(model, request.audio_s, batch=request.batch),
        batch_s=batch_s,
        assumptions=tuple(notes),
    )


def speech_work(model: Model, audio_s: float, *, batch: int) -> NetworkWork:
    """The encoder over every frame; what writes beside it is small in arithmetic, not in time."""
    encoder = _encoder(model)
    n_frames = audio_s * FRAMES_PER_S.get(model.architecture, FOLDED_PER_S)
    n_matrix_params = sum(group.n_active_matrix_params for group in encoder.groups)
    width = encoder.n_layers * encoder.hidden_size
    return NetworkWork(
        flop=2.0 * n_matrix_params * n_frames * batch,
        attention_flop=4.0 * width * n_frames**2 * batch,
        activation_bytes=2.0 * width * n_frames * batch,
        weight_bytes=2.0 * model.n_params,
        n_kernels=float(encoder.n_layers),
    )


def _encoder(model: Model) -> LayerStack:
    return next(stack for stack in model.stacks if stack.role == "encoder")


def _by_frames_s(model: Model, card: Accelerator, request: NetworkRequest) -> float:
    """Seconds of the batch: its encoder, and as many layers of a decoder as it has."""
    device, known = benchmarked_board(card), board_figures()
    rates = [
        benchmark_rate(run, device, known=known, speed_ratio=speed_ratio).value
        for run, _ in (BY_FRAMES, DECODED)
    ]
    of_frames, decoded = find_model(BY_FRAMES[1]), find_model(DECODED[1])
    encoder_s = _flop_ratio(model, of_frames, request.audio_s) / rates[0]
    decoding_s = 1.0 / rates[1] - _flop_ratio(decoded, of_frames, WINDOW_S) / rates[0]
    decoder_s = decoding_s * _n_decoder_layers(model) / _n_decoder_layers(decoded)
    return max(LEAST_CALL_S, request.batch * request.audio_s * (encoder_s + decoder_s))


def _flop_ratio(model: Model, other: Model, audio_s: float) -> float:
    """Arithmetic of recordings of this length over that of another model in windows."""
    one, two = (
        speech_work(model, audio_s, batch=1),
        speech_work(other, WINDOW_S, batch=1),
    )
    per_s = [(work.flop + work.attention_flop) for work in (one, two)]
    return per_s[0] / audio_s / (per_s[1] / WINDOW_S)


def _n_decoder_layers(model: Model) -> int:
    return sum(stack.n_layers for stack in model.stacks if stack.role == "text")


def _in_windows_s(model: Model, card: Accelerator, request: NetworkRequest) -> float:
    window_s = _window_s(model, card)
    n_windows = request.batch * ceil(request.audio_s / WINDOW_S)
    of_steps = STEPS_FRAC * ceil(n_windows / MEASURED_BATCH)
    of_windows = (1.0 - STEPS_FRAC) * n_windows / MEASURED_BATCH
    return window_s * MEASURED_BATCH * (of_steps + of_windows)


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
